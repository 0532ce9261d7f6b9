#include "dispatcher/report.h"

static const char *const track_names[] = {"video", "audio", NULL};

static const struct bind_field rendition_fields[] = {
    BIND(struct report_rendition, name, BIND_STRING, .is_required = true),
    BIND(struct report_rendition, kind, BIND_ENUM, .names = track_names, .is_required = true),
    BIND(struct report_rendition, codecs, BIND_STRING),
    BIND(struct report_rendition, width, BIND_INT),
    BIND(struct report_rendition, height, BIND_INT),
    BIND(struct report_rendition, frame_rate, BIND_RATIONAL),
    BIND(struct report_rendition, language, BIND_STRING),
    BIND(struct report_rendition, average_bps, BIND_INT64),
    BIND(struct report_rendition, peak_bps, BIND_INT64),
    BIND(struct report_rendition, segments, BIND_INT64),
    BIND(struct report_rendition, frames, BIND_INT64),
    BIND(struct report_rendition, bytes, BIND_INT64),
    BIND(struct report_rendition, duration_s, BIND_DOUBLE),
    {0},
};
static const struct bind_struct rendition_type = {"rendition", sizeof(struct report_rendition),
                                                  rendition_fields, NULL};

static const struct bind_field report_fields[] = {
    BIND(struct report, master, BIND_STRING, .is_required = true),
    BIND_LIST(struct report, renditions, n_renditions, rendition_type),
    BIND(struct report, duration_s, BIND_DOUBLE),
    BIND(struct report, segments, BIND_INT64),
    BIND(struct report, bytes, BIND_INT64),
    BIND(struct report, thumbnails, BIND_INT64),
    BIND(struct report, frames_source, BIND_INT64),
    BIND(struct report, frames_decoded, BIND_INT64),
    BIND(struct report, waste, BIND_DOUBLE),
    BIND(struct report, damaged, BIND_INT64),
    BIND(struct report, task_s, BIND_DOUBLE),
    BIND(struct report, cpu_s, BIND_DOUBLE),
    BIND(struct report, repaired_missing, BIND_INT64),
    BIND(struct report, repaired_wrapped, BIND_INT64),
    BIND(struct report, repaired_jumps, BIND_INT64),
    BIND(struct report, repaired_duplicates, BIND_INT64),
    BIND(struct report, is_truncated, BIND_BOOL),
    BIND(struct report, device, BIND_STRING),
    BIND(struct report, chunks, BIND_INT64),
    BIND(struct report, chunks_fallen_back, BIND_INT64),
    BIND_SUB(struct report, route, route_type),
    BIND(struct report, notes, BIND_STRINGS, .count_offset = offsetof(struct report, n_notes)),
    {0},
};
const struct bind_struct report_type = {"report", sizeof(struct report), report_fields, NULL};
