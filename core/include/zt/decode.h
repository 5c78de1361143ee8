/* Decoded bytes of a component: the tensor itself, little-endian and row-major.
 *
 * Raw bytes are passed through, big-endian words swapped, compressed streams decompressed, arrays
 * in Fortran order transposed. Memory is bounded by the zstd window (at most 128 MiB, rule
 * "window") or the transposition (at most 64 MiB), and never grows with a declared length. A
 * component in a shard is read from that shard's source (zt/shards.h). */
#ifndef ZT_DECODE_H
#define ZT_DECODE_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_decoder;

/* Starts decoding from the first byte. source is the file that the component lies in, borrowed
 * until zt_decoder_close; the model must live as long. ZT_UNSUPPORTED for an unknown encoding;
 * ZT_CORRUPT if so few stored bytes cannot give the declared length (which catches a bomb before
 * anything is decoded), or if a seek table is wrong. */
enum zt_status zt_decoder_open(const struct zt_component *component, struct zt_source *source,
                               struct zt_decoder **out_decoder, struct zt_error *error);

/* Reads up to capacity (at least 1) decoded bytes; *out_length is 0 at the end. The end is reported
 * only if exactly the declared number of bytes came out and every stored byte was used; too few,
 * too many or a broken frame are ZT_CORRUPT. */
enum zt_status zt_decoder_read(struct zt_decoder *decoder, void *buffer, size_t capacity,
                               size_t *out_length, struct zt_error *error);

/* Stored bytes read so far, for progress. */
uint64_t zt_decoder_consumed(const struct zt_decoder *decoder);

/* Takes NULL. */
void zt_decoder_close(struct zt_decoder *decoder);

/* --- zt.zstd-seekable/1: its frames are independent, so part of it decodes without the rest --- */

struct zt_frame {
    uint64_t stored_offset; /* absolute, in the component's file */
    uint64_t decoded_offset;
    uint32_t stored_length;
    uint32_t decoded_length; /* at most 16 MiB */
};

struct zt_frames {
    struct zt_frame *frames;
    uint32_t count;
};

/* Reads and checks the seek table. ZT_UNSUPPORTED for another encoding, ZT_CORRUPT with a rule,
 * ZT_NO_MEMORY, ZT_IO. Freed with zt_frames_free. */
enum zt_status zt_frames_read(const struct zt_component *component, struct zt_source *source,
                              struct zt_frames *out_frames, struct zt_error *error);

/* Decodes one frame into buffer, which holds frame->decoded_length bytes. */
enum zt_status zt_frame_decode(const struct zt_frame *frame, struct zt_source *source, void *buffer,
                               struct zt_error *error);

void zt_frames_free(struct zt_frames *frames);

/* The decoded bytes of a zt.zstd-seekable/1 component as a source. A read decodes only the frames
 * that its range touches and keeps the last one, so that a reader going forward decodes each once.
 * Several threads may read at once, but displace each other's kept frame: give each a source of its
 * own if it reads on. Holds the kept frame (at most 16 MiB) and 24 bytes for each frame of the
 * table, which is read and checked here. source is borrowed. Errors as zt_frames_read. */
enum zt_status zt_frames_source(const struct zt_component *component, struct zt_source *source,
                                struct zt_source **out_source, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
