/* The difference of two tensors of the same length as the zstd frames of their XOR (docs/api.md,
 * xor-zstd). Bytes that are equal in both cost almost nothing.
 *
 * Each frame holds one block of the XOR and is independent of the others, so blocks may be encoded
 * in any order and by several threads. */
#ifndef ZT_XOR_H
#define ZT_XOR_H

#include "zt/sink.h"
#include "zt/source.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the XOR in each frame but the last. */
#define ZT_XOR_BLOCK_BYTES ((size_t)256 << 10)

/* --- encoding --- */

/* One thread's memory for encoding. */
struct zt_xor_encoder;

/* Changes whenever the same blocks may give other frames: with this library, or with zstd. */
uint64_t zt_xor_revision(void);

/* ZT_NO_MEMORY. */
enum zt_status zt_xor_encoder_new(struct zt_xor_encoder **out_encoder, struct zt_error *error);
/* Accepts NULL. */
void zt_xor_encoder_free(struct zt_xor_encoder *encoder);

/* Makes the frame of the XOR of length bytes, at most a block, of both. bytes is overwritten. The
 * frame is borrowed until the next call. ZT_NO_MEMORY. */
enum zt_status zt_xor_encode(struct zt_xor_encoder *encoder, uint8_t *bytes, const uint8_t *base,
                             size_t length, struct zt_text *out_frame, struct zt_error *error);

/* --- decoding --- */

struct zt_xor_difference {
    struct zt_source *frames; /* nothing but the frames */
    struct zt_source *base;
    uint64_t base_at; /* of the base's first byte */
    uint64_t length;  /* of the base, and of the result */
};

/* Gives the base with a difference applied to out, in order, never more than its length. The frames
 * need not be trusted: memory is bounded to a few MiB. ZT_CORRUPT if they are not zstd, do not
 * decode to exactly the length, or need a window of more than 8 MiB; ZT_IO, ZT_NO_MEMORY, or the
 * sink's status. */
enum zt_status zt_xor_decode(const struct zt_xor_difference *difference, const struct zt_sink *out,
                             struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
