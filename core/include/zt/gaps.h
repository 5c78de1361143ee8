/* Gaps: the bytes of a model's own file that belong neither to head, manifest or footer nor to a
 * component.
 *
 * They are harmless, and opening a model does not look at them: padding, zero or not, blobs that no
 * object refers to any more, bytes after the last tensor. */
#ifndef ZT_GAPS_H
#define ZT_GAPS_H

#include <stdbool.h>

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_gap {
    uint64_t offset;
    uint64_t length;
    /* It is shorter than an alignment of the format, and its end is aligned to that. */
    bool is_padding;
    /* Position of the first byte of padding that is not zero; ZT_NO_OFFSET if all are, and for any
     * other gap, whose bytes are not read. */
    uint64_t dirty_at;
};

/* Calls visit for each gap of the model's own file, in file order; shards are not looked at. Only
 * padding is read: at most the format's alignment for each component, in pieces of 4 KiB. Takes 8
 * bytes a component while it runs. An NPZ file has no gaps: the bytes between its arrays belong to
 * the archive. ZT_IO and ZT_NO_MEMORY, possibly after visits. */
enum zt_status zt_gaps_walk(const struct zt_model *model, struct zt_source *source,
                            void (*visit)(void *context, const struct zt_gap *gap), void *context,
                            struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
