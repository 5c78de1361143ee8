/* Gaps: the bytes of a model's own file that nothing claims, neither head, manifest and footer nor
 * a component.
 *
 * They are harmless, and opening a model does not look at them: padding that is not zero, blobs
 * that no object has any more, bytes after the last tensor. */
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
    /* Shorter than an alignment of the format, and what follows (or the file's end) is aligned so.
     */
    bool is_padding;
    /* Where padding has its first byte that is not zero; ZT_NO_OFFSET when it has none, and for
     * what is no padding, whose bytes are not read. */
    uint64_t dirty_at;
};

/* Tells the gaps of the model's own file in file order; shards are not looked at. Padding is read,
 * so at most the format's alignment for each component, in pieces of 4 KiB. Costs 8 bytes a
 * component while it runs. Of NPZ nothing is told: what lies between its arrays is the archive's
 * own. ZT_IO and ZT_NO_MEMORY, after some gaps may have been told. */
enum zt_status zt_gaps_walk(const struct zt_model *model, struct zt_source *source,
                            void (*tell)(void *context, const struct zt_gap *gap), void *context,
                            struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
