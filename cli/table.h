/* A table for people: rows of text cells, printed with aligned columns. Owner: table_free.
 * Thread: main. */
#pragma once
#include <stdio.h>

struct table;

/* columns: headings separated by '|'; one that starts with '>' is right-aligned. */
struct table *table_new(const char *columns);
void table_free(struct table **t);
/* One cell after the other, row after row. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(const struct table *t, FILE *out, const char *indent);
