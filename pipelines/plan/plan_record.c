/* The plan as it is stored and sent: the tables only. */
#include "pipelines/plan/plan.h"

static const char *const segments_names[] = {"fmp4", "ts", NULL};

static const struct bind_field rendition_fields[] = {
    BIND(struct plan_rendition, name, BIND_STRING, .is_required = true),
    BIND(struct plan_rendition, width, BIND_INT, .is_required = true, .min = 2, .max = INT32_MAX),
    BIND(struct plan_rendition, height, BIND_INT, .is_required = true, .min = 2, .max = INT32_MAX),
    BIND(struct plan_rendition, fps, BIND_RATIONAL),
    BIND(struct plan_rendition, time_base, BIND_RATIONAL, .is_required = true),
    BIND(struct plan_rendition, bitrate, BIND_INT64),
    BIND(struct plan_rendition, maxrate, BIND_INT64),
    BIND(struct plan_rendition, bufsize, BIND_INT64),
    BIND(struct plan_rendition, crf, BIND_DOUBLE, .fallback = "-1"),
    BIND(struct plan_rendition, encoder_profile, BIND_STRING),
    BIND(struct plan_rendition, level, BIND_STRING),
    BIND(struct plan_rendition, options, BIND_OPTIONS,
         .count_offset = offsetof(struct plan_rendition, n_options)),
    {0},
};
static const struct bind_struct rendition_type = {
    .name = "rendition", .size = sizeof(struct plan_rendition), .fields = rendition_fields};

static const struct bind_field audio_fields[] = {
    BIND(struct plan_audio, name, BIND_STRING, .is_required = true),
    BIND(struct plan_audio, group, BIND_STRING, .is_required = true),
    BIND(struct plan_audio, track, BIND_INT, .is_required = true),
    BIND(struct plan_audio, encoder, BIND_STRING, .is_required = true),
    BIND(struct plan_audio, bitrate, BIND_INT64),
    BIND(struct plan_audio, channels, BIND_INT, .is_required = true, .min = 1, .max = 64),
    BIND(struct plan_audio, sample_rate, BIND_INT, .is_required = true, .min = 1, .max = INT32_MAX),
    BIND(struct plan_audio, language, BIND_STRING),
    BIND(struct plan_audio, title, BIND_STRING),
    BIND(struct plan_audio, is_default, BIND_BOOL),
    {0},
};
static const struct bind_struct audio_type = {
    .name = "audio rendition", .size = sizeof(struct plan_audio), .fields = audio_fields};

static const struct bind_field thumbnails_fields[] = {
    BIND(struct plan_thumbnails, every, BIND_RATIONAL, .is_required = true),
    BIND(struct plan_thumbnails, width, BIND_INT, .is_required = true, .min = 2, .max = INT32_MAX),
    BIND(struct plan_thumbnails, height, BIND_INT, .is_required = true, .min = 2, .max = INT32_MAX),
    BIND(struct plan_thumbnails, is_tonemapped, BIND_BOOL),
    {0},
};
static const struct bind_struct thumbnails_type = {
    .name = "thumbnails", .size = sizeof(struct plan_thumbnails), .fields = thumbnails_fields};

static const struct bind_field plan_fields[] = {
    BIND(struct plan, segments, BIND_ENUM, .names = segments_names),
    BIND(struct plan, encoder, BIND_STRING),
    BIND(struct plan, preset, BIND_STRING),
    BIND(struct plan, pix_fmt, BIND_STRING),
    BIND(struct plan, time_base, BIND_RATIONAL, .is_required = true),
    BIND(struct plan, segment, BIND_RATIONAL, .is_required = true),
    BIND(struct plan, gop, BIND_RATIONAL, .is_required = true),
    BIND(struct plan, cfr, BIND_RATIONAL),
    BIND(struct plan, ref, BIND_RATIONAL),
    BIND(struct plan, origin, BIND_INT64),
    BIND(struct plan, start, BIND_INT64),
    BIND(struct plan, n_segments, BIND_INT64),
    BIND(struct plan, is_deinterlaced, BIND_BOOL),
    BIND(struct plan, allow_truncated, BIND_BOOL),
    BIND(struct plan, allow_fallback, BIND_BOOL),
    BIND_SUB(struct plan, route, route_type),
    BIND(struct plan, context, BIND_INT64),
    BIND(struct plan, is_hdr_as_is, BIND_BOOL),
    BIND(struct plan, is_tonemapped, BIND_BOOL),
    BIND(struct plan, peak_nits, BIND_INT),
    BIND_LIST(struct plan, renditions, n_renditions, rendition_type),
    BIND_LIST(struct plan, audio, n_audio, audio_type),
    BIND_SUB(struct plan, thumbnails, thumbnails_type),
    BIND(struct plan, notes, BIND_STRINGS, .count_offset = offsetof(struct plan, n_notes)),
    {0},
};
const struct bind_struct plan_type = {
    .name = "plan", .size = sizeof(struct plan), .fields = plan_fields};

static const struct bind_field chunk_fields[] = {
    BIND(struct plan_chunk, index, BIND_INT64, .is_required = true),
    BIND(struct plan_chunk, first_segment, BIND_INT64, .is_required = true),
    BIND(struct plan_chunk, end_segment, BIND_INT64, .is_required = true),
    BIND(struct plan_chunk, seek_pts, BIND_INT64, .is_required = true),
    BIND(struct plan_chunk, frames, BIND_INT64),
    {0},
};
const struct bind_struct plan_chunk_type = {
    .name = "chunk", .size = sizeof(struct plan_chunk), .fields = chunk_fields};

static const struct bind_field options_fields[] = {
    BIND(struct plan_options, chunk_seconds, BIND_DOUBLE),
    BIND(struct plan_options, segments, BIND_INT, .fallback = "-1", .min = -1, .max = 1),
    BIND(struct plan_options, allow_hdr_as_is, BIND_BOOL),
    BIND(struct plan_options, allow_fallback, BIND_BOOL),
    BIND(struct plan_options, allow_truncated, BIND_BOOL),
    BIND(struct plan_options, allow_upscale, BIND_BOOL),
    {0},
};
const struct bind_struct plan_options_type = {
    .name = "options", .size = sizeof(struct plan_options), .fields = options_fields};
