/*
 * The same job as one ffmpeg command: for people to read, compare and try. It makes the same ladder
 * from one decode; what it lacks is what the product is for (chunks, exact borders on every rate).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"
#include "pipelines/plan/plan.h"

#define NEXT " \\\n  "

/* 'it'\''s' : safe in any POSIX shell. */
static void add_quoted(struct strbuf *b, const char *s)
{
    strbuf_puts(b, "'");
    for (; *s; s++)
        strbuf_puts(b, *s == '\'' ? "'\\''" : (char[]){*s, 0});
    strbuf_puts(b, "'");
}

static void add_rational(struct strbuf *b, struct rational r)
{
    strbuf_printf(b, r.den == 1 ? "%lld" : "%lld/%lld", (long long)r.num, (long long)r.den);
}

static void add_filters(struct strbuf *b, const struct plan *plan, const struct source *source)
{
    strbuf_printf(b, NEXT "-filter_complex '[0:%d]", source->video->stream);
    if (plan->is_deinterlaced)
        strbuf_puts(b, "bwdif=mode=send_frame,");
    if (plan->is_tonemapped) /* on a GPU, which need not be one that encodes */
        strbuf_puts(b, "libplacebo=tonemapping=bt.2390:colorspace=bt709:color_primaries=bt709:"
                       "color_trc=bt709:range=limited:format=yuv420p10,");
    strbuf_printf(b, "split=%zu", plan->n_renditions);
    for (size_t i = 0; i < plan->n_renditions; i++)
        strbuf_printf(b, "[s%zu]", i);
    for (size_t i = 0; i < plan->n_renditions; i++) {
        const struct plan_rendition *r = &plan->renditions[i];
        strbuf_printf(b, ";[s%zu]", i);
        if (rational_is_set(r->fps)) {
            strbuf_puts(b, "fps=");
            add_rational(b, r->fps);
            strbuf_puts(b, ",");
        }
        strbuf_printf(b, "scale=%d:%d,setsar=1,format=%s[v%zu]", r->width, r->height,
                      plan->pix_fmt ? plan->pix_fmt : "yuv420p", i);
    }
    strbuf_puts(b, "'");
}

static void add_option(struct strbuf *b, const char *key, size_t i, const char *value)
{
    if (!value)
        return;
    strbuf_printf(b, " -%s:v:%zu ", key, i);
    add_quoted(b, value);
}

static void add_number(struct strbuf *b, const char *key, size_t i, int64_t value)
{
    if (value > 0)
        strbuf_printf(b, " -%s:v:%zu %lld", key, i, (long long)value);
}

static void add_video(struct strbuf *b, const struct plan *plan, size_t i)
{
    const struct plan_rendition *r = &plan->renditions[i];
    strbuf_printf(b, NEXT "-map '[v%zu]' -c:v:%zu %s", i, i, plan->encoder);
    add_option(b, "preset", i, plan->preset);
    add_option(b, "profile", i, r->encoder_profile);
    add_option(b, "level", i, r->level);
    add_number(b, "b", i, r->bitrate);
    if (r->crf >= 0)
        strbuf_printf(b, " -crf:v:%zu %g", i, r->crf);
    add_number(b, "maxrate", i, r->maxrate);
    add_number(b, "bufsize", i, r->bufsize);
    for (size_t k = 0; k < r->n_options; k++) {
        size_t n = strcspn(r->options[k], "=");
        char *key = xstrdup(r->options[k]);
        key[n] = 0;
        add_option(b, key, i, r->options[k][n] ? r->options[k] + n + 1 : "1");
        free(key);
    }
}

/* Keyframes by time, and by nothing else: no scene cuts, no limit that strikes first. */
static void add_gop(struct strbuf *b, const struct plan *plan, const struct source *source)
{
    double rate = rational_to_double(source->video->frame_rate);
    double gop = rational_to_double(plan->gop);
    int frames = (int)ceil(2 * gop * (rate > 0 && rate < 1000 ? rate : 60));
    strbuf_printf(b, NEXT "-force_key_frames 'expr:gte(t,n_forced*");
    add_rational(b, plan->gop);
    strbuf_printf(b, ")' -g %d -fps_mode passthrough", frames);
    if (!strcmp(plan->encoder, "libx264"))
        strbuf_puts(b, " -sc_threshold 0");
}

static void add_audio(struct strbuf *b, const struct plan *plan, const struct source *source,
                      size_t i)
{
    const struct plan_audio *a = &plan->audio[i];
    strbuf_printf(b, NEXT "-map 0:%d -c:a:%zu %s", source->audio[a->track].stream, i, a->encoder);
    if (a->bitrate)
        strbuf_printf(b, " -b:a:%zu %lld", i, (long long)a->bitrate);
    strbuf_printf(b, " -ac:a:%zu %d -ar:a:%zu %d", i, a->channels, i, a->sample_rate);
}

static void add_stream_map(struct strbuf *b, const struct plan *plan)
{
    const char *gap = "";
    strbuf_puts(b, NEXT "-var_stream_map '");
    for (size_t i = 0; i < plan->n_renditions; i++, gap = " ") {
        strbuf_printf(b, "%sv:%zu,name:%s", gap, i, plan->renditions[i].name);
        if (plan->n_audio)
            strbuf_printf(b, ",agroup:%s", plan->audio[0].group);
    }
    for (size_t i = 0; i < plan->n_audio; i++, gap = " ") {
        strbuf_printf(b, "%sa:%zu,name:%s", gap, i, plan->audio[i].name);
        if (plan->n_renditions)
            strbuf_printf(b, ",agroup:%s,default:%s", plan->audio[i].group,
                          plan->audio[i].is_default ? "yes" : "no");
    }
    strbuf_puts(b, "'");
}

char *plan_ffmpeg_command(const struct plan *plan, const struct source *source, const char *input,
                          const char *output)
{
    struct strbuf b = {0};
    strbuf_puts(&b, "ffmpeg -i ");
    add_quoted(&b, input);
    if (plan->n_renditions) {
        add_filters(&b, plan, source);
        for (size_t i = 0; i < plan->n_renditions; i++)
            add_video(&b, plan, i);
        add_gop(&b, plan, source);
    }
    for (size_t i = 0; i < plan->n_audio; i++)
        add_audio(&b, plan, source, i);
    strbuf_printf(&b,
                  NEXT "-f hls -hls_playlist_type vod -hls_flags independent_segments "
                       "-hls_segment_type %s -hls_time %g",
                  plan->segments == SEGMENTS_TS ? "mpegts" : "fmp4",
                  rational_to_double(plan->segment));
    add_stream_map(&b, plan);
    char *segments =
        xasprintf("%s/%%v/%%05d.%s", output, plan->segments == SEGMENTS_TS ? "ts" : "m4s");
    char *playlists = xasprintf("%s/%%v/index.m3u8", output);
    strbuf_puts(&b, NEXT "-master_pl_name master.m3u8 -hls_segment_filename ");
    add_quoted(&b, segments);
    strbuf_puts(&b, " ");
    add_quoted(&b, playlists);
    free(segments);
    free(playlists);
    return strbuf_take(&b);
}
