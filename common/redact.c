/*
 * log_redact: the one place where secrets are taken out of text for people.
 *
 * One pass from left to right with a read and a write position in the same buffer: what is written
 * is never longer than what was read, so the text ahead is always still as it was given. At each
 * word the rules are tried in turn:
 *   - scheme://user:SECRET@host, scheme://SECRET@host, and every value of a query or fragment;
 *   - Authorization: SECRET to the end of the line (header table);
 *   - Bearer SECRET;
 *   - name=SECRET, "name": "SECRET", --name SECRET where the name ends like those in the table.
 * A doubt is decided for the secret: a line that says too little can be logged again.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/log.h"

struct line {
    const char *in; /* next byte to read */
    char *out;      /* next byte to write, <= in */
};

/* Ends of names whose values are secrets. The colon forms of words that prose uses ("unexpected
 * token: x") are left alone. */
static const struct {
    const char *end;
    bool has_colon_form;
} names[] = {
    {"password", true},       {"passwd", true},      {"passphrase", true},
    {"pwd", false},           {"_pass", true},       {"secret", true},
    {"secret_key", true},     {"access_key", true},  {"access_key_id", true},
    {"api_key", true},        {"apikey", true},      {"private_key", true},
    {"access_token", true},   {"auth_token", true},  {"security_token", true},
    {"session_token", true},  {"_token", true},      {"token", false},
    {"signature", false},     {"credential", false}, {"credentials", false},
    {"auth", false},          {"sig", false},        {"signing_key", true},
    {"encryption_key", true},
};

static const char *const headers[] = {"authorization", "proxy-authorization", "cookie",
                                      "set-cookie",    "x-auth-token",        "x-api-key"};

static const char blanks[] = " \t\r\n";

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static void copy(struct line *l, size_t n)
{
    memmove(l->out, l->in, n);
    l->out += n;
    l->in += n;
}

static void mask(struct line *l, size_t n)
{
    for (size_t i = 0; i < n && i < 3; i++)
        *l->out++ = '*';
    l->in += n;
}

/* --- URLs ------------------------------------------------------------------------------------ */

/* Bytes of the URL after "://": up to a blank, a quote or a bracket, without closing punctuation.
 */
static size_t url_length(const char *s)
{
    size_t n = strcspn(s, " \t\r\n\"'<>`");
    while (n && strchr(",;:.)]}", s[n - 1]))
        n--;
    return n;
}

static bool is_port(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i]))
            return false;
    return true;
}

static const char *last_at(const char *s, size_t n)
{
    return memrchr(s, '@', n);
}

/* Length of the userinfo before '@', or 0. A password should not hold a '/' unescaped, but people
 * write such: where what follows the first colon is no port, the last '@' of the whole URL ends it.
 */
static size_t userinfo_length(const char *s, size_t n)
{
    size_t authority = strcspn(s, "/?#");
    if (authority > n)
        authority = n;
    const char *at = last_at(s, authority);
    const char *colon = memchr(s, ':', authority);
    if (!at && colon && *s != '[' && !is_port(colon + 1, authority - (size_t)(colon + 1 - s)))
        at = last_at(s, n);
    return at ? (size_t)(at - s) : 0;
}

/* "?a=SECRET&b=SECRET#c=SECRET", to `end`; an item of the query without '=' is a secret as a whole.
 */
static void redact_query(struct line *l, const char *end)
{
    bool is_fragment = false;
    while (l->in < end) {
        is_fragment |= *l->in == '#';
        copy(l, 1); /* '?', '&' or '#' */
        size_t item = strcspn(l->in, "&#");
        if (item > (size_t)(end - l->in))
            item = (size_t)(end - l->in);
        const char *equals = memchr(l->in, '=', item);
        size_t key = equals ? (size_t)(equals - l->in) + 1 : is_fragment ? item : 0;
        copy(l, key);
        mask(l, item - key);
    }
}

static void redact_url(struct line *l) /* after "://" */
{
    size_t n = url_length(l->in), user = userinfo_length(l->in, n);
    const char *end = l->in + n;
    const char *colon = memchr(l->in, ':', user);
    size_t name = colon ? (size_t)(colon - l->in) + 1 : 0;
    copy(l, name);
    mask(l, user - name);
    size_t path = strcspn(l->in, "?#");
    copy(l, path < (size_t)(end - l->in) ? path : (size_t)(end - l->in));
    redact_query(l, end);
}

/* --- names and headers ----------------------------------------------------------------------- */

static bool is_same(char a, char b) /* '-' and '_' alike, letters of either case */
{
    return (a == '-' ? '_' : tolower((unsigned char)a)) == b;
}

static bool ends_with(const char *word, size_t n, const char *end)
{
    size_t m = strlen(end);
    for (size_t i = 0; i < m; i++)
        if (m > n || !is_same(word[n - m + i], end[i]))
            return false;
    return true;
}

static bool is_secret_name(const char *word, size_t n, bool is_colon)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((!is_colon || names[i].has_colon_form) && ends_with(word, n, names[i].end))
            return true;
    return false;
}

static bool is_header(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (strlen(headers[i]) == n && !strncasecmp(word, headers[i], n))
            return true;
    return false;
}

/* A quoted value up to its closing quote (a backslash hides one), else one word. */
static void redact_value(struct line *l)
{
    char quote = *l->in == '"' || *l->in == '\'' ? *l->in : 0;
    if (!quote) {
        mask(l, strcspn(l->in, " \t\r\n\"'"));
        return;
    }
    copy(l, 1);
    size_t n = 0;
    while (l->in[n] && l->in[n] != quote)
        n += l->in[n] == '\\' && l->in[n + 1] ? 2 : 1;
    mask(l, n);
}

/* After a word: bytes of its quote, blanks and the separator up to the value; 0 when there is none.
 */
static size_t separator(const char *s, bool is_dashed, bool *ret_is_colon)
{
    size_t start = *s == '"' || *s == '\'';
    size_t n = start + strspn(s + start, blanks);
    bool is_colon = s[n] == ':' && s[n + 1] != '/';
    *ret_is_colon = is_colon && !start; /* "token": in quotes is no prose */
    if (s[n] != '=' && !is_colon)
        return is_dashed && n > start ? n : 0; /* --password SECRET */
    n++;
    return n + strspn(s + n, blanks);
}

static void redact_word(struct line *l)
{
    const char *word = l->in;
    size_t n = 0;
    while (is_word(word[n]))
        n++;
    bool is_colon;
    size_t gap = separator(word + n, n > 2 && word[0] == '-' && word[1] == '-', &is_colon);
    bool header = gap && is_header(word, n), bearer = n == 6 && !strncasecmp(word, "bearer", 6);
    bool secret = gap && is_secret_name(word, n, is_colon);
    if (bearer && !gap)
        gap = strspn(word + n, blanks);
    copy(l, n);
    if (!strncmp(l->in, "://", 3)) {
        copy(l, 3);
        redact_url(l);
    } else if (header && *(l->in + gap) != '"') {
        copy(l, gap);
        mask(l, strcspn(l->in, "\"\r\n"));
    } else if (header || secret || (bearer && gap)) {
        copy(l, gap);
        redact_value(l);
    }
}

void log_redact(char *line)
{
    struct line l = {line, line};
    while (*l.in) {
        if (is_word(*l.in))
            redact_word(&l);
        else
            copy(&l, 1);
    }
    *l.out = 0;
}
