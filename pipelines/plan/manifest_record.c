/* The manifest as it is committed: the tables only. */
#include "pipelines/plan/manifest.h"

static const struct bind_field segment_fields[] = {
    BIND(struct manifest_segment, index, BIND_INT64, .is_required = true),
    BIND(struct manifest_segment, start, BIND_INT64, .is_required = true),
    BIND(struct manifest_segment, duration, BIND_INT64, .is_required = true),
    BIND(struct manifest_segment, frames, BIND_INT64, .is_required = true),
    BIND(struct manifest_segment, keyframes, BIND_INT64),
    BIND(struct manifest_segment, bytes, BIND_INT64, .is_required = true),
    BIND(struct manifest_segment, name, BIND_STRING, .is_required = true),
    {0},
};
static const struct bind_struct segment_type = {
    .name = "segment", .size = sizeof(struct manifest_segment), .fields = segment_fields};

static const struct bind_field track_fields[] = {
    BIND(struct manifest_track, rendition, BIND_STRING, .is_required = true),
    BIND(struct manifest_track, init, BIND_STRING),
    BIND(struct manifest_track, init_bytes, BIND_INT64),
    BIND(struct manifest_track, codecs, BIND_STRING, .is_required = true),
    BIND(struct manifest_track, parameter_sets, BIND_STRING),
    BIND(struct manifest_track, time_base, BIND_RATIONAL, .is_required = true),
    BIND(struct manifest_track, start, BIND_INT64, .is_required = true),
    BIND(struct manifest_track, end, BIND_INT64, .is_required = true),
    BIND(struct manifest_track, frames, BIND_INT64, .is_required = true),
    BIND(struct manifest_track, keyframes, BIND_INT64),
    BIND(struct manifest_track, width, BIND_INT),
    BIND(struct manifest_track, height, BIND_INT),
    BIND(struct manifest_track, video_range, BIND_STRING),
    BIND(struct manifest_track, channels, BIND_INT),
    BIND(struct manifest_track, sample_rate, BIND_INT),
    BIND(struct manifest_track, priming, BIND_INT64),
    BIND_LIST(struct manifest_track, segments, n_segments, segment_type),
    {0},
};
static const struct bind_struct track_type = {
    .name = "track", .size = sizeof(struct manifest_track), .fields = track_fields};

static const struct bind_field thumbnail_fields[] = {
    BIND(struct manifest_thumbnail, index, BIND_INT64, .is_required = true),
    BIND(struct manifest_thumbnail, start, BIND_INT64, .is_required = true),
    BIND(struct manifest_thumbnail, bytes, BIND_INT64, .is_required = true),
    BIND(struct manifest_thumbnail, name, BIND_STRING, .is_required = true),
    {0},
};
static const struct bind_struct thumbnail_type = {
    .name = "thumbnail", .size = sizeof(struct manifest_thumbnail), .fields = thumbnail_fields};

static const struct bind_field manifest_fields[] = {
    BIND(struct manifest, chunk, BIND_INT64, .is_required = true),
    BIND_LIST(struct manifest, tracks, n_tracks, track_type),
    BIND_LIST(struct manifest, thumbnails, n_thumbnails, thumbnail_type),
    BIND(struct manifest, frames_decoded, BIND_INT64),
    BIND(struct manifest, frames_source, BIND_INT64),
    BIND(struct manifest, damaged, BIND_INT64),
    BIND(struct manifest, wall_us, BIND_INT64),
    BIND(struct manifest, cpu_us, BIND_INT64),
    BIND(struct manifest, is_truncated, BIND_BOOL),
    BIND(struct manifest, device, BIND_STRING),
    BIND_SUB(struct manifest, route, route_type),
    {0},
};
const struct bind_struct manifest_type = {
    .name = "manifest", .size = sizeof(struct manifest), .fields = manifest_fields};
