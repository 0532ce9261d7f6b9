/*
 * A tree of values read from YAML or JSON, each node knowing where it stood. Text that is strict
 * JSON is read as such, all else as YAML. Owner: the root; nodes are borrowed from it. Pure data,
 * immutable after parsing. Limits: VALUE_SIZE_MAX bytes of JSON, VALUE_YAML_SIZE_MAX of YAML,
 * VALUE_DEPTH_MAX levels, VALUE_NODES_MAX values; duplicate keys, anchors, aliases, tags, more than
 * one document, zero bytes and what is not UTF-8 are refused.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define VALUE_SIZE_MAX      (64 << 20)
#define VALUE_YAML_SIZE_MAX (1 << 20) /* libyaml takes some 2 us a word */
#define VALUE_DEPTH_MAX     32
#define VALUE_NODES_MAX     (4 << 20) /* keys count too; about 80 bytes each */

enum value_kind { VALUE_NULL, VALUE_SCALAR, VALUE_SEQ, VALUE_MAP };

struct value {
    enum value_kind kind;
    int line, column;            /* from 1; columns count characters */
    const char *scalar;          /* VALUE_SCALAR: its text; typing is the schema's business */
    bool is_quoted;              /* VALUE_SCALAR: it was quoted, so never a number, bool or null */
    size_t n;                    /* VALUE_SEQ, VALUE_MAP: entries */
    struct value **items;        /* n values */
    const char **keys;           /* VALUE_MAP: n keys, in the order of the text */
    const struct value **key_at; /* VALUE_MAP: n nodes that hold the keys' own line and column */
};

/* Parses text[0..size). `name` is used in messages ("FILE:LINE:COLUMN: ..."). Kind on error:
 * `kind`. */
int value_parse(const char *text, size_t size, const char *name, enum err_kind kind,
                struct value **ret, struct err *e);
int value_load(const char *path, struct value **ret, struct err *e); /* ERR_CONFIG on failure */
void value_free(struct value **v);

const struct value *value_get(const struct value *map, const char *key); /* NULL if absent */
