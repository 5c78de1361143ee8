/* How many processors this process may keep busy: those of its affinity mask, and no more than the
 * CPU quota of its control groups allows. Thread counts and limits divide by this number. */
#ifndef BASE_PROCESSORS_H
#define BASE_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>

/* At least 1. Found at the first call and the same from then on: limits that are divided by it must
 * agree with each other. From any thread. */
unsigned processors_count(void);

/* Small text files, so that the rule can be tested without a kernel that has the groups. */
struct processors_files {
    /* Reads a whole file as a NUL-terminated text, cut at size. False when there is none. */
    bool (*read)(void *context, const char *path, char *out_text, size_t size);
    void *context;
};

/* The processors of a mask, bounded by the quotas of the process's control group and of all groups
 * above it: cpu.max of version 2, cpu.cfs_quota_us and cpu.cfs_period_us of version 1. A fraction
 * of a processor counts as one. At least 1. */
unsigned processors_allowed(const struct processors_files *files, unsigned mask_count);

#endif
