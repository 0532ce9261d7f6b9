/*
 * Reading structs from value trees. The walk goes once over each map: a key is looked for from the
 * field after the last one found, so that records written by bind_write, whose keys come in the
 * order of the table, cost one comparison a key. Faults are collected, never returned early, so
 * that a person sees all of them at once; up to FAULTS_MAX, so that a hostile text cannot make a
 * flood of them.
 */
#include "common/bind.h"

#include <inttypes.h>
#include <string.h>

#include "common/bind_scalar.h"
#include "common/cleanup.h"
#include "common/suggest.h"
#include "common/utf8.h"

enum {
    FAULTS_MAX = 100, /* then reading stops */
    FAULTS_SHOWN = 20,
    QUOTE_MAX_BYTES = 40, /* of a wrong value in a message */
};

struct reading {
    const char *name;
    void (*report)(void *arg, const char *fault);
    void *arg;
    struct strbuf message;
    int faults, shown;
};

struct path { /* from the value up to the root; lives on the stack of the walk */
    const struct path *up;
    const char *key; /* NULL: an item */
    size_t index;
};

static void *at(void *object, size_t offset)
{
    return (char *)object + offset;
}

/* --- faults ---------------------------------------------------------------------------------- */

static void add_path(struct strbuf *b, const struct path *p)
{
    if (!p)
        return;
    add_path(b, p->up);
    if (p->key)
        strbuf_printf(b, "%s%s", p->up ? "." : "", p->key);
    else
        strbuf_printf(b, "[%zu]", p->index);
}

static void add_got(struct strbuf *b, const struct value *v)
{
    if (!v || v->kind == VALUE_NULL) {
        strbuf_puts(b, "nothing");
    } else if (v->kind == VALUE_SCALAR) {
        size_t n = strlen(v->scalar);
        size_t shown = n > QUOTE_MAX_BYTES ? utf8_span(v->scalar, QUOTE_MAX_BYTES) : n;
        strbuf_printf(b, "\"%.*s%s\"", (int)shown, v->scalar, shown < n ? "..." : "");
    } else {
        strbuf_puts(b, v->kind == VALUE_SEQ ? "a list" : "a map");
    }
}

