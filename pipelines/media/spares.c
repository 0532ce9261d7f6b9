#include "pipelines/media/spares.h"

#include <pthread.h>

#include "common/strbuf.h"

enum { SPARES_MAX = 32 }; /* a ladder has fewer */

struct spare {
    struct encoder_codec *codec;
    enum { SPARE_NEW, SPARE_BUSY, SPARE_OPEN } state;
};

struct spares {
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct spare list[SPARES_MAX];
    size_t n;
    bool is_stopping;
};

struct spares *spares_new(void)
{
    struct spares *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    return s;
}

/* With the lock held: the first in that state, or like that codec; NULL: none. */
static struct spare *find(struct spares *s, int state, const struct encoder_codec *like)
{
    for (size_t i = 0; i < s->n; i++)
        if (like ? encoder_codec_equals(s->list[i].codec, like) : (int)s->list[i].state == state)
            return &s->list[i];
    return NULL;
}

static struct encoder_codec *take_out(struct spares *s, struct spare *at)
{
    struct encoder_codec *codec = at->codec;
    *at = s->list[--s->n];
    return codec;
}

/* While a codec is being opened its place is kept, and nobody else touches it. */
static void *run(void *arg)
{
    struct spares *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping) {
        struct spare *at = find(s, SPARE_NEW, NULL);
        if (!at) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        struct encoder_codec *codec = at->codec;
        struct err ignored;
        at->state = SPARE_BUSY;
        pthread_mutex_unlock(&s->lock);
        int status = encoder_codec_open(codec, &ignored);
        pthread_mutex_lock(&s->lock);
        at = find(s, SPARE_BUSY, NULL); /* others may have moved it */
        at->state = SPARE_OPEN;
        if (status < 0) {
            codec = take_out(s, at);
            encoder_codec_free(&codec);
        }
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void spares_put(struct spares *s, struct encoder_codec *codec)
{
    pthread_mutex_lock(&s->lock);
    if (!s->has_thread)
        s->has_thread = pthread_create(&s->thread, NULL, run, s) == 0;
    if (s->has_thread && s->n < SPARES_MAX && !encoder_codec_is_gop_encoder(codec))
        s->list[s->n++] = (struct spare){codec, SPARE_NEW};
    else
        encoder_codec_free(&codec);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

struct encoder_codec *spares_take(struct spares *s, const struct encoder_codec *like)
{
    struct spare *at;
    pthread_mutex_lock(&s->lock);
    while ((at = find(s, 0, like)) && at->state == SPARE_BUSY)
        pthread_cond_wait(&s->changed, &s->lock);
    struct encoder_codec *codec = at ? take_out(s, at) : NULL;
    pthread_mutex_unlock(&s->lock);
    return codec;
}

void spares_clear(struct spares *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->n) {
        struct spare *at = &s->list[s->n - 1];
        if (at->state == SPARE_BUSY) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        struct encoder_codec *codec = take_out(s, at);
        encoder_codec_free(&codec);
    }
    pthread_mutex_unlock(&s->lock);
}

void spares_free(struct spares **pp)
{
    struct spares *s = *pp;
    if (!s)
        return;
    spares_clear(s);
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    *pp = NULL;
}
