/* Gaps: the bytes of a model's own file outside its head, manifest, footer and components.
 *
 * Gaps are harmless, and opening a model does not look at them. They are padding (zero or not),
 * blobs that no object refers to any more, and bytes after the last tensor. */
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
    /* Whether the gap is shorter than an alignment of the format and ends at a multiple of that
     * alignment. */
    bool is_padding;
    /* Absolute position of the first nonzero byte of padding; ZT_NO_OFFSET if all bytes are zero,
     * and for gaps other than padding, which are not read. */
    uint64_t dirty_at;
};

/* Calls visit for each gap of the model's own file, in file order; shards are not examined. Reads
 * only padding: for each component less than the format's largest alignment, in pieces of 4 KiB.
 * Takes 8 bytes of memory for each component while it runs. NPZ, PyTorch and ONNX files have no
 * gaps: the bytes between their arrays belong to the archive or message. ZT_IO and ZT_NO_MEMORY,
 * possibly after some visits. */
enum zt_status zt_gaps_walk(const struct zt_model *model, struct zt_source *source,
                            void (*visit)(void *context, const struct zt_gap *gap), void *context,
                            struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
