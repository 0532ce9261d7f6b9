/*
 * The inside of common/value.h: a builder that the YAML and the JSON reader feed with events, in
 * the order of the text. It owns the memory of the tree (one arena), keeps the limits, pairs keys
 * with values and refuses duplicate keys. Thread: one.
 */
#pragma once
#include <stdbool.h>

#include "common/value.h"

struct value_builder;

struct value_builder *value_builder_new(const char *name, enum err_kind kind, struct err *e);
void value_builder_free(struct value_builder **b);

/* Each returns 0 or -kind with "NAME:LINE:COLUMN: ..." in the struct err. The text is copied. */
int value_builder_scalar(struct value_builder *b, const char *text, size_t n, bool is_quoted,
                         bool is_null, int line, int column);
int value_builder_open(struct value_builder *b, enum value_kind kind, int line, int column);
int value_builder_close(struct value_builder *b);
int value_builder_fault(struct value_builder *b, int line, int column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool value_builder_has_fault(const struct value_builder *b);

/* The whole tree; an empty text is a null at 1:1. */
struct value *value_builder_take(struct value_builder *b);

/* The two readers. */
int value_read_json(struct value_builder *b, const char *text, size_t size);
int value_read_yaml(struct value_builder *b, const char *text, size_t size);
