#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

static const struct {
    const char *name;
    int exit_code;
    int http_status;
    bool is_permanent;
} kinds[] = {
    [ERR_NONE] = {"none", 0, 200, false},
    [ERR_USAGE] = {"usage", 2, 400, true},
    [ERR_CONFIG] = {"config", 2, 400, true},
    [ERR_INPUT] = {"input", 3, 422, true},
    [ERR_TRANSIENT] = {"transient", 4, 503, false},
    [ERR_RESOURCE] = {"resource", 4, 507, false},
    [ERR_DEVICE] = {"device", 5, 503, false},
    [ERR_CANCELLED] = {"cancelled", 1, 409, true},
    [ERR_BUG] = {"bug", 1, 500, false},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* What goes into JSON, logs and terminals: one line of valid UTF-8 without control characters,
 * whatever file names and metadata were quoted. A character cut in two at the end is left out. */
static void tidy(char *s, bool is_cut)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        size_t valid = i + utf8_span(s + i, n - i);
        for (; i < valid; i++)
            if ((unsigned char)s[i] < ' ' || s[i] == 0x7F)
                s[i] = ' ';
        if (i < n)
            s[i] = is_cut && n - i < 4 ? 0 : '?';
        if (!s[i])
            return;
    }
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    if (!e)
        return -(int)kind;
    char msg[ERR_MSG_MAX]; /* fmt's arguments may point into e->msg */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    tidy(msg, n >= (int)sizeof msg);
    e->kind = kind;
    memcpy(e->msg, msg, sizeof msg);
    return -(int)kind;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e)
        return -(int)ERR_BUG;
    char head[ERR_MSG_MAX / 2], msg[2 * ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    tidy(head, n >= (int)sizeof head);
    n = snprintf(msg, sizeof msg, "%s: %s", head, e->msg);
    msg[ERR_MSG_MAX - 1] = 0;
    tidy(msg, n >= ERR_MSG_MAX);
    memcpy(e->msg, msg, ERR_MSG_MAX);
    return -(int)e->kind;
}

const char *err_kind_name(enum err_kind kind)
{
    return (unsigned)kind < KINDS ? kinds[kind].name : "bug";
}

enum err_kind err_kind_parse(const char *name)
{
    for (int k = 0; k < KINDS; k++)
        if (name && !strcmp(name, kinds[k].name))
            return k;
    return ERR_BUG;
}

int err_exit_code(enum err_kind kind)
{
    return (unsigned)kind < KINDS ? kinds[kind].exit_code : 1;
}

int err_http_status(enum err_kind kind)
{
    return (unsigned)kind < KINDS ? kinds[kind].http_status : 500;
}

const char *err_exit_meaning(int code)
{
    static const char *const texts[] = {
        "done",
        "failed",
        "wrong command line, profile or configuration",
        "bad input: the source is broken, refused or over a limit",
        "may work when tried again",
        "no usable device or encoder",
        "stopped by a signal, the work given back",
    };
    return code >= 0 && code < (int)(sizeof texts / sizeof texts[0]) ? texts[code] : NULL;
}

bool err_is_permanent(enum err_kind kind)
{
    return (unsigned)kind < KINDS && kinds[kind].is_permanent;
}
