#include "pipelines/media/decode_time.h"

/* Insertion: packets are nearly in order already. */
static void sort(int64_t *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int64_t x = v[i];
        size_t j = i;
        for (; j && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

void decode_time_schedule(const int64_t *pts, size_t n, int64_t delay, int64_t *dts)
{
    for (size_t i = 0; i < n; i++)
        dts[i] = pts[i];
    sort(dts, n);
    int64_t least = INT64_MAX; /* of the pts still to come */
    for (size_t i = n; i-- > 0;) {
        least = pts[i] < least ? pts[i] : least;
        if (dts[i] > least + delay)
            dts[i] = least + delay;
        if (i + 1 < n && dts[i] >= dts[i + 1])
            dts[i] = dts[i + 1] - 1;
    }
}
