/* How many processors this process may keep busy: those in its affinity mask, but no more than the
 * CPU quota of its control groups allows. Thread counts and limits derive from this number. */
#ifndef BASE_PROCESSORS_H
#define BASE_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>

/* At least 1. Determined by the first call and constant from then on, since limits derived from it
 * must agree with each other. From any thread. */
unsigned processors_count(void);

/* Access to small text files; tests replace it, so that they need no control groups. */
struct processors_files {
    /* Reads a whole file as a NUL-terminated text, cut at size. False if it cannot be read. */
    bool (*read)(void *context, const char *path, char *out_text, size_t size);
    void *context;
};

/* The processors of a mask, bounded by the quotas of the process's control group and of all groups
 * above it: cpu.max of version 2, cpu.cfs_quota_us and cpu.cfs_period_us of version 1. A fraction
 * of a processor counts as one. At least 1. */
unsigned processors_allowed(const struct processors_files *files, unsigned mask_count);

#endif
