/*
 * Reading profiles. What a table row can say is in the tables; relations between keys are in the
 * check functions; what depends on the source waits for the planner (ladder.c), which also fills
 * the rate control that was left out:
 *
 *   maxrate  1.5 x bitrate. Apple allows VOD peaks of twice the average. Over one 6 s segment a
 *            full buffer adds bufsize/6 s, so 1.5 x + 2 x / 6 = 1.83 x stays below 2 x.
 *   bufsize  2 x bitrate, or 2 x maxrate where there is no bit rate (capped CRF).
 */
#include "pipelines/plan/profile.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/embed.h"
#include "common/strbuf.h"

enum {
    RENDITIONS_MAX = 32,
    AUDIO_MAX = 8,
    PIXELS_SIDE_MAX = 16384,
    SECONDS_MAX = 60,
    THUMBNAIL_SECONDS_MAX = 3600,
    THUMBNAIL_HEIGHT_MIN = 16,
    THUMBNAIL_HEIGHT_MAX = 1080,
};

static const char *const deinterlace_names[] = {"auto", "off", NULL};
static const char *const hdr_names[] = {"tonemap", "as-is", "refuse", NULL};
static const char *const segments_names[] = {"fmp4", "ts", NULL};
static const char *const fps_policy_names[] = {"source", "cap", "fixed", NULL};

/* Names become folders and parts of URLs. */
static bool is_name(const char *s)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    size_t n = strlen(s);
    return n > 0 && n <= 64 && s[0] != '.' && strspn(s, allowed) == n;
}
#define NAME_RULE "expected 1 to 64 letters, digits, '.', '_' or '-', not starting with '.'"

/* One rule of a check function: when it is broken, its text and the key to blame. */
struct rule {
    bool is_broken;
    const char *key, *text;
};

static const char *first_broken(const struct rule *rules, size_t n, const char **ret_key)
{
    for (size_t i = 0; i < n; i++)
        if (rules[i].is_broken) {
            *ret_key = rules[i].key;
            return rules[i].text;
        }
    return NULL;
}

static const char *check_rendition(const void *object, const char **ret_key)
{
    const struct profile_rendition *r = object;
    bool has_fps = rational_is_set(r->fps);
    struct rational fastest = {1000, 1}, slowest = {1, 1};
    const struct rule rules[] = {
        {r->name && !is_name(r->name), "name", NAME_RULE},
        {!r->width && !r->height, "height", "expected a height, a width or both"},
        {!r->bitrate && r->crf < 0, "bitrate", "expected a bitrate or a crf"},
        {r->bitrate && r->crf >= 0, "crf",
         "expected either bitrate or crf; cap a crf with maxrate"},
        {r->maxrate && r->maxrate < r->bitrate, "maxrate", "expected at least the bitrate"},
        {r->fps_policy == FPS_SOURCE && has_fps, "fps", "expected fps_policy cap or fixed with it"},
        {r->fps_policy != FPS_SOURCE && !has_fps, "fps", "expected a frame rate for this policy"},
        {has_fps && (rational_cmp(r->fps, slowest) < 0 || rational_cmp(r->fps, fastest) > 0), "fps",
         "expected 1 to 1000 frames/s"},
    };
    return first_broken(rules, sizeof rules / sizeof *rules, ret_key);
}

static const char *check_audio(const void *object, const char **ret_key)
{
    const struct profile_audio *a = object;
    if (!a->name || is_name(a->name))
        return NULL;
    *ret_key = "name";
    return NAME_RULE;
}

static const char *check_thumbnails(const void *object, const char **ret_key)
{
    const struct profile_thumbnails *t = object;
    struct rational least = {1, 1}, most = {THUMBNAIL_SECONDS_MAX, 1};
    if (rational_cmp(t->every, least) >= 0 && rational_cmp(t->every, most) <= 0)
        return NULL;
    *ret_key = "every";
    return "expected 1 to 3600 seconds";
}

/* Whether a rendition is named like the folder of thumbnails. */
static bool is_thumbnails_taken(const struct profile *p)
{
    bool is_taken = false;
    for (size_t i = 0; p->thumbnails && i < p->n_renditions; i++)
        is_taken |= p->renditions[i].name && !strcmp(p->renditions[i].name, THUMBNAILS_FOLDER);
    for (size_t i = 0; p->thumbnails && i < p->n_audio; i++)
        is_taken |= p->audio[i].name && !strcmp(p->audio[i].name, THUMBNAILS_FOLDER);
    return is_taken;
}

