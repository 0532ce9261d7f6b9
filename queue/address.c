#include "queue/address.h"

#include <stdlib.h>
#include <string.h>

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

static int parse_tcp(const char *rest, struct address *ret)
{
    size_t n = strcspn(rest, "/?#");
    const char *at = memrchr(rest, '@', n);
    if (at) {
        parse_user(rest, (size_t)(at - rest), ret);
        n -= (size_t)(at + 1 - rest);
        rest = at + 1;
    }
    bool is_v6 = rest[0] == '[';
    const char *host = rest + is_v6;
    size_t host_len = strcspn(host, is_v6 ? "]" : ":/?#");
    const char *p = host + host_len + is_v6;
    if (!host_len || p > rest + n)
        return -1;
    ret->host = decode(host, host_len);
    ret->port = 6379;
    if (*p == ':') {
        char port[8] = "";
        size_t len = (size_t)(rest + n - (p + 1));
        if (len == 0 || len >= sizeof port)
            return -1;
        memcpy(port, p + 1, len);
        if (parse_number(port, 65535, &ret->port))
            return -1;
    } else if (p != rest + n) {
        return -1;
    }
    if (rest[n] == '/' && rest[n + 1])
        return parse_number(rest + n + 1, 65535, &ret->db);
    return rest[n] && rest[n] != '/' ? -1 : 0;
}

int address_parse(const char *url, struct address *ret, struct err *e)
{
    *ret = (struct address){0};
    int r = -1;
    if (url && !strncmp(url, "unix://", 7))
        r = parse_unix(url + 7, ret);
    else if (url && !strncmp(url, "redis://", 8))
        r = parse_tcp(url + 8, ret);
    if (!r)
        return 0;
    address_free(ret);
    char *shown = xstrdup(url ? url : "");
    log_redact(shown);
    r = err_set(e, ERR_USAGE,
                "queue \"%s\": expected redis://[user:password@]host[:port][/db] or "
                "unix:///path/to/socket",
                shown);
    free(shown);
    return r;
}

void address_free(struct address *a)
{
    free(a->path);
    free(a->host);
    free(a->user);
    free(a->password);
    *a = (struct address){0};
}
