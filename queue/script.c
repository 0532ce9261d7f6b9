#include "queue/script.h"

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

/* The script's whole text behind the head: _lib.lua, then its own. */
static void add_text(struct request *head, int i)
{
    const struct embed_file *lib = &queue_lua[find("_lib")];
    cleanup(strbuf_free) struct strbuf text = {0};
    strbuf_add(&text, lib->text, lib->size);
    strbuf_add(&text, queue_lua[i].text, queue_lua[i].size);
    request_bytes(head, text.s, text.len);
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