static const char *check_profile(const void *object, const char **ret_key)
{
    const struct profile *p = object;
    struct rational none = {0, 1}, least = {1, 1}, most = {SECONDS_MAX, 1}, ratio = {0, 2};
    if (rational_cmp(p->gop, none) > 0)
        ratio = rational_div(p->segment, p->gop);
    const struct rule rules[] = {
        {p->name && !is_name(p->name), "name", NAME_RULE},
        {rational_cmp(p->gop, none) <= 0 || rational_cmp(p->gop, most) > 0, "gop",
         "expected more than 0 and at most 60 seconds"},
        {rational_cmp(p->segment, least) < 0 || rational_cmp(p->segment, most) > 0, "segment",
         "expected 1 to 60 seconds"},
        {ratio.den != 1 || ratio.num < 1, "segment", "expected a whole multiple of gop"},
        {!p->n_renditions && !p->n_audio, "renditions", "expected a rendition or an audio entry"},
        {p->n_renditions && !p->encoder, "encoder", "expected an encoder for the renditions"},
        {p->thumbnails && !p->n_renditions, "thumbnails", "expected renditions to go with them"},
        {is_thumbnails_taken(p), "thumbnails",
         "expected no rendition of the name " THUMBNAILS_FOLDER ", which is their folder"},
    };
    const char *fault = first_broken(rules, sizeof rules / sizeof *rules, ret_key);
    *ret_key = fault ? *ret_key : "renditions";
    for (size_t i = 0; !fault && i < p->n_renditions; i++)
        for (size_t k = 0; k < i; k++)
            if (p->renditions[i].name && p->renditions[k].name &&
                !strcmp(p->renditions[i].name, p->renditions[k].name))
                fault = "expected names that differ";
    return fault;
}

static const struct bind_field rendition_fields[] = {
    BIND(struct profile_rendition, name, BIND_STRING,
         .help = "folder; default from height and rate, such as 1080p-7800k"),
    BIND(struct profile_rendition, width, BIND_INT, .min = 0, .max = PIXELS_SIDE_MAX,
         .help = "box to fit into, aspect kept; 0: as the height gives it"),
    BIND(struct profile_rendition, height, BIND_INT, .min = 0, .max = PIXELS_SIDE_MAX,
         .help = "box to fit into, turned for vertical video; 0: as the width gives it"),
    BIND(struct profile_rendition, bitrate, BIND_BITRATE, .min = 0, .max = 1000000000,
         .help = "average, bits/s"),
    BIND(struct profile_rendition, maxrate, BIND_BITRATE, .min = 0, .max = 2000000000,
         .help = "peak, bits/s; default 1.5 x bitrate"),
    BIND(struct profile_rendition, bufsize, BIND_BITRATE, .min = 0, .max = 2000000000,
         .help = "rate control buffer, bits; default 2 x bitrate or maxrate"),
    BIND(struct profile_rendition, crf, BIND_DOUBLE, .fallback = "-1", .min = -1, .max = 63,
         .help = "constant quality, instead of bitrate"),
    BIND(struct profile_rendition, fps_policy, BIND_ENUM, .names = fps_policy_names,
         .fallback = "source", .help = "source: every frame; cap: at most fps; fixed: exactly fps"),
    BIND(struct profile_rendition, fps, BIND_RATIONAL, .help = "frames/s for cap and fixed"),
    BIND(struct profile_rendition, encoder_profile, BIND_STRING,
         .help = "the encoder's profile option, such as high"),
    BIND(struct profile_rendition, level, BIND_STRING, .help = "the encoder's level option"),
    BIND(struct profile_rendition, options, BIND_OPTIONS,
         .count_offset = offsetof(struct profile_rendition, n_options),
         .help = "encoder options on top of the profile's"),
    {0},
};
static const struct bind_struct rendition_type = {.name = "rendition",
                                                  .size = sizeof(struct profile_rendition),
                                                  .fields = rendition_fields,
                                                  .check = check_rendition};

static const struct bind_field audio_fields[] = {
    BIND(struct profile_audio, name, BIND_STRING,
         .help = "folder; default from the rate, such as audio-128k"),
    BIND(struct profile_audio, encoder, BIND_STRING, .fallback = "aac",
         .help = "libav's encoder name: aac, libopus, ac3, eac3, flac"),
    BIND(struct profile_audio, bitrate, BIND_BITRATE, .min = 0, .max = 10000000, .help = "bits/s"),
    BIND(struct profile_audio, channels, BIND_INT, .min = 0, .max = 8,
         .help = "at most so many; 0: as the source"),
    BIND(struct profile_audio, sample_rate, BIND_INT, .min = 0, .max = 192000,
         .help = "Hz; 0: as the source, brought to what the encoder takes"),
    {0},
};
static const struct bind_struct audio_type = {.name = "audio rendition",
                                              .size = sizeof(struct profile_audio),
                                              .fields = audio_fields,
                                              .check = check_audio};

