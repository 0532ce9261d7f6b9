/* Audio: every audio rendition of every track, brought to what its encoder takes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"
#include "pipelines/plan/build.h"

enum { RATES_MAX = 9 };

/* What encoders take; rates ascending, none: any. An encoder not listed is taken to be as free as
 * flac, and says itself what it lacks. Opus in MP4 is always 48 kHz. */
static const struct encoder {
    const char *name;
    int channels_max;
    int rates[RATES_MAX + 1];
} encoders[] = {
    {"aac", 8, {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}},
    {"libfdk_aac", 8, {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}},
    {"ac3", 6, {32000, 44100, 48000}},
    {"eac3", 6, {32000, 44100, 48000}},
    {"libmp3lame", 2, {16000, 22050, 24000, 32000, 44100, 48000}},
    {"libopus", 8, {48000}},
    {"flac", 8, {0}},
};
enum { ENCODERS = sizeof encoders / sizeof *encoders };

static const struct encoder *find_encoder(const char *name)
{
    size_t i = 0;
    while (i < ENCODERS - 1 && strcmp(encoders[i].name, name))
        i++;
    return &encoders[i];
}

/* The rate itself, else the next higher one, else the highest. */
static int nearest_rate(const struct encoder *encoder, int wanted)
{
    int rate = wanted;
    for (size_t i = 0; encoder->rates[i]; i++) {
        rate = encoder->rates[i];
        if (rate >= wanted)
            break;
    }
    return rate;
}

/* Seven channels have no layout of their own in most encoders: they become 5.1. */
static int fitting_channels(const struct encoder *encoder, int channels, int most)
{
    if (most && channels > most)
        channels = most;
    if (channels > encoder->channels_max)
        channels = encoder->channels_max;
    return channels == 7 ? 6 : channels;
}

/* The track that plays when nobody chooses: the first marked so, else the first. */
static size_t default_track(const struct source *source)
{
    for (size_t i = 0; i < source->n_audio; i++)
        if (source->audio[i].is_default)
            return i;
    return 0;
}

static char *group_name(const struct profile_audio *a)
{
    if (a->name)
        return xstrdup(a->name);
    if (a->bitrate)
        return xasprintf("audio-%lldk", (long long)(a->bitrate + 500) / 1000);
    return xasprintf("audio-%s", a->encoder);
}

/* Languages come from the source: only a plain code may become part of a folder's name. */
static bool is_plain_code(const char *language)
{
    size_t n = language ? strlen(language) : 0;
    if (n < 2 || n > 8)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)language[i]))
            return false;
    return true;
}

static char *track_name(const struct plan *plan, const char *group, size_t track,
                        const char *language)
{
    char *name = track == 0                ? xstrdup(group)
                 : is_plain_code(language) ? xasprintf("%s-%zu-%s", group, track + 1, language)
                                           : xasprintf("%s-%zu", group, track + 1);
    return build_unique_name(plan, name);
}

static bool is_group_taken(const struct plan *plan, const char *group)
{
    for (size_t i = 0; i < plan->n_audio; i++)
        if (!strcmp(plan->audio[i].group, group))
            return true;
    return false;
}

static void add_track(const struct profile_audio *a, const char *group, const struct source *source,
                      size_t track, struct plan *plan)
{
    const struct source_audio *in = &source->audio[track];
    const struct encoder *encoder = find_encoder(a->encoder);
    plan->audio = xrealloc_array(plan->audio, plan->n_audio + 1, sizeof *plan->audio);
    plan->audio[plan->n_audio] = (struct plan_audio){
        .name = track_name(plan, group, track, in->language),
        .group = xstrdup(group),
        .track = (int)track,
        .encoder = xstrdup(a->encoder),
        .bitrate = a->bitrate,
        .channels = fitting_channels(encoder, in->channels, a->channels),
        .sample_rate = nearest_rate(encoder, a->sample_rate ? a->sample_rate : in->sample_rate),
        .language = xstrdup(in->language),
        .title = xstrdup(in->title),
        .is_default = track == default_track(source),
    };
    plan->n_audio++;
}

void build_audio(const struct profile *profile, const struct source *source, struct plan *plan)
{
    for (size_t i = 0; i < profile->n_audio; i++) {
        const struct profile_audio *a = &profile->audio[i];
        char *group = group_name(a);
        for (int n = 2; is_group_taken(plan, group); n++) {
            free(group);
            char *base = group_name(a);
            group = xasprintf("%s-v%d", base, n);
            free(base);
        }
        for (size_t track = 0; track < source->n_audio; track++)
            add_track(a, group, source, track, plan);
        free(group);
    }
    if (source->n_audio && !profile->n_audio)
        build_note(plan, "audio left out: profile %s has no audio entry",
                   profile->name ? profile->name : "(unnamed)");
}
