/* Scope-bound ownership: declare `cleanup(x_free) struct x *x = NULL;` and every return frees it.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup(fn) __attribute__((cleanup(fn)))

/* Gives the pointer away: returns it and leaves NULL behind. */
#define take(p)               \
    ({                        \
        __auto_type p_ = (p); \
        (p) = NULL;           \
        p_;                   \
    })

static inline void free_ptr(void *p)
{
    free(*(void **)p);
    *(void **)p = NULL;
}

static inline void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static inline void close_file(FILE **f)
{
    if (*f)
        fclose(*f);
    *f = NULL;
}
