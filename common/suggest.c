#include "common/suggest.h"

#include <string.h>

enum { WORD_MAX = 40 }; /* longer words have no suggestion */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment; three rows of the usual table are enough. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        above[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[m];
}

void suggest_try(struct suggest *s, const char *candidate)
{
    size_t n = strlen(s->word), m = strlen(candidate);
    if (!n || n > WORD_MAX || m > WORD_MAX)
        return;
    size_t d = distance(s->word, n, candidate, m);
    size_t limit = n <= 4 ? 1 : n <= 8 ? 2 : 3;
    if (d <= limit && (!s->best || d < s->distance)) {
        s->best = candidate;
        s->distance = d;
    }
}
