#include "queue/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/strbuf.h"

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, c | 0x20) : NULL;
    return p ? (int)(p - digits) : -1;
}

/* text[0..n), percent-decoded; NULL when it is empty. */
static char *decode(const char *text, size_t n)
{
    struct strbuf b = {0};
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%' && n - i > 2 && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
            c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        }
        strbuf_add(&b, &c, 1);
    }
    return b.len ? strbuf_take(&b) : NULL;
}

static int parse_number(const char *text, long max, int *ret)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (end == text || *end || v < 0 || v > max || *text == '+' || *text == ' ')
        return -1;
    *ret = (int)v;
    return 0;
}

static int parse_unix(const char *path, struct address *ret)
{
    size_t n = strcspn(path, "?");
    if (path[0] != '/' || n < 2)
        return -1;
    ret->path = decode(path, n);
    if (!path[n])
        return 0;
    return strncmp(path + n, "?db=", 4) ? -1 : parse_number(path + n + 4, 65535, &ret->db);
}

static void parse_user(const char *text, size_t n, struct address *ret)
{
    const char *colon = memchr(text, ':', n);
    if (colon) {
        ret->user = decode(text, (size_t)(colon - text));
        ret->password = decode(colon + 1, n - (size_t)(colon + 1 - text));
    } else {
        ret->user = decode(text, n);
    }
}

/* "host", "host:port", "[v6]", "[v6]:port": text[0..n). */
static int parse_host(const char *text, size_t n, int default_port, struct address_host *ret)
{
    bool is_v6 = n && text[0] == '[';
    const char *host = text + is_v6;
    size_t host_len = strcspn(host, is_v6 ? "]" : ":,/?#");
    const char *p = host + host_len + is_v6;
    if (!host_len || p > text + n)
        return -1;
    ret->host = decode(host, host_len);
    ret->port = default_port;
    if (p == text + n)
        return 0;
    char port[8] = "";
    size_t len = (size_t)(text + n - (p + 1));
    if (*p != ':' || len == 0 || len >= sizeof port)
        return -1;
    memcpy(port, p + 1, len);
    return parse_number(port, 65535, &ret->port);
}

/* Takes "user:password@" off the front of *rest, which has *n bytes before its path. */
static void parse_login(const char **rest, size_t *n, struct address *ret)
{
    const char *at = memrchr(*rest, '@', *n);
    if (!at)
        return;
    parse_user(*rest, (size_t)(at - *rest), ret);
    *n -= (size_t)(at + 1 - *rest);
    *rest = at + 1;
}

static int parse_tcp(const char *rest, struct address *ret)
{
    size_t n = strcspn(rest, "/?#");
    parse_login(&rest, &n, ret);
    if (parse_host(rest, n, 6379, &ret->host))
        return -1;
    if (rest[n] == '/' && rest[n + 1])
        return parse_number(rest + n + 1, 65535, &ret->db);
    return rest[n] && rest[n] != '/' ? -1 : 0;
}

static int parse_tls(const char *rest, struct address *ret)
{
    ret->is_tls = true;
    return parse_tcp(rest, ret);
}

static int parse_sentinel(const char *rest, struct address *ret)
{
    size_t n = strcspn(rest, "/?#");
    parse_login(&rest, &n, ret);
    const char *end = rest + n;
    for (const char *p = rest; p <= end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t len = (size_t)((comma ? comma : end) - p);
        if (ret->n_sentinels == ADDRESS_SENTINELS_MAX ||
            parse_host(p, len, 26379, &ret->sentinels[ret->n_sentinels++]))
            return -1;
        p += len + 1;
    }
    size_t name = *end == '/' ? strcspn(end + 1, "/?#") : 0;
    if (!name)
        return -1;
    ret->service = decode(end + 1, name);
    end += 1 + name;
    return !*end ? 0 : *end == '/' ? parse_number(end + 1, 65535, &ret->db) : -1;
}

static const struct {
    const char *scheme;
    int (*parse)(const char *rest, struct address *ret);
} schemes[] = {
    {"unix://", parse_unix},
    {"redis://", parse_tcp},
    {"rediss://", parse_tls},
    {"redis-sentinel://", parse_sentinel},
};

int address_parse(const char *url, struct address *ret, struct err *e)
{
    *ret = (struct address){0};
    for (size_t i = 0; url && i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i].scheme);
        if (!strncmp(url, schemes[i].scheme, n) && !schemes[i].parse(url + n, ret))
            return 0;
    }
    address_free(ret);
    char *shown = xstrdup(url ? url : "");
    log_redact(shown);
    int r =
        err_set(e, ERR_USAGE,
                "queue \"%s\": expected redis://[user:password@]host[:port][/db], rediss://..., "
                "unix:///path/to/socket or redis-sentinel://host[,host...]/name",
                shown);
    free(shown);
    return r;
}

int address_add_password(struct address *a, struct err *e)
{
    enum { PASSWORD_MAX = 4096 };
    const char *password = getenv("TRANSCODE_REDIS_PASSWORD");
    const char *path = getenv("TRANSCODE_REDIS_PASSWORD_FILE");
    if (a->password || a->path)
        return 0;
    if (password && *password) {
        a->password = xstrdup(password);
        return 0;
    }
    if (!path || !*path)
        return 0;
    char line[PASSWORD_MAX] = "";
    cleanup(close_file) FILE *f = fopen(path, "re");
    if (!f || !fgets(line, sizeof line, f))
        return err_set(e, ERR_CONFIG, "TRANSCODE_REDIS_PASSWORD_FILE=%s: %s", path,
                       f ? "holds no password" : strerror(errno));
    line[strcspn(line, "\r\n")] = 0;
    a->password = xstrdup(line);
    return 0;
}

void address_free(struct address *a)
{
    free(a->path);
    free(a->host.host);
    for (size_t i = 0; i < a->n_sentinels; i++)
        free(a->sentinels[i].host);
    free(a->service);
    free(a->user);
    free(a->password);
    *a = (struct address){0};
}
