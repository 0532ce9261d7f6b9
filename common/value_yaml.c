/*
 * The part of YAML that configuration needs, by libyaml's events. What makes YAML surprising is
 * refused with its place: anchors and aliases (which let a small file grow without bound), tags,
 * several documents. Typing is left to the tables of common/bind.h, so a country code NO stays
 * text.
 */
#include <string.h>
#include <yaml.h>

#include "common/cleanup.h"
#include "common/value_build.h"

static bool is_null_word(const char *s, size_t n)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == n && !memcmp(words[i], s, n))
            return true;
    return false;
}

static int refuse(struct value_builder *b, const yaml_event_t *event, const char *what)
{
    return value_builder_fault(b, (int)event->start_mark.line + 1,
                               (int)event->start_mark.column + 1,
                               "expected plain values, got %s, which is not supported", what);
}

static int open_collection(struct value_builder *b, const yaml_event_t *event, enum value_kind kind,
                           const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor || tag)
        return refuse(b, event, anchor ? "an anchor (&)" : "a tag (!)");
    return value_builder_open(b, kind, (int)event->start_mark.line + 1,
                              (int)event->start_mark.column + 1);
}

static int take_scalar(struct value_builder *b, const yaml_event_t *event)
{
    if (event->data.scalar.anchor || event->data.scalar.tag)
        return refuse(b, event, event->data.scalar.anchor ? "an anchor (&)" : "a tag (!)");
    const char *text = (const char *)event->data.scalar.value;
    size_t n = event->data.scalar.length;
    bool is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return value_builder_scalar(b, text, n, is_quoted, !is_quoted && is_null_word(text, n),
                                (int)event->start_mark.line + 1, (int)event->start_mark.column + 1);
}

static int take_event(struct value_builder *b, const yaml_event_t *event, int *documents)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return ++*documents > 1 ? refuse(b, event, "a second document (---)") : 0;
    case YAML_ALIAS_EVENT:
        return refuse(b, event, "an alias (*)");
    case YAML_SCALAR_EVENT:
        return take_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_collection(b, event, VALUE_SEQ, event->data.sequence_start.anchor,
                               event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return open_collection(b, event, VALUE_MAP, event->data.mapping_start.anchor,
                               event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return value_builder_close(b);
    default:
        return 0;
    }
}

/* libyaml's reader (for a control character) gives an offset only, its scanner and parser a mark.
 */
static int syntax_fault(struct value_builder *b, const yaml_parser_t *parser, const char *text,
                        size_t size)
{
    int line = (int)parser->problem_mark.line + 1, column = (int)parser->problem_mark.column + 1;
    if (parser->error == YAML_READER_ERROR) {
        line = column = 1;
        for (size_t i = 0; i < parser->problem_offset && i < size; i++) {
            column = text[i] == '\n' ? 1 : column + ((text[i] & 0xC0) != 0x80);
            line += text[i] == '\n';
        }
    }
    if (parser->context)
        return value_builder_fault(b, line, column, "expected YAML, got a fault %s (line %d): %s",
                                   parser->context, (int)parser->context_mark.line + 1,
                                   parser->problem);
    return value_builder_fault(b, line, column, "expected YAML, got a fault: %s",
                               parser->problem ? parser->problem : "out of memory");
}

static int read_events(struct value_builder *b, yaml_parser_t *parser, const char *text,
                       size_t size)
{
    int documents = 0;
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return syntax_fault(b, parser, text, size);
        bool is_end = event.type == YAML_STREAM_END_EVENT;
        int rc = take_event(b, &event, &documents);
        yaml_event_delete(&event);
        if (rc < 0 || is_end)
            return rc;
    }
}

int value_read_yaml(struct value_builder *b, const char *text, size_t size)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return value_builder_fault(b, 1, 1, "out of memory");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    int rc = read_events(b, &parser, text, size);
    yaml_parser_delete(&parser);
    return rc;
}