static const struct bind_field thumbnails_fields[] = {
    BIND(struct profile_thumbnails, every, BIND_RATIONAL, .fallback = "10",
         .help = "seconds from one thumbnail to the next"),
    BIND(struct profile_thumbnails, height, BIND_INT, .fallback = "144",
         .min = THUMBNAIL_HEIGHT_MIN, .max = THUMBNAIL_HEIGHT_MAX,
         .help = "of each, the width of vertical video; at most the source's"),
    {0},
};
static const struct bind_struct thumbnails_type = {.name = "thumbnails entry",
                                                   .size = sizeof(struct profile_thumbnails),
                                                   .fields = thumbnails_fields,
                                                   .check = check_thumbnails};

static const struct bind_field profile_fields[] = {
    BIND(struct profile, name, BIND_STRING, .help = "default: the file's name"),
    BIND(struct profile, description, BIND_STRING, .help = "one line for people"),
    BIND(struct profile, encoder, BIND_STRING,
         .help = "libav's encoder name: libx264, libx265, libsvtav1, h264_nvenc"),
    BIND(struct profile, preset, BIND_STRING, .help = "the encoder's preset option"),
    BIND(struct profile, pix_fmt, BIND_STRING, .fallback = "yuv420p",
         .help = "yuv420p or yuv420p10le"),
    BIND(struct profile, options, BIND_OPTIONS, .count_offset = offsetof(struct profile, n_options),
         .help = "encoder options for all renditions"),
    BIND(struct profile, gop, BIND_RATIONAL, .fallback = "2", .help = "seconds between keyframes"),
    BIND(struct profile, segment, BIND_RATIONAL, .fallback = "6",
         .help = "seconds, a whole multiple of gop"),
    BIND(struct profile, segments, BIND_ENUM, .names = segments_names, .fallback = "fmp4",
         .help = "fmp4 or ts"),
    BIND(struct profile, deinterlace, BIND_ENUM, .names = deinterlace_names, .fallback = "auto",
         .help = "auto: where the source is interlaced"),
    BIND(struct profile, hdr, BIND_ENUM, .names = hdr_names, .fallback = "tonemap",
         .help = "what becomes of PQ and HLG sources: tonemap (to SDR), as-is or refuse"),
    BIND(struct profile, allow_upscale, BIND_BOOL,
         .help = "make renditions larger than the source"),
    BIND(struct profile, allow_truncated, BIND_BOOL,
         .help = "finish a broken source as far as it goes"),
    BIND_LIST(struct profile, renditions, n_renditions, rendition_type, .max = RENDITIONS_MAX,
              .help = "the ladder"),
    BIND_LIST(struct profile, audio, n_audio, audio_type, .max = AUDIO_MAX,
              .help = "audio renditions, each made of every audio track"),
    BIND_SUB(struct profile, thumbnails, thumbnails_type,
             .help =
                 "small pictures for the player's seek bar, and a WebVTT track that lists them; "
                 "absent: none"),
    {0},
};
const struct bind_struct profile_type = {.name = "profile",
                                         .size = sizeof(struct profile),
                                         .fields = profile_fields,
                                         .check = check_profile};

const char *profile_builtin_text(size_t i, const char **ret_name)
{
    for (size_t k = 0; k < i; k++)
        if (!profile_builtin[k].name)
            return NULL;
    if (ret_name)
        *ret_name = profile_builtin[i].name;
    return profile_builtin[i].name ? profile_builtin[i].text : NULL;
}

static int load_builtin(const char *wanted, struct value **ret, struct err *e)
{
    struct strbuf names = {0};
    for (const struct embed_file *f = profile_builtin; f->name; f++) {
        if (!strcmp(f->name, wanted)) {
            strbuf_free(&names);
            return value_parse(f->text, f->size, f->name, ERR_CONFIG, ret, e);
        }
        strbuf_printf(&names, "%s%s", names.len ? ", " : "", f->name);
    }
    err_set(e, ERR_CONFIG, "profile %s: no such profile; there are %s, or give a file (*.yaml)",
            wanted, names.s);
    strbuf_free(&names);
    return -ERR_CONFIG;
}

static bool is_path(const char *s)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    size_t n = strlen(s);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && !strcmp(s + n - m, endings[i]))
            return true;
    }
    return strchr(s, '/') != NULL;
}

/* "dir/night.yaml": "night". */
static char *stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    char *name = xstrdup(base);
    if (dot && dot > base)
        name[dot - base] = 0;
    return name;
}

int profile_load(const char *name_or_path, struct profile **ret, struct err *e)
{
    cleanup(value_free) struct value *v = NULL;
    int r =
        is_path(name_or_path) ? value_load(name_or_path, &v, e) : load_builtin(name_or_path, &v, e);
    if (r < 0)
        return r;
    r = bind_read(&profile_type, v, name_or_path, ERR_CONFIG, NULL, NULL, ret, e);
    if (r < 0)
        return r;
    if (!(*ret)->name)
        (*ret)->name = stem(name_or_path);
    return 0;
}
