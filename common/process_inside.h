/* The inside of common/process.h. */
#pragma once
#include "common/process.h"

/* A variable that process_spawn adds to a small environment, so that the child's title has room;
 * process_title_init takes it out again. */
#define PROCESS_TITLE_ROOM "TRANSCODE_TITLE_ROOM="
