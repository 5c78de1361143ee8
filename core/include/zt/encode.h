/* Compressing a component as zTensor stores it: as one zstd frame (zTensor 1.2) or as a
 * zt.zstd-seekable/1 stream (zTensor 2, section 6).
 *
 * The output depends only on the bytes, the options and the version of zstd, not on how the bytes
 * are split into calls. */
#ifndef ZT_ENCODE_H
#define ZT_ENCODE_H

#include "zt/model.h"
#include "zt/sink.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_encoder;

#define ZT_ENCODER_THREADS_MAX 64

struct zt_encoder_options {
    enum zt_encoding encoding; /* ZT_ENCODING_ZSTD or ZT_ENCODING_ZSTD_SEEKABLE */
    int level;                 /* 1 to 22; 0 for zstd's default, 3 */
    /* Bounds memory at every level to about 2 MiB of blocks and 5 MiB of zstd's own, so that many
     * encoders may be open at once. From level 4 on this limits the window to 1 MiB, so the output
     * differs. */
    bool bounds_memory;
    /* Additional threads for zstd, at most 64; 0: none. The output is the same for any number but
     * 0. */
    unsigned threads;
};

/* Starts a stream. Compressed bytes go to out, which is copied; its context is borrowed until
 * zt_encoder_close. ZT_ARGUMENT for a level outside 0 to 22; ZT_NO_MEMORY. */
enum zt_status zt_encoder_open(const struct zt_encoder_options *options, const struct zt_sink *out,
                               struct zt_encoder **out_encoder, struct zt_error *error);

/* Appends bytes to be compressed, in pieces of any length. ZT_NO_MEMORY, or the sink's status. */
enum zt_status zt_encoder_append(struct zt_encoder *encoder, const void *bytes, size_t length,
                                 struct zt_error *error);

/* Ends the stream; bytes appended later start another one. ZT_UNSUPPORTED if the seek table would
 * have too many entries; otherwise fails as zt_encoder_append does. */
enum zt_status zt_encoder_finish(struct zt_encoder *encoder, struct zt_error *error);

/* Takes NULL. */
void zt_encoder_close(struct zt_encoder *encoder);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
