/* The inside of common/opt.h: what parsing, help, man page and completion share. */
#pragma once
#include "common/opt.h"
#include "common/strbuf.h"

#define OPT_PROGRAM "transcode"
#define OPT_PRODUCT "turn videos into HLS ladders, on one machine or a farm"

extern const struct opt opt_help; /* the row that every verb has */

/* All rows of a verb: its own, the common ones, --help. Begin with i = 0; NULL at the end. common
 * may be NULL. */
const struct opt *opt_row(const struct opt_verb *verb, const struct opt *common, size_t i);

/* "expected ..." for the row's argument: "seconds (12, 1.5, 90s, 2m, 1h) from 0 to 60". */
void opt_expected(const struct opt *o, struct strbuf *out);

/* The help line with limits, default and environment variable. */
void opt_describe(const struct opt *o, struct strbuf *out);
