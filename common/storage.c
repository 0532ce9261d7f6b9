#include "common/storage.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "common/storage_backend.h"

enum { KEY_MAX_BYTES = 1024 };

static const struct {
    const char *scheme;
    const struct storage_backend *backend;
} schemes[] = {
    {"", &storage_file}, /* a plain path */
    {"file", &storage_file},
};

/* Length of "scheme" in "scheme://..."; 0 for a plain path. */
static size_t scheme_length(const char *url)
{
    size_t n = 0;
    while (isalnum((unsigned char)url[n]) || (n && url[n] && strchr("+-.", url[n])))
        n++;
    return n && isalpha((unsigned char)*url) && !strncmp(url + n, "://", 3) ? n : 0;
}

static int find(const char *url, const struct storage_backend **ret, struct err *e)
{
    size_t n = scheme_length(url);
    if (!*url)
        return err_set(e, ERR_USAGE, "expected a path or URL, got an empty one");
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strlen(schemes[i].scheme) == n && !strncasecmp(schemes[i].scheme, url, n)) {
            *ret = schemes[i].backend;
            return 0;
        }
    return err_set(e, ERR_USAGE, "%s: no storage for %.*s://, expected a path or file://", url,
                   (int)n, url);
}

/* Keys come from sessions, which may have been taken over by a hostile source: they must not lead
 * out of the base or onto a name of our own. */
static bool is_key(const char *key)
{
    size_t n = strlen(key);
    if (!n || n > KEY_MAX_BYTES)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)key[i] < ' ' || key[i] == 0x7F)
            return false;
    for (const char *part = key;; part++) {
        if (!*part || *part == '/' || *part == '.') /* empty, "..", hidden */
            return false;
        part += strcspn(part, "/");
        if (!*part)
            return true;
    }
}

static int find_for_key(const char *base, const char *key, const struct storage_backend **ret,
                        struct err *e)
{
    if (is_key(key))
        return find(base, ret, e);
    return err_set(e, ERR_BUG, "%s: refused the object name \"%.100s\"", base, key);
}

int storage_open(const char *url, int *ret_fd, int64_t *ret_size_bytes, struct err *e)
{
    const struct storage_backend *b;
    int rc = find(url, &b, e);
    *ret_fd = -1;
    return rc < 0 ? rc : b->open(url, ret_fd, ret_size_bytes, e);
}

int storage_put_file(const char *base, const char *key, const char *path, struct err *e)
{
    const struct storage_backend *b;
    int rc = find_for_key(base, key, &b, e);
    return rc < 0 ? rc : b->put_file(base, key, path, e);
}

int storage_put_bytes(const char *base, const char *key, const void *bytes, size_t n, struct err *e)
{
    const struct storage_backend *b;
    int rc = find_for_key(base, key, &b, e);
    return rc < 0 ? rc : b->put_bytes(base, key, bytes, n, e);
}

void storage_sweep(const char *base, const char *folder)
{
    const struct storage_backend *b;
    struct err e;
    if ((*folder ? find_for_key(base, folder, &b, &e) : find(base, &b, &e)) == 0)
        b->sweep(base, folder);
}

int storage_stat(const char *base, const char *key, int64_t *ret_size_bytes, struct err *e)
{
    const struct storage_backend *b;
    int rc = find_for_key(base, key, &b, e);
    return rc < 0 ? rc : b->stat(base, key, ret_size_bytes, e);
}

int storage_prepare(const char *base, struct err *e)
{
    const struct storage_backend *b;
    int rc = find(base, &b, e);
    return rc < 0 ? rc : b->prepare(base, e);
}

int storage_resolve(const char *url, char **ret, struct err *e)
{
    const struct storage_backend *b;
    int rc = find(url, &b, e);
    *ret = NULL;
    return rc < 0 ? rc : b->resolve(url, ret, e);
}
