#include "queue/script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/embed.h"
#include "queue/handle.h"

enum { SHA_LEN = 40 };

struct script_set {
    size_t n;
    char (*sha)[SHA_LEN + 1]; /* beside queue_lua[]; "" until asked for */
};

struct script_set *script_set_new(void)
{
    struct script_set *s = xcalloc(1, sizeof *s);
    while (queue_lua[s->n].name)
        s->n++;
    s->sha = xcalloc(s->n, sizeof *s->sha);
    return s;
}

void script_set_free(struct script_set **s)
{
    if (!*s)
        return;
    free((*s)->sha);
    free(*s);
    *s = NULL;
}

static int find(const char *name)
{
    for (int i = 0; queue_lua[i].name; i++)
        if (!strcmp(queue_lua[i].name, name))
            return i;
    return -1;
}

/* ---- the text of a script ---- */

enum { DEFINITIONS_MAX = 96 };

struct definition { /* from "local" at the beginning of a line to the next such line or comment */
    const char *text;
    size_t size;
};

static const char *const parts[] = {"_lib", "_move", "_end", "_keep"};

/* Cuts the parts that scripts share into definitions; returns how many. */
static size_t find_definitions(struct definition ret[DEFINITIONS_MAX])
{
    size_t n = 0;
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        bool is_inside = false;
        const char *end;
        for (const char *line = queue_lua[find(parts[p])].text; *line; line = end) {
            end = strchrnul(line, '\n');
            end += *end == '\n';
            if (!strncmp(line, "local ", 6) && n < DEFINITIONS_MAX) {
                ret[n++] = (struct definition){.text = line};
                is_inside = true;
            } else if (!strncmp(line, "--", 2)) {
                is_inside = false;
            }
            if (is_inside)
                ret[n - 1].size = (size_t)(end - ret[n - 1].text);
        }
    }
    return n;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *word, size_t n)
{
    for (const char *p = text; (p = memmem(p, strlen(p), word, n)); p++)
        if (!is_word(p[n]) && (p == text || !is_word(p[-1])))
            return true;
    return false;
}

/* Whether text uses a name of the definition: "local function NAME(" or "local NAME, NAME = ". */
static bool is_used(const struct definition *d, const char *text)
{
    const char *p = d->text + strlen("local ");
    if (!strncmp(p, "function ", 9))
        p += 9;
    for (;; p += 2) {
        size_t n = 0;
        while (is_word(p[n]))
            n++;
        if (has_word(text, p, n))
            return true;
        p += n;
        if (strncmp(p, ", ", 2))
            return false;
    }
}

/* Comments are in the way: they speak of names that the script does not use. (No string of the
 * scripts holds two dashes.) */
static char *without_comments(const char *text)
{
    struct strbuf b = {0};
    for (const char *line = text, *end; *line; line = end) {
        end = strchrnul(line, '\n');
        const char *comment = memmem(line, (size_t)(end - line), "--", 2);
        const char *code = line + strspn(line, " ");
        if (comment != code)
            strbuf_printf(&b, "%.*s\n", (int)((comment ? comment : end) - line), line);
        end += *end == '\n';
    }
    return strbuf_take(&b);
}

/* The next paragraph begins behind a blank line, in the first column. */
static const char *paragraph_end(const char *text)
{
    const char *p = text;
    while ((p = strstr(p, "\n\n")) && isspace((unsigned char)p[2]))
        p++;
    return p ? p + 2 : text + strlen(text);
}

/* The script's whole text behind the head. What a paragraph uses of the shared parts, and none
 * before it, stands in front of it: a script that has returned by then does not pay for it. A
 * definition uses only those before it, so that one pass from the last to the first finds all. */
static void add_text(struct request *head, int i)
{
    struct definition definitions[DEFINITIONS_MAX];
    bool is_there[DEFINITIONS_MAX] = {0};
    size_t n = find_definitions(definitions);
    cleanup(free_ptr) char *text = without_comments(queue_lua[i].text);
    cleanup(strbuf_free) struct strbuf whole = {0};
    for (const char *p = text, *end; *p; p = end) {
        end = paragraph_end(p);
        cleanup(free_ptr) char *part = xasprintf("%.*s", (int)(end - p), p);
        for (size_t d = n; d--;)
            if (!is_there[d] && is_used(&definitions[d], part)) {
                char *longer =
                    xasprintf("%.*s%s", (int)definitions[d].size, definitions[d].text, part);
                free(part);
                part = longer;
                is_there[d] = true;
            }
        strbuf_add(&whole, part, strlen(part));
    }
    request_string(head, whole.s);
}

static int load(struct script_set *s, struct connection *c, int i, struct err *e)
{
    cleanup(request_free) struct request command = {0};
    cleanup(reply_free) redisReply *reply = NULL;
    request_strings(&command, "SCRIPT", "LOAD", NULL);
    add_text(&command, i);
    int r = connection_call(c, &command, NULL, 0, &reply, e);
    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_STRING || reply->len != SHA_LEN)
        return err_set(e, ERR_BUG, "queue %s: SCRIPT LOAD gave no hash", connection_name(c));
    memcpy(s->sha[i], reply->str, SHA_LEN);
    return 0;
}

int script_call(struct script_set *s, struct connection *c, const char *name,
                const struct request *argv, redisReply **ret, struct err *e)
{
    int i = find(name);
    if (i < 0)
        return err_set(e, ERR_BUG, "queue: no script %s in this program", name);
    int r = s->sha[i][0] ? 0 : load(s, c, i, e);
    if (r < 0)
        return r;
    cleanup(request_free) struct request by_sha = {0};
    request_strings(&by_sha, "EVALSHA", s->sha[i], "1", QUEUE_PREFIX, NULL);
    r = connection_call(c, &by_sha, argv, 0, ret, e);
    if (r < 0 || (*ret)->type != REDIS_REPLY_ERROR)
        return r;
    reply_free(ret); /* NOSCRIPT: restarted, failed over or flushed */
    cleanup(request_free) struct request by_text = {0};
    request_string(&by_text, "EVAL");
    add_text(&by_text, i);
    request_strings(&by_text, "1", QUEUE_PREFIX, NULL);
    return connection_call(c, &by_text, argv, 0, ret, e);
}
