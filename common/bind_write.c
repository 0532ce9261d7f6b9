/* What else follows from a table of common/bind.h: writing JSON, deep copy, freeing. */
#include <string.h>

#include "common/bind.h"
#include "common/bind_scalar.h"
#include "common/cleanup.h"
#include "common/utf8.h"

static const void *at(const void *object, size_t offset)
{
    return (const char *)object + offset;
}

static void *pointer_at(const void *object, size_t offset)
{
    void *p;
    memcpy(&p, at(object, offset), sizeof p);
    return p;
}

static size_t count(const struct bind_field *f, const void *object)
{
    return f->type == BIND_STRUCT ? 1 : *(const size_t *)at(object, f->count_offset);
}

static json_t *text_to_json(const char *s)
{
    cleanup(free_ptr) char *clean = utf8_clean(s ? s : "");
    return xcheck(json_string(clean));
}

static json_t *write_list(const struct bind_field *f, const void *object)
{
    json_t *list = xcheck(json_array());
    const char *items = pointer_at(object, f->offset);
    for (size_t i = 0, n = items ? count(f, object) : 0; i < n; i++)
        json_array_append_new(list, f->type == BIND_ARRAY
                                        ? bind_write(f->sub, items + i * f->sub->size)
                                        : text_to_json(((char *const *)(const void *)items)[i]));
    return list;
}

static json_t *write_options(const struct bind_field *f, const void *object)
{
    json_t *map = xcheck(json_object());
    char *const *texts = pointer_at(object, f->offset);
    for (size_t i = 0, n = texts ? count(f, object) : 0; i < n; i++) {
        cleanup(free_ptr) char *key = utf8_clean(texts[i]);
        char *value = strchrnul(key, '=');
        json_t *text = text_to_json(*value ? value + 1 : "");
        *value = 0;
        json_object_set_new(map, key, text);
    }
    return map;
}

static json_t *write_field(const struct bind_field *f, const void *object) /* NULL: left out */
{
    if (bind_is_scalar(f->type))
        return bind_scalar_write(f, at(object, f->offset));
    if (f->type == BIND_OPTIONS)
        return write_options(f, object);
    if (f->type != BIND_STRUCT)
        return write_list(f, object);
    const void *sub = pointer_at(object, f->offset);
    return sub ? bind_write(f->sub, sub) : NULL;
}

json_t *bind_write(const struct bind_struct *type, const void *object)
{
    json_t *map = xcheck(json_object());
    for (const struct bind_field *f = type->fields; f->key; f++) {
        json_t *j = write_field(f, object);
        if (j)
            json_object_set_new(map, f->key, j);
    }
    return map;
}

char *bind_dump(const struct bind_struct *type, const void *object)
{
    json_t *j = bind_write(type, object);
    char *text = json_dumps(j, JSON_COMPACT);
    json_decref(j);
    return xcheck(text);
}

/* --- ownership ------------------------------------------------------------------------------- */

static void free_members(const struct bind_struct *type, void *object)
{
    for (const struct bind_field *f = type->fields; f->key; f++) {
        if (bind_is_scalar(f->type) && f->type != BIND_STRING)
            continue;
        void *p = pointer_at(object, f->offset);
        if (!p)
            continue;
        size_t n = f->type == BIND_STRING ? 0 : count(f, object);
        for (size_t i = 0; i < n; i++) {
            if (f->sub)
                free_members(f->sub, (char *)p + i * f->sub->size);
            else
                free(((char **)p)[i]);
        }
        free(p);
    }
}

void bind_free(const struct bind_struct *type, void *object_ptr)
{
    void *object;
    memcpy(&object, object_ptr, sizeof object);
    if (!object)
        return;
    free_members(type, object);
    free(object);
    memset(object_ptr, 0, sizeof object);
}

static void copy_members(const struct bind_struct *type, void *object)
{
    for (const struct bind_field *f = type->fields; f->key; f++) {
        if (bind_is_scalar(f->type) && f->type != BIND_STRING)
            continue;
        void *from = pointer_at(object, f->offset), *to = NULL;
        if (from && f->type == BIND_STRING) {
            to = xstrdup(from);
        } else if (from) {
            size_t n = count(f, object), size = f->sub ? f->sub->size : sizeof(char *);
            to = xcalloc(n, size);
            memcpy(to, from, n * size);
            for (size_t i = 0; i < n; i++) {
                if (f->sub)
                    copy_members(f->sub, (char *)to + i * size);
                else
                    ((char **)to)[i] = xstrdup(((char **)from)[i]);
            }
        }
        memcpy((char *)object + f->offset, &to, sizeof to);
    }
}

void *bind_copy(const struct bind_struct *type, const void *object)
{
    if (!object)
        return NULL;
    void *copy = xcalloc(1, type->size);
    memcpy(copy, object, type->size);
    copy_members(type, copy);
    return copy;
}
