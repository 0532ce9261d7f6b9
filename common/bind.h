/*
 * Tables that bind structs to value trees: one table reads a struct from YAML or JSON (typing,
 * defaults, limits, every fault reported with file:line:column and the path of keys) and writes it
 * back as JSON. The records of the product (profile, source, plan, manifest, job) are such tables,
 * so that a format has one description.
 *
 *     static const struct bind_field chunk_fields[] = {
 *         BIND(struct plan_chunk, first_segment, BIND_INT64, .min = 0),
 *         BIND_SUB(struct source, video, source_video_type),            pointer to one struct
 *         BIND_LIST(struct source, audio, n_audio, source_audio_type),  array of structs
 *         {0},
 *     };
 *     const struct bind_struct plan_chunk_type = {"chunk", sizeof(struct plan_chunk),
 * chunk_fields};
 *
 * Absent and null are the same: the fallback, else zero ({0, 1} for a rational). Pointers and
 * counts that no row names are copied as they are and never freed. Thread: pure; tables are
 * immutable.
 */
#pragma once
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/rational.h"
#include "common/value.h"

enum bind_type {
    BIND_END = 0,
    BIND_BOOL,     /* bool */
    BIND_INT,      /* int */
    BIND_INT64,    /* int64_t */
    BIND_DOUBLE,   /* double */
    BIND_STRING,   /* char *, owned; absent and null give the default or NULL */
    BIND_ENUM,     /* int; names in .names */
    BIND_RATIONAL, /* struct rational; "30000/1001", 25, 29.97; written "n/d" */
    BIND_BITRATE,  /* int64_t bits/s; 7800k, 2.5M, 145000; written as a number */
    BIND_STRUCT,   /* pointer to one struct, NULL when absent; .sub */
    BIND_ARRAY,    /* pointer to n structs, .sub, count (size_t) at .count_offset */
    BIND_STRINGS,  /* char **, n owned strings, count (size_t) at .count_offset */
    BIND_OPTIONS,  /* char **, a map of free keys as "key=value" strings, count at .count_offset */
};

struct bind_struct;

struct bind_field {
    const char *key;
    enum bind_type type;
    size_t offset;
    size_t count_offset;
    bool is_required;
    const char *fallback; /* text of the default, parsed as if it stood there ("{}" gives a struct
                         of defaults); NULL: zero */
    int64_t min, max;     /* numbers and counts of entries; both 0: no limit but the type's;
                             max < min: no upper limit */
    const char *const *names;      /* BIND_ENUM: NULL-terminated, value = index */
    const struct bind_struct *sub; /* BIND_STRUCT, BIND_ARRAY */
    const char *help;              /* one line, for generated documentation */
};

struct bind_struct {
    const char *name; /* for messages: "expected a rendition" */
    size_t size;
    const struct bind_field *fields; /* ends with {0} */
    /* Checks what a table cannot say (relations between fields). Returns NULL or a static or
     * thread-local text "expected ..., got ..."; *ret_key may name the field at fault. */
    const char *(*check)(const void *object, const char **ret_key);
};

#define BIND(S, member, type_, ...)                                                 \
    {                                                                               \
        .key = #member, .type = type_, .offset = offsetof(S, member), ##__VA_ARGS__ \
    }
#define BIND_SUB(S, member, sub_, ...) BIND(S, member, BIND_STRUCT, .sub = &(sub_), ##__VA_ARGS__)
#define BIND_LIST(S, member, count, sub_, ...) \
    BIND(S, member, BIND_ARRAY, .sub = &(sub_), .count_offset = offsetof(S, count), ##__VA_ARGS__)

/* Allocates and fills *ret (bind_free it). Unknown keys are faults. All faults are collected: the
 * message holds up to 20 of them, separated by "; ", each "NAME:LINE:COLUMN: path.to.key: expected
 * …, got …"; `report`, if not NULL, is called once for each fault instead (struct err then counts
 * them). */
int bind_read(const struct bind_struct *type, const struct value *v, const char *name,
              enum err_kind kind, void (*report)(void *arg, const char *fault), void *arg,
              void *ret_object_ptr, struct err *e);

/* The two steps of reading a JSON record in one: value_parse + bind_read. */
int bind_parse(const struct bind_struct *type, const char *text, size_t size, const char *name,
               enum err_kind kind, void *ret_object_ptr, struct err *e);

/* Keys in the order of the table, so that equal objects give equal bytes. Left out: strings and
 * structs that are NULL, enums outside their names, doubles that are not finite, and a zero that
 * means absent because the limits exclude it. Invalid UTF-8 in strings becomes U+FFFD. */
json_t *bind_write(const struct bind_struct *type, const void *object); /* caller decrefs */
char *bind_dump(const struct bind_struct *type,
                const void *object); /* compact JSON, caller frees */

/* Frees *object_ptr and all it owns; NULL-safe; nulls the pointer. */
void bind_free(const struct bind_struct *type, void *object_ptr);
void *bind_copy(const struct bind_struct *type, const void *object); /* deep copy */
