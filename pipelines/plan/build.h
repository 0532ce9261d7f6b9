/* The parts plan_make is made of: each fills its share of a plan in the making. Pure. */
#pragma once
#include "pipelines/plan/plan.h"

void build_note(struct plan *plan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The name, or with "-2", "-3", ... where a folder of that name is already in the plan. Takes
 * `name`, returns what the caller owns. */
char *build_unique_name(const struct plan *plan, char *name);

/* Whether kernels take and make pictures of that format: 4:2:0 of 8 or 10 bits. */
bool build_is_kernel_format(const char *pix_fmt);

/* plan->renditions, from the profile's rungs and what the source allows. */
int build_ladder(const struct profile *profile, const struct source_video *video,
                 bool allow_upscale, struct plan *plan, struct err *e);

/* plan->thumbnails, which the profile has, but for what HDR makes of them. ERR_CONFIG where the
 * pixel format is not one they are made of. */
int build_thumbnails(const struct profile *profile, const struct source_video *video,
                     struct plan *plan, struct err *e);

/* What becomes of HDR (enum profile_hdr): is_hdr_as_is, or is_tonemapped and peak_nits, and a note;
 * ERR_INPUT when it is refused. */
int build_hdr(int policy, const struct source_video *video, struct plan *plan, struct err *e);

/* plan->audio: every audio rendition of every track. */
void build_audio(const struct profile *profile, const struct source *source, struct plan *plan);
