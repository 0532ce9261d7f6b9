/*
 * The session process: `transcode session` with its control channel on descriptor 3. One task at a
 * time; sandboxed; talks to nothing but the agent (worker/protocol.h).
 */
#pragma once
#include "common/err.h"

int session_main(struct err *e);
