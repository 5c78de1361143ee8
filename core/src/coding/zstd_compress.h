/* Compressing: one zstd frame, or a zt.zstd-seekable/1 stream (zTensor 2 section 6). The other
 * wrapper of <zstd.h>.
 *
 * What comes out depends on the bytes and the level alone, not on the pieces they come in. Frames
 * carry no content size; those of a seekable stream carry a checksum, hold 1 MiB each, and a seek
 * table follows them. */
#ifndef ZT_CODING_ZSTD_COMPRESS_H
#define ZT_CODING_ZSTD_COMPRESS_H

#include <stdbool.h>

#include "zt/writer.h"

struct zt_compressor;

/* level: 1 to 22, or 0 for 3; ZT_ARGUMENT for any other. out is borrowed. ZT_NO_MEMORY. */
enum zt_status zt_compressor_new(int level, bool seekable, const struct zt_sink *out,
                                 struct zt_compressor **out_compressor, struct zt_error *error);

/* Before anything is appended, the level it was made with: whatever that is, zstd takes no more
 * than some 5 MiB, and the frames' window is at most 1 MiB where the level's own would be larger.
 */
void zt_compressor_bound_memory(struct zt_compressor *compressor, int level);

enum zt_status zt_compressor_append(struct zt_compressor *compressor, const void *bytes,
                                    size_t length, struct zt_error *error);
/* Ends the stream; what is appended next begins another. */
enum zt_status zt_compressor_end(struct zt_compressor *compressor, struct zt_error *error);

/* Takes NULL. */
void zt_compressor_free(struct zt_compressor *compressor);

#endif
