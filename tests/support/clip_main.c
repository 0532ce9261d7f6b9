/*
 * clip: makes and reads test clips from scripts.
 *
 *     clip make FILE [--OPTION VALUE ...]
 *     clip read FILE [STREAM]     one line a frame: pts time number key type width height
 *     clip audio FILE [STREAM]    sample counts, pulses, roughness
 */
#include <libavutil/log.h>
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"
#include "tests/support/clip.h"

struct arguments {
    struct clip_options o;
    int64_t *pts;
};

static void set_pts(struct arguments *a, const char *list)
{
    int n = 0;
    a->pts = xrealloc_array(a->pts, strlen(list) + 1, sizeof *a->pts);
    for (char *end; *list; list = *end ? end + 1 : end)
        a->pts[n++] = strtoll(list, &end, 10);
    a->o.pts = a->pts;
    a->o.frames = n;
}

/* "codec=aac,rate=44100,channels=1,start=0.5,end=2,language=deu,title=Deutsch,default=1" */
static int add_audio(struct clip_options *o, char *text)
{
    if (o->n_audio == CLIP_AUDIO_MAX)
        return -1;
    struct clip_audio *a = &o->audio[o->n_audio++];
    for (char *save, *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        char *value = strchr(item, '=');
        if (!value)
            return -1;
        *value++ = 0;
        if (!strcmp(item, "codec"))
            a->codec = value;
        else if (!strcmp(item, "rate"))
            a->sample_rate = atoi(value);
        else if (!strcmp(item, "channels"))
            a->channels = atoi(value);
        else if (!strcmp(item, "start"))
            a->start_seconds = atof(value);
        else if (!strcmp(item, "end"))
            a->end_seconds = atof(value);
        else if (!strcmp(item, "language"))
            a->language = value;
        else if (!strcmp(item, "title"))
            a->title = value;
        else if (!strcmp(item, "default"))
            a->is_default = atoi(value);
        else
            return -1;
    }
    return 0;
}

enum kind { TEXT, INT, FLAG, RATIONAL, SECONDS, TICKS };

static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *help;
} table[] = {
#define ROW(name, kind, member, help)                           \
    {                                                           \
        name, kind, offsetof(struct clip_options, member), help \
    }
    ROW("format", TEXT, format, "muxer; default by the file's ending"),
    ROW("audio-only", FLAG, is_audio_only, "no video"),
    ROW("codec", TEXT, codec, "video encoder (libx264)"),
    ROW("width", INT, width, "upright width (320)"),
    ROW("height", INT, height, "upright height (180)"),
    ROW("pix-fmt", TEXT, pix_fmt, "pixel format"),
    ROW("fps", RATIONAL, fps, "frame rate (25)"),
    ROW("frames", INT, frames, "number of frames (50)"),
    ROW("time-base", RATIONAL, time_base, "of --pts and of the encoder (1/fps)"),
    ROW("gop", INT, gop, "frames a GOP (one second); 1: intra only"),
    ROW("open-gop", FLAG, is_open_gop, "open GOPs"),
    ROW("b-frames", INT, b_frames, "B-frames in a row"),
    ROW("pyramid", FLAG, is_pyramid, "B-frames as references"),
    ROW("interlaced", FLAG, is_interlaced, "two fields a frame"),
    ROW("bottom-first", FLAG, is_bottom_first, "bottom field first"),
    ROW("rotation", INT, rotation, "clockwise degrees for display: 90, 180, 270"),
    ROW("sar", RATIONAL, sample_aspect, "sample aspect ratio, n/d"),
    ROW("primaries", TEXT, color_primaries, "bt2020, ..."),
    ROW("transfer", TEXT, color_transfer, "smpte2084, arib-std-b67, ..."),
    ROW("space", TEXT, color_space, "bt2020nc, ..."),
    ROW("range", TEXT, color_range, "tv, pc"),
    ROW("video-options", TEXT, video_options, "key=value:... for the encoder"),
    ROW("start", SECONDS, start_seconds, "added to all timestamps; may be negative"),
    ROW("start-90k", TICKS, start_90k, "the same in 1/90000 s (8589844592: wraps after 1 s)"),
    ROW("cover", FLAG, has_cover, "an attached picture"),
    ROW("muxer-options", TEXT, muxer_options, "key=value:... for the muxer"),
#undef ROW
};