/* `text` is "expected ..., got ...". */
static void fault(struct reading *r, const struct path *path, const struct value *where,
                  const char *text)
{
    cleanup(strbuf_free) struct strbuf line = {0}, keys = {0};
    add_path(&keys, path);
    strbuf_printf(&line, "%s:%d:%d: %s%s%s", r->name, where->line, where->column,
                  keys.len ? keys.s : "", keys.len ? ": " : "", text);
    for (char *c = line.s; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    if (++r->faults > FAULTS_MAX)
        return;
    if (r->report) {
        r->report(r->arg, line.s);
        return;
    }
    size_t room = ERR_MSG_MAX - sizeof "; and 100 more faults";
    if (r->shown < r->faults - 1 || r->shown == FAULTS_SHOWN ||
        (r->shown && r->message.len + 2 + line.len > room))
        return;
    if (r->shown++)
        strbuf_puts(&r->message, "; ");
    strbuf_add(&r->message, line.s, line.len < room ? line.len : utf8_span(line.s, room));
}

static void mismatch(struct reading *r, const struct path *path, const struct value *where,
                     const char *expected, const struct value *got)
{
    cleanup(strbuf_free) struct strbuf b = {0};
    strbuf_printf(&b, "expected %s, got ", expected);
    add_got(&b, got);
    fault(r, path, where, b.s);
}

static void unknown_key(struct reading *r, const struct bind_struct *type, const struct value *map,
                        size_t i, const struct path *path)
{
    cleanup(strbuf_free) struct strbuf b = {0};
    struct suggest s = {.word = map->keys[i]};
    for (const struct bind_field *f = type->fields; f->key; f++)
        suggest_try(&s, f->key);
    if (s.best) {
        strbuf_printf(&b, "expected a key of %s, got ", type->name);
        add_got(&b, map->key_at[i]);
        strbuf_printf(&b, " (did you mean \"%s\"?)", s.best);
    } else {
        strbuf_puts(&b, "expected one of ");
        for (const struct bind_field *f = type->fields; f->key; f++)
            strbuf_printf(&b, "%s%s", f == type->fields ? "" : ", ", f->key);
        strbuf_puts(&b, ", got ");
        add_got(&b, map->key_at[i]);
    }
    fault(r, &(struct path){path, map->keys[i], 0}, map->key_at[i], b.s);
}

/* What a field expects, for a message. */
static char *expected(const struct bind_field *f)
{
    struct strbuf b = {0};
    if (bind_is_scalar(f->type))
        bind_scalar_expected(f, &b);
    else if (f->type == BIND_STRUCT)
        strbuf_printf(&b, "a map (%s)", f->sub->name);
    else if (f->type == BIND_ARRAY)
        strbuf_printf(&b, "a list (of %s)", f->sub->name);
    else
        strbuf_puts(&b, f->type == BIND_STRINGS ? "a list of texts" : "a map of texts");
    return strbuf_take(&b);
}

/* --- the walk -------------------------------------------------------------------------------- */

static void read_object(struct reading *r, const struct bind_struct *type, const struct value *v,
                        const struct path *path, void *object);

static bool is_count_within(struct reading *r, const struct bind_field *f, const struct value *v,
                            const struct path *path)
{
    bool has_max = f->max >= f->min;
    if ((!f->min && !f->max) || ((int64_t)v->n >= f->min && (!has_max || (int64_t)v->n <= f->max)))
        return true;
    char text[120];
    if (has_max)
        snprintf(text, sizeof text, "expected %" PRId64 " to %" PRId64 " entries, got %zu", f->min,
                 f->max, v->n);
    else
        snprintf(text, sizeof text, "expected at least %" PRId64 " entries, got %zu", f->min, v->n);
    fault(r, path, v, text);
    return false;
}

static void read_array(struct reading *r, const struct bind_field *f, const struct value *v,
                       const struct path *path, void *object)
{
    if (!v->n)
        return;
    char *items = xcalloc(v->n, f->sub->size);
    *(char **)at(object, f->offset) = items;
    *(size_t *)at(object, f->count_offset) = v->n;
    for (size_t i = 0; i < v->n && r->faults <= FAULTS_MAX; i++)
        read_object(r, f->sub, v->items[i], &(struct path){path, NULL, i},
                    items + i * f->sub->size);
}

static char *option_text(const struct value *v, size_t i)
{
    return xasprintf("%s=%s", v->keys[i], v->items[i]->scalar);
}

static char *string_text(const struct value *v, size_t i)
{
    return xstrdup(v->items[i]->scalar);
}

static void read_texts(struct reading *r, const struct bind_field *f, const struct value *v,
                       const struct path *path, void *object)
{
    if (!v->n)
        return;
    bool is_map = v->kind == VALUE_MAP;
    char **texts = xcalloc(v->n, sizeof *texts);
    size_t *n = at(object, f->count_offset);
    *(char ***)at(object, f->offset) = texts;
    for (size_t i = 0; i < v->n && r->faults <= FAULTS_MAX; i++) {
        struct path here = {path, is_map ? v->keys[i] : NULL, i};
        if (v->items[i]->kind != VALUE_SCALAR)
            mismatch(r, &here, v->items[i], "text", v->items[i]);
        else if (is_map && (!*v->keys[i] || strchr(v->keys[i], '=')))
            fault(r, &here, v->key_at[i], "expected an option's name, got one with \"=\" or empty");
        else
            texts[(*n)++] = is_map ? option_text(v, i) : string_text(v, i);
    }
}

static void read_struct(struct reading *r, const struct bind_field *f, const struct value *v,
                        const struct path *path, void *object)
{
    void *sub = xcalloc(1, f->sub->size);
    *(void **)at(object, f->offset) = sub;
    read_object(r, f->sub, v, path, sub);
}

static void read_field(struct reading *r, const struct bind_field *f, const struct value *v,
                       const struct path *path, void *object)
{
    static const enum value_kind kinds[] = {
        [BIND_STRUCT] = VALUE_MAP,
        [BIND_ARRAY] = VALUE_SEQ,
        [BIND_STRINGS] = VALUE_SEQ,
        [BIND_OPTIONS] = VALUE_MAP,
    };
    if (bind_is_scalar(f->type)
            ? v->kind != VALUE_SCALAR ||
                  !bind_scalar_read(f, v->scalar, v->is_quoted, at(object, f->offset))
            : v->kind != kinds[f->type]) {
        cleanup(free_ptr) char *text = expected(f);
        mismatch(r, path, v, text, v);
        return;
    }
    if (bind_is_scalar(f->type))
        return;
    if (f->type == BIND_STRUCT)
        read_struct(r, f, v, path, object);
    else if (!is_count_within(r, f, v, path))
        return;
    else if (f->type == BIND_ARRAY)
        read_array(r, f, v, path, object);
    else
        read_texts(r, f, v, path, object);
}

/* A fallback is read as if its text stood where the map stands. */
static void read_fallback(struct reading *r, const struct bind_field *f, const struct value *map,
                          const struct path *path, void *object)
{
    struct value scalar = {
        .kind = VALUE_SCALAR, .line = map->line, .column = map->column, .scalar = f->fallback};
    if (bind_is_scalar(f->type)) {
        read_field(r, f, &scalar, path, object);
        return;
    }
    cleanup(value_free) struct value *v = NULL;
    struct err e = {0};
    if (value_parse(f->fallback, strlen(f->fallback), "default", ERR_BUG, &v, &e) < 0)
        fault(r, path, map, e.msg);
    else
        read_field(r, f, v, path, object);
}

static void read_absent(struct reading *r, const struct bind_field *f, const struct value *map,
                        const struct path *path, void *object)
{
    struct path here = {path, f->key, 0};
    if (f->is_required) {
        cleanup(free_ptr) char *text = expected(f);
        mismatch(r, &here, map, text, NULL);
    } else if (f->fallback) {
        read_fallback(r, f, map, &here, object);
    } else if (bind_is_scalar(f->type)) {
        bind_scalar_zero(f, at(object, f->offset));
    } else if (f->type != BIND_STRUCT) {
        is_count_within(r, f, &(struct value){.line = map->line, .column = map->column}, &here);
    }
}

static size_t count_fields(const struct bind_struct *type)
{
    size_t n = 0;
    while (type->fields[n].key)
        n++;
    return n;
}

/* The field of that key: first the one after the last found, then all. */
static const struct bind_field *find_field(const struct bind_struct *type,
                                           const struct bind_field *next, const char *key)
{
    if (next->key && !strcmp(next->key, key))
        return next;
    for (const struct bind_field *f = type->fields; f->key; f++)
        if (!strcmp(f->key, key))
            return f;
    return NULL;
}

static void check_object(struct reading *r, const struct bind_struct *type, const struct value *v,
                         const struct path *path, const void *object)
{
    const char *key = NULL;
    const char *text = type->check ? type->check(object, &key) : NULL;
    if (!text)
        return;
    const struct value *where = key ? value_get(v, key) : NULL;
    fault(r, key ? &(struct path){path, key, 0} : path, where ? where : v, text);
}

static void read_object(struct reading *r, const struct bind_struct *type, const struct value *v,
                        const struct path *path, void *object)
{
    int faults_before = r->faults;
    const struct bind_field *next = type->fields;
    if (v->kind != VALUE_MAP) {
        cleanup(free_ptr) char *text = xasprintf("a map (%s)", type->name);
        mismatch(r, path, v, text, v);
        return;
    }
    cleanup(free_ptr) bool *is_seen = xcalloc(count_fields(type), sizeof *is_seen);
    for (size_t i = 0; i < v->n && r->faults <= FAULTS_MAX; i++) {
        const struct bind_field *f = find_field(type, next, v->keys[i]);
        if (!f) {
            unknown_key(r, type, v, i, path);
            continue;
        }
        next = f + 1;
        if (v->items[i]->kind == VALUE_NULL)
            continue; /* as if absent */
        is_seen[f - type->fields] = true;
        read_field(r, f, v->items[i], &(struct path){path, f->key, 0}, object);
    }
    for (const struct bind_field *f = type->fields; f->key; f++)
        if (!is_seen[f - type->fields])
            read_absent(r, f, v, path, object);
    if (r->faults == faults_before)
        check_object(r, type, v, path, object);
}

static int finish(struct reading *r, enum err_kind kind, struct err *e)
{
    if (r->report)
        return err_set(e, kind, "%s: %d fault%s", r->name, r->faults, r->faults == 1 ? "" : "s");
    int more = r->faults - r->shown;
    if (!more)
        return err_set(e, kind, "%s", r->message.s);
    return err_set(e, kind, "%s; and %d more fault%s", r->message.s, more, more == 1 ? "" : "s");
}

int bind_read(const struct bind_struct *type, const struct value *v, const char *name,
              enum err_kind kind, void (*report)(void *arg, const char *fault), void *arg,
              void *ret_object_ptr, struct err *e)
{
    struct reading r = {.name = name, .report = report, .arg = arg};
    void *object = xcalloc(1, type->size);
    read_object(&r, type, v, NULL, object);
    int rc = r.faults ? finish(&r, kind, e) : 0;
    if (rc < 0)
        bind_free(type, &object);
    memcpy(ret_object_ptr, &object, sizeof object);
    strbuf_free(&r.message);
    return rc;
}

int bind_parse(const struct bind_struct *type, const char *text, size_t size, const char *name,
               enum err_kind kind, void *ret_object_ptr, struct err *e)
{
    cleanup(value_free) struct value *v = NULL;
    memset(ret_object_ptr, 0, sizeof(void *));
    int rc = value_parse(text, size, name, kind, &v, e);
    return rc < 0 ? rc : bind_read(type, v, name, kind, NULL, NULL, ret_object_ptr, e);
}
