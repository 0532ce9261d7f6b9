#include "cli/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"

struct table {
    char **cells; /* the first row holds the headings */
    bool *is_right;
    size_t n, columns;
};

static void add(struct table *t, char *text)
{
    t->cells = xrealloc_array(t->cells, t->n + 1, sizeof *t->cells);
    t->cells[t->n++] = text;
}

struct table *table_new(const char *columns)
{
    struct table *t = xcalloc(1, sizeof *t);
    for (const char *p = columns; p; t->columns++) {
        const char *end = strchr(p, '|');
        t->is_right = xrealloc_array(t->is_right, t->columns + 1, sizeof *t->is_right);
        t->is_right[t->columns] = *p == '>';
        p += *p == '>';
        add(t, xasprintf("%.*s", end ? (int)(end - p) : (int)strlen(p), p));
        p = end ? end + 1 : NULL;
    }
    return t;
}

void table_free(struct table **t)
{
    if (!*t)
        return;
    for (size_t i = 0; i < (*t)->n; i++)
        free((*t)->cells[i]);
    free((*t)->cells);
    free((*t)->is_right);
    free(*t);
    *t = NULL;
}

void table_cell(struct table *t, const char *fmt, ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&b, fmt, ap);
    va_end(ap);
    add(t, strbuf_take(&b));
}

/* Columns on the screen: UTF-8 continuation bytes take none. */
static int width_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static int column_width(const struct table *t, size_t column)
{
    int most = 0;
    for (size_t i = column; i < t->n; i += t->columns)
        if (width_of(t->cells[i]) > most)
            most = width_of(t->cells[i]);
    return most;
}

void table_print(const struct table *t, FILE *out, const char *indent)
{
    for (size_t row = 0; row + t->columns <= t->n; row += t->columns) {
        fputs(indent, out);
        for (size_t c = 0; c < t->columns; c++) {
            const char *text = t->cells[row + c];
            int pad = column_width(t, c) - width_of(text);
            bool is_last = c + 1 == t->columns;
            fprintf(out, "%*s%s%*s%s", t->is_right[c] ? pad : 0, "", text,
                    t->is_right[c] || is_last ? 0 : pad, "", is_last ? "\n" : "  ");
        }
    }
}
