/* The number of processors that this process may keep busy: those in its affinity mask, limited by
 * the CPU quota of its control groups. Thread counts and limits are derived from it. */
#ifndef BASE_PROCESSORS_H
#define BASE_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns at least 1. The first call determines the number, which then stays constant, since limits
 * derived from it must be consistent. May be called on any thread. */
unsigned processors_count(void);

/* Access to small text files; tests replace it, so that they need no control groups. */
struct processors_files {
    /* Reads a whole file as a NUL-terminated text, truncated at size. Returns false if it cannot be
     * read. */
    bool (*read)(void *context, const char *path, char *out_text, size_t size);
    void *context;
};

/* Returns the number of processors in a mask, limited by the quotas of the process's control group
 * and all groups above it: cpu.max of version 2, cpu.cfs_quota_us and cpu.cfs_period_us of version
 * 1. A fraction of a processor counts as one. Returns at least 1. */
unsigned processors_allowed(const struct processors_files *files, unsigned mask_count);

#endif
