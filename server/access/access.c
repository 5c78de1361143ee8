/* Loads and counts versions. */
#include "access/access.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

const struct access access_unrestricted;

struct access *access_load(const struct config *config, char *error, size_t error_size)
{
    struct access *access = calloc(1, sizeof(*access));

    (void)config;
    if (access == NULL) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    atomic_init(&access->holders, 1);
    return access;
}

struct access *access_hold(struct access *access)
{
    const unsigned before = atomic_fetch_add_explicit(&access->holders, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
    return access;
}

void access_release(struct access *access)
{
    if (access == NULL)
        return;
    assert(atomic_load(&access->holders) > 0);
    if (atomic_fetch_sub_explicit(&access->holders, 1, memory_order_acq_rel) > 1)
        return;
    free(access);
}
