/* Lets two files share extents on disk where their bytes are equal, if the file system can: XFS and
 * btrfs. The kernel compares the bytes itself while it excludes writers (FIDEDUPERANGE), so a
 * mistake here costs space, never bytes.
 *
 * Only ranges that may be equal are read: tensors of the same name and length whose offsets differ
 * by whole blocks; in files that are no models, equal offsets. A range is given up at its first
 * difference. */
#ifndef STORE_VERSIONS_SHARED_EXTENTS_H
#define STORE_VERSIONS_SHARED_EXTENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "zt/source.h"

/* Smaller files are not worth it. */
#define SHARED_EXTENTS_LEAST ((uint64_t)1 << 20)

struct shared_extents;

/* Prepares to share the extents of `from` with `to`, whose own are freed. Takes over both sources,
 * also on failure. Reads the manifests. Returns NULL if there is nothing to share, a source is not
 * a file, or memory is short. */
struct shared_extents *shared_extents_new(struct zt_source *from, struct zt_source *to);
/* Accepts NULL. */
void shared_extents_free(struct shared_extents *sharing);

enum shared_extents_answer {
    SHARED_EXTENTS_MORE,
    SHARED_EXTENTS_DONE,
    SHARED_EXTENTS_FAILED, /* these two files cannot share (more) */
    SHARED_EXTENTS_REFUSED /* the file system cannot share, or the kernel does not allow it */
};

/* Compares about *io_bytes, which it counts down, and shares what is equal. Returns MORE if this
 * was not all, or if `stop` was set. Reads; takes long. */
enum shared_extents_answer shared_extents_run(struct shared_extents *sharing, uint64_t *io_bytes,
                                              const atomic_bool *stop);

/* Returns how many bytes the kernel said are shared now. */
uint64_t shared_extents_bytes(const struct shared_extents *sharing);

#endif
