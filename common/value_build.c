#include "common/value_build.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

/* Memory of one tree: blocks that are only ever freed together. */
struct block {
    struct block *next;
    size_t used, cap;
    max_align_t bytes[];
};

struct root {
    struct value value; /* first: what callers hold is also the tree's owner */
    struct block *blocks;
};

struct entry { /* an item of an open list or map, not yet in its array */
    struct value *value;
    const struct value *key; /* maps */
};

struct level { /* an open list or map */
    struct value *value;
    size_t first;            /* its first entry */
    const struct value *key; /* read, its value still to come */
};

struct value_builder {
    const char *name;
    enum err_kind kind;
    struct err *e;
    struct root *root;
    struct value *top;
    struct level levels[VALUE_DEPTH_MAX];
    size_t depth, nodes;
    bool has_fault;
    struct entry *entries;
    size_t n_entries, cap_entries;
};

static void *allocate(struct root *root, size_t size)
{
    size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    struct block *b = root->blocks;
    if (!b || b->cap - b->used < size) {
        size_t cap = b ? 64 << 10 : 4 << 10;
        if (cap < size)
            cap = size;
        b = xcalloc(1, sizeof *b + cap);
        b->cap = cap;
        b->next = root->blocks;
        root->blocks = b;
    }
    void *p = (char *)b->bytes + b->used;
    b->used += size;
    return p;
}

void value_free(struct value **v)
{
    if (!*v)
        return;
    struct root *root = (struct root *)*v;
    for (struct block *b = root->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(root);
    *v = NULL;
}

struct value_builder *value_builder_new(const char *name, enum err_kind kind, struct err *e)
{
    struct value_builder *b = xcalloc(1, sizeof *b);
    b->name = name;
    b->kind = kind;
    b->e = e;
    b->root = xcalloc(1, sizeof *b->root);
    return b;
}

void value_builder_free(struct value_builder **b)
{
    if (!*b)
        return;
    struct value *v = (struct value *)(*b)->root;
    value_free(&v);
    free((*b)->entries);
    free(*b);
    *b = NULL;
}

int value_builder_fault(struct value_builder *b, int line, int column, const char *fmt, ...)
{
    cleanup(strbuf_free) struct strbuf text = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vprintf(&text, fmt, ap);
    va_end(ap);
    b->has_fault = true;
    return err_set(b->e, b->kind, "%s:%d:%d: %s", b->name, line, column, text.s);
}

bool value_builder_has_fault(const struct value_builder *b)
{
    return b->has_fault;
}

static struct value *node(struct value_builder *b, enum value_kind kind, int line, int column)
{
    if (++b->nodes > VALUE_NODES_MAX) {
        value_builder_fault(b, line, column, "expected at most %d values, got more",
                            VALUE_NODES_MAX);
        return NULL;
    }
    struct value *v = allocate(b->root, sizeof *v);
    v->kind = kind;
    v->line = line;
    v->column = column;
    return v;
}

static void append(struct value_builder *b, const struct value *key, struct value *v)
{
    if (b->n_entries == b->cap_entries) {
        b->cap_entries = b->cap_entries ? 2 * b->cap_entries : 64;
        b->entries = xrealloc_array(b->entries, b->cap_entries, sizeof *b->entries);
    }
    b->entries[b->n_entries++] = (struct entry){v, key};
}

/* Puts v where the text has it: the document itself, a key, a key's value or a list's item. */
static int place(struct value_builder *b, struct value *v)
{
    if (!b->depth) {
        b->top = v;
        return 0;
    }
    struct level *l = &b->levels[b->depth - 1];
    if (l->value->kind == VALUE_MAP && !l->key) {
        if (v->kind != VALUE_SCALAR)
            return value_builder_fault(b, v->line, v->column, "expected a key, got %s",
                                       v->kind == VALUE_SEQ   ? "a list"
                                       : v->kind == VALUE_MAP ? "a map"
                                                              : "nothing");
        l->key = v;
        return 0;
    }
    append(b, l->key, v);
    l->key = NULL;
    return 0;
}

int value_builder_scalar(struct value_builder *b, const char *text, size_t n, bool is_quoted,
                         bool is_null, int line, int column)
{
    if (memchr(text, 0, n))
        return value_builder_fault(b, line, column, "expected text, got a zero byte in it");
    struct value *v = node(b, is_null ? VALUE_NULL : VALUE_SCALAR, line, column);
    if (!v)
        return -(int)b->kind;
    if (!is_null) {
        char *copy = allocate(b->root, n + 1);
        memcpy(copy, text, n);
        v->scalar = copy;
    }
    v->is_quoted = is_quoted;
    return place(b, v);
}

int value_builder_open(struct value_builder *b, enum value_kind kind, int line, int column)
{
    if (b->depth == VALUE_DEPTH_MAX)
        return value_builder_fault(b, line, column, "expected at most %d levels, got more",
                                   VALUE_DEPTH_MAX);
    struct value *v = node(b, kind, line, column);
    if (!v || place(b, v) < 0)
        return -(int)b->kind;
    b->levels[b->depth++] = (struct level){.value = v, .first = b->n_entries};
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct value *x = *(const struct value *const *)a, *y = *(const struct value *const *)b;
    int order = strcmp(x->scalar, y->scalar);
    return order                ? order
           : x->line != y->line ? (x->line > y->line) - (x->line < y->line)
                                : (x->column > y->column) - (x->column < y->column);
}

static int refuse_duplicates(struct value_builder *b, const struct value *map)
{
    const struct value *few[32];
    cleanup(free_ptr) const struct value **many = NULL;
    const struct value **sorted = few;
    if (map->n > sizeof few / sizeof few[0])
        sorted = many = xrealloc_array(NULL, map->n, sizeof *many);
    memcpy(sorted, map->key_at, map->n * sizeof *sorted);
    qsort(sorted, map->n, sizeof *sorted, by_key);
    for (size_t i = 1; i < map->n; i++)
        if (!strcmp(sorted[i - 1]->scalar, sorted[i]->scalar))
            return value_builder_fault(b, sorted[i]->line, sorted[i]->column,
                                       "%s: expected each key once, got it again (first at %d:%d)",
                                       sorted[i]->scalar, sorted[i - 1]->line,
                                       sorted[i - 1]->column);
    return 0;
}

int value_builder_close(struct value_builder *b)
{
    struct level *l = &b->levels[--b->depth];
    struct value *v = l->value;
    v->n = b->n_entries - l->first;
    b->n_entries = l->first;
    if (!v->n)
        return 0;
    const struct entry *entries = b->entries + l->first;
    v->items = allocate(b->root, v->n * sizeof *v->items);
    for (size_t i = 0; i < v->n; i++)
        v->items[i] = entries[i].value;
    if (v->kind != VALUE_MAP)
        return 0;
    v->keys = allocate(b->root, v->n * sizeof *v->keys);
    v->key_at = allocate(b->root, v->n * sizeof *v->key_at);
    for (size_t i = 0; i < v->n; i++) {
        v->key_at[i] = entries[i].key;
        v->keys[i] = entries[i].key->scalar;
    }
    return refuse_duplicates(b, v);
}

struct value *value_builder_take(struct value_builder *b)
{
    struct root *root = take(b->root);
    root->value = b->top ? *b->top : (struct value){.kind = VALUE_NULL, .line = 1, .column = 1};
    return &root->value;
}
