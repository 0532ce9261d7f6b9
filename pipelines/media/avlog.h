/*
 * libav's own log: its lines go to ours at debug, redacted, and the last errors are kept so that a
 * message can quote libav's reason instead of "Invalid data found". A thread quotes what was said
 * in it, since encoders are opened side by side. Any thread.
 */
#pragma once

void avlog_init(void);  /* takes over av_log; again is harmless */
void avlog_clear(void); /* before an operation whose failure may be quoted */

/* "moov atom not found (Invalid data found when processing input)": the last error lines since the
 * last call or clear, then what `averror` means. Valid until the thread's next call. */
const char *avlog_reason(int averror);