static int usage(void)
{
    fputs("usage: clip make FILE [options] | clip read FILE [STREAM] | clip audio FILE [STREAM]\n",
          stderr);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        fprintf(stderr, "  --%-16s %s\n", table[i].name, table[i].help);
    fputs("  --pts              a,b,c,...: times of all frames in --time-base\n"
          "  --audio            codec=aac,rate=48000,channels=2,start=0,end=2,language=deu,"
          "title=T,default=1 (again and again)\n",
          stderr);
    return 2;
}

static int set_row(size_t i, struct clip_options *o, const char *value)
{
    void *field = (char *)o + table[i].offset;
    switch (table[i].kind) {
    case TEXT:
        *(const char **)field = value;
        return 0;
    case INT:
        *(int *)field = atoi(value);
        return 0;
    case FLAG:
        *(bool *)field = true;
        return 0;
    case RATIONAL:
        return rational_parse(value, field);
    case SECONDS:
        *(double *)field = atof(value);
        return 0;
    case TICKS:
        *(int64_t *)field = atoll(value);
        return 0;
    }
    return -1;
}

/* Takes one option and its value; returns how many words it was, or -1. */
static int set_option(struct arguments *a, char *word, char *value)
{
    if (strncmp(word, "--", 2) != 0)
        return -1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bool is_flag = table[i].kind == FLAG;
        if (!strcmp(word + 2, table[i].name))
            return (is_flag || value) && set_row(i, &a->o, value) == 0 ? 2 - is_flag : -1;
    }
    if (!strcmp(word, "--pts") && value) {
        set_pts(a, value);
        return 2;
    }
    if (!strcmp(word, "--audio") && value)
        return add_audio(&a->o, value) == 0 ? 2 : -1;
    return -1;
}

static int make(int argc, char **argv, struct err *e)
{
    struct arguments a = {0};
    for (int i = 3, n; i < argc; i += n)
        if ((n = set_option(&a, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) < 0) {
            free(a.pts);
            return err_set(e, ERR_USAGE, "clip: option %s", argv[i]);
        }
    int r = clip_make(argv[2], &a.o, e);
    free(a.pts);
    return r;
}

static void print_frame(void *arg, const struct clip_frame *f)
{
    (void)arg;
    printf("%lld %.6f %lld %d %c %d %d\n", (long long)f->pts, (double)f->pts * av_q2d(f->time_base),
           (long long)f->number, f->is_key, f->type, f->width, f->height);
}

static int print_audio(const char *path, int index, struct err *e)
{
    static struct clip_sound s;
    int r = clip_read_audio(path, index, &s, e);
    if (r < 0)
        return r;
    printf("rate %d\nchannels %d\nstart %lld\nsamples %lld\ngaps %lld\nroughness %.2f at %.4f\n",
           s.sample_rate, s.channels, (long long)s.start, (long long)s.samples, (long long)s.gaps,
           s.roughness, s.roughness_at);
    for (int i = 0; i < s.n_pulses; i++)
        printf("pulse %lld %.6f\n", (long long)s.pulses[i], (double)s.pulses[i] / s.sample_rate);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    av_log_set_level(AV_LOG_ERROR);
    if (argc < 3)
        return usage();
    int index = argc > 3 ? atoi(argv[3]) : 0;
    int64_t r = -ERR_USAGE;
    if (!strcmp(argv[1], "make"))
        r = make(argc, argv, &e);
    else if (!strcmp(argv[1], "read"))
        r = clip_read_video(argv[2], index, print_frame, NULL, &e);
    else if (!strcmp(argv[1], "audio"))
        r = print_audio(argv[2], index, &e);
    if (r == -ERR_USAGE)
        usage();
    if (r < 0)
        fprintf(stderr, "%s\n", e.msg);
    return r < 0 ? err_exit_code((enum err_kind) - r) : 0;
}
