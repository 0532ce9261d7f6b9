/* "did you mean": the word of a table that is closest to a mistyped one. Pure. */
#pragma once
#include <stddef.h>

struct suggest {
    const char *word; /* what was written; set by the caller */
    const char *best; /* closest candidate so far, borrowed; NULL while none is close enough */
    size_t distance;  /* of best */
};

/* Considers one candidate. Close enough: one edit for up to four letters, two for up to eight, else
 * three; an edit is a letter inserted, deleted, changed, or swapped with its neighbour. */
void suggest_try(struct suggest *s, const char *candidate);
