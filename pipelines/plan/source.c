#include "pipelines/plan/source.h"

static const struct bind_field border_fields[] = {
    BIND(struct source_border, key_pts, BIND_INT64),
    BIND(struct source_border, next_key, BIND_INT64),
    BIND(struct source_border, frames, BIND_INT64),
    {0},
};
static const struct bind_struct border_type = {
    .name = "border", .size = sizeof(struct source_border), .fields = border_fields};

static const struct bind_field video_fields[] = {
    BIND(struct source_video, stream, BIND_INT),
    BIND(struct source_video, codec, BIND_STRING),
    BIND(struct source_video, profile, BIND_STRING),
    BIND(struct source_video, width, BIND_INT, .is_required = true, .min = 1, .max = INT32_MAX),
    BIND(struct source_video, height, BIND_INT, .is_required = true, .min = 1, .max = INT32_MAX),
    BIND(struct source_video, sample_aspect, BIND_RATIONAL),
    BIND(struct source_video, rotation, BIND_INT, .min = 0, .max = 270),
    BIND(struct source_video, is_flipped, BIND_BOOL),
    BIND(struct source_video, time_base, BIND_RATIONAL, .is_required = true),
    BIND(struct source_video, start, BIND_INT64),
    BIND(struct source_video, end, BIND_INT64),
    BIND(struct source_video, frames, BIND_INT64),
    BIND(struct source_video, frame_rate, BIND_RATIONAL),
    BIND(struct source_video, is_cfr, BIND_BOOL),
    BIND(struct source_video, max_interval, BIND_INT64),
    BIND(struct source_video, is_interlaced, BIND_BOOL),
    BIND(struct source_video, is_bottom_first, BIND_BOOL),
    BIND(struct source_video, has_open_gop, BIND_BOOL),
    BIND(struct source_video, is_sequential, BIND_BOOL),
    BIND(struct source_video, pix_fmt, BIND_STRING),
    BIND(struct source_video, bit_depth, BIND_INT),
    BIND(struct source_video, color_primaries, BIND_STRING),
    BIND(struct source_video, color_transfer, BIND_STRING),
    BIND(struct source_video, color_space, BIND_STRING),
    BIND(struct source_video, color_range, BIND_STRING),
    BIND(struct source_video, max_cll, BIND_INT),
    BIND(struct source_video, mastering_nits, BIND_INT),
    BIND(struct source_video, border_segment, BIND_RATIONAL),
    BIND_LIST(struct source_video, borders, n_borders, border_type),
    {0},
};
static const struct bind_struct video_type = {
    .name = "video stream", .size = sizeof(struct source_video), .fields = video_fields};

static const struct bind_field audio_fields[] = {
    BIND(struct source_audio, stream, BIND_INT),
    BIND(struct source_audio, codec, BIND_STRING),
    BIND(struct source_audio, sample_rate, BIND_INT, .is_required = true, .min = 1,
         .max = INT32_MAX),
    BIND(struct source_audio, channels, BIND_INT, .is_required = true, .min = 1, .max = INT32_MAX),
    BIND(struct source_audio, layout, BIND_STRING),
    BIND(struct source_audio, language, BIND_STRING),
    BIND(struct source_audio, title, BIND_STRING),
    BIND(struct source_audio, is_default, BIND_BOOL),
    BIND(struct source_audio, time_base, BIND_RATIONAL),
    BIND(struct source_audio, start, BIND_INT64),
    BIND(struct source_audio, end, BIND_INT64),
    {0},
};
static const struct bind_struct audio_type = {
    .name = "audio stream", .size = sizeof(struct source_audio), .fields = audio_fields};

static const struct bind_field source_fields[] = {
    BIND(struct source, container, BIND_STRING),
    BIND(struct source, size_bytes, BIND_INT64),
    BIND(struct source, claimed_duration, BIND_RATIONAL),
    BIND(struct source, origin, BIND_INT64),
    BIND(struct source, origin_base, BIND_RATIONAL),
    BIND(struct source, duration, BIND_RATIONAL),
    BIND_SUB(struct source, video, video_type),
    BIND_LIST(struct source, audio, n_audio, audio_type),
    BIND(struct source, is_truncated, BIND_BOOL),
    BIND(struct source, truncated_reason, BIND_STRING),
    BIND(struct source, repaired_missing, BIND_INT64),
    BIND(struct source, repaired_wrapped, BIND_INT64),
    BIND(struct source, repaired_jumps, BIND_INT64),
    BIND(struct source, repaired_duplicates, BIND_INT64),
    BIND_SUB(struct source, gpu, route_gpu_type),
    BIND(struct source, notes, BIND_STRINGS, .count_offset = offsetof(struct source, n_notes)),
    {0},
};
const struct bind_struct source_type = {
    .name = "source", .size = sizeof(struct source), .fields = source_fields};
