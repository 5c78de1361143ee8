/* Compressing a component as zTensor stores it: one zstd frame (1.2), or a zt.zstd-seekable/1
 * stream (2, section 6).
 *
 * What comes out depends on the bytes and the options alone, not on the pieces they arrive in. */
#ifndef ZT_ENCODE_H
#define ZT_ENCODE_H

#include "zt/model.h"
#include "zt/sink.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_encoder;

struct zt_encoder_options {
    enum zt_encoding encoding; /* ZT_ENCODING_ZSTD or ZT_ENCODING_ZSTD_SEEKABLE */
    int level;                 /* 1 to 22; 0 for zstd's default, 3 */
    /* At any level, holds no more than 2 MiB of blocks and about 5 MiB of zstd's own, so that many
     * may be open at once. From level 4 on the window is at most 1 MiB, and the output differs. */
    bool bounds_memory;
};

/* Compressed bytes go to the sink out, which is copied; its context is borrowed until
 * zt_encoder_close. ZT_ARGUMENT for any other level, ZT_NO_MEMORY. */
enum zt_status zt_encoder_open(const struct zt_encoder_options *options, const struct zt_sink *out,
                               struct zt_encoder **out_encoder, struct zt_error *error);

/* Decoded bytes, in pieces of any length. ZT_NO_MEMORY; what the sink returns. */
enum zt_status zt_encoder_append(struct zt_encoder *encoder, const void *bytes, size_t length,
                                 struct zt_error *error);

/* Ends the stream; bytes appended later begin another one. ZT_UNSUPPORTED if the seek table would
 * have too many entries; else as zt_encoder_append. */
enum zt_status zt_encoder_finish(struct zt_encoder *encoder, struct zt_error *error);

/* Takes NULL. */
void zt_encoder_close(struct zt_encoder *encoder);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
