#include "common/value.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "common/utf8.h"
#include "common/value_build.h"

static void skip_byte_order_mark(const char **text, size_t *size)
{
    if (*size >= 3 && !memcmp(*text, "\xEF\xBB\xBF", 3)) {
        *text += 3;
        *size -= 3;
    }
}

static bool looks_like_json(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < size && (text[i] == '{' || text[i] == '[');
}

static int refuse_encoding(struct value_builder *b, const char *text, size_t valid)
{
    int line = 1, column = 1;
    for (size_t i = 0; i < valid; i++) {
        column = text[i] == '\n' ? 1 : column + ((text[i] & 0xC0) != 0x80);
        line += text[i] == '\n';
    }
    return value_builder_fault(b, line, column, "expected UTF-8 text, got byte 0x%02X",
                               (unsigned char)text[valid]);
}

static int parse_yaml(const char *text, size_t size, const char *name, enum err_kind kind,
                      struct value **ret, struct err *e)
{
    cleanup(value_builder_free) struct value_builder *b = value_builder_new(name, kind, e);
    size_t valid = utf8_span(text, size);
    int rc = valid < size ? refuse_encoding(b, text, valid) : value_read_yaml(b, text, size);
    if (rc == 0)
        *ret = value_builder_take(b);
    return rc;
}

/* What begins like JSON may be YAML's flow style all the same, and libyaml explains faults better:
 * where strict JSON fails, the text is read again as YAML, unless it is too long for that. */
int value_parse(const char *text, size_t size, const char *name, enum err_kind kind,
                struct value **ret, struct err *e)
{
    *ret = NULL;
    if (size > VALUE_SIZE_MAX)
        return err_set(e, kind, "%s: expected at most %d bytes, got %zu", name, VALUE_SIZE_MAX,
                       size);
    skip_byte_order_mark(&text, &size);
    bool may_be_yaml = size <= VALUE_YAML_SIZE_MAX;
    if (looks_like_json(text, size) && utf8_span(text, size) == size) {
        cleanup(value_builder_free) struct value_builder *b =
            value_builder_new(name, kind, may_be_yaml ? NULL : e);
        int rc = value_read_json(b, text, size);
        if (rc == 0)
            *ret = value_builder_take(b);
        if (rc == 0 || !may_be_yaml)
            return rc < 0 ? -(int)kind : 0;
    }
    if (!may_be_yaml)
        return err_set(e, kind, "%s: expected JSON, or YAML of at most %d bytes, got %zu", name,
                       VALUE_YAML_SIZE_MAX, size);
    return parse_yaml(text, size, name, kind, ret, e);
}

int value_load(const char *path, struct value **ret, struct err *e)
{
    *ret = NULL;
    cleanup(close_file) FILE *f = fopen(path, "re");
    if (!f)
        return err_set(e, ERR_CONFIG, "%s: cannot open: %s", path, strerror(errno));
    cleanup(strbuf_free) struct strbuf text = {0};
    char part[16384];
    size_t n;
    while (text.len <= VALUE_SIZE_MAX && (n = fread(part, 1, sizeof part, f)) > 0)
        strbuf_add(&text, part, n);
    if (ferror(f))
        return err_set(e, ERR_CONFIG, "%s: cannot read: %s", path, strerror(errno));
    return value_parse(text.s ? text.s : "", text.len, path, ERR_CONFIG, ret, e);
}

const struct value *value_get(const struct value *map, const char *key)
{
    for (size_t i = 0; map && map->kind == VALUE_MAP && i < map->n; i++)
        if (!strcmp(map->keys[i], key))
            return map->items[i];
    return NULL;
}
