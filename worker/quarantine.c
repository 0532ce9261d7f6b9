#include "worker/quarantine.h"

#include <stdio.h>
#include <string.h>

void quarantine_suspect(struct quarantine *q, const struct err *why)
{
    q->is_suspect = true;
    q->why = *why;
}

/* Forgets the strikes that are older than the window; without any, the GPU has been well. */
static void lapse(struct quarantine *q, int64_t now_us)
{
    int n = 0;
    for (int i = 0; i < q->n_strikes; i++)
        if (now_us - q->strikes[i].at_us < QUARANTINE_WINDOW_US)
            q->strikes[n++] = q->strikes[i];
    q->n_strikes = n;
    if (!n)
        q->level = 0;
}

static int64_t length_us(const struct quarantine *q)
{
    int64_t us = q->first_us;
    for (int i = 0; i < q->level && us < QUARANTINE_MAX_US; i++)
        us *= 2;
    return us < QUARANTINE_MAX_US ? us : QUARANTINE_MAX_US;
}

/* All strikes but one stand until a window after its end, so that one more closes it again. */
void quarantine_close(struct quarantine *q, const struct err *why, int64_t now_us)
{
    quarantine_suspect(q, why);
    lapse(q, now_us);
    q->until_us = now_us + length_us(q);
    q->level++;
    q->n_strikes = QUARANTINE_STRIKES - 1;
    memset(q->strikes, 0, sizeof q->strikes);
    for (int i = 0; i < q->n_strikes; i++)
        q->strikes[i].at_us = q->until_us;
}

bool quarantine_strike(struct quarantine *q, const char *job, const struct err *why, int64_t now_us)
{
    quarantine_suspect(q, why);
    lapse(q, now_us);
    for (int i = 0; job && i < q->n_strikes; i++)
        if (!strcmp(q->strikes[i].job, job))
            return false;
    if (q->n_strikes + 1 < QUARANTINE_STRIKES) {
        snprintf(q->strikes[q->n_strikes].job, sizeof q->strikes[0].job, "%s", job ? job : "");
        q->strikes[q->n_strikes++].at_us = now_us;
        return false;
    }
    quarantine_close(q, why, now_us);
    return true;
}

void quarantine_passed(struct quarantine *q)
{
    q->is_suspect = false;
}

bool quarantine_is_closed(const struct quarantine *q, int64_t now_us)
{
    return now_us < q->until_us;
}

const char *quarantine_state(const struct quarantine *q, int64_t now_us)
{
    return quarantine_is_closed(q, now_us) ? "quarantined" : q->is_suspect ? "suspect" : "working";
}
