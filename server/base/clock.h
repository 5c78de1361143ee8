/* The time, as integers. Durations and deadlines use the monotonic clock; the wall clock is only
 * for times that are compared with file times or shown to people. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_S  INT64_C(1000000000)
#define CLOCK_NS_PER_MS INT64_C(1000000)

static inline int64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

/* Monotonic time. */
static inline int64_t clock_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

static inline int64_t clock_ms(void)
{
    return clock_ns() / CLOCK_NS_PER_MS;
}

/* Monotonic time at the last timer tick, a few milliseconds late. It needs no system call where
 * clock_ms might. */
static inline int64_t clock_coarse_ms(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE) / CLOCK_NS_PER_MS;
}

/* Time since 1970. */
static inline int64_t clock_wall_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

#endif
