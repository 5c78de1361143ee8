/* The decoded bytes of a component: the tensor itself, little-endian and row-major.
 *
 * Raw bytes are passed through, big-endian words are swapped, compressed streams are decompressed,
 * and arrays in Fortran order and views with strides are gathered. Memory is bounded by the zstd
 * window (at most 128 MiB) or by the gathering (at most 65 MiB), for any declared length. A
 * component in a shard is read from that shard's source (zt/shards.h). */
#ifndef ZT_DECODE_H
#define ZT_DECODE_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_decoder;

/* Starts decoding at the first byte. source is the file that holds the component (zt_files_source);
 * source and model are borrowed until zt_decoder_close. ZT_UNSUPPORTED for an unknown encoding;
 * ZT_CORRUPT if so few stored bytes cannot decode to the declared length (which stops a
 * decompression bomb before anything is decoded) or if a seek table is wrong; ZT_LIMIT for a view
 * of more than 56 MiB of a deflated storage whose elements overlap or repeat; ZT_NO_MEMORY,
 * ZT_IO. */
enum zt_status zt_decoder_open(const struct zt_component *component, struct zt_source *source,
                               struct zt_decoder **out_decoder, struct zt_error *error);

/* Reads up to capacity (at least 1) decoded bytes; *out_length is 0 at the end. The end is reported
 * only if exactly the declared number of bytes was decoded and every stored byte was used.
 * ZT_CORRUPT for too few or too many bytes or a broken frame; ZT_NO_MEMORY, ZT_IO. After a failure
 * every further call fails. */
enum zt_status zt_decoder_read(struct zt_decoder *decoder, void *buffer, size_t capacity,
                               size_t *out_length, struct zt_error *error);

/* Stored bytes read so far, for progress. */
uint64_t zt_decoder_consumed(const struct zt_decoder *decoder);

/* Takes NULL. */
void zt_decoder_close(struct zt_decoder *decoder);

/* --- zt.zstd-seekable/1: frames are independent, so a part can be decoded without the rest --- */

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

/* Reads and checks the seek table. ZT_UNSUPPORTED for any other encoding, ZT_CORRUPT with a rule,
 * ZT_NO_MEMORY, ZT_IO. Freed with zt_frames_free. */
enum zt_status zt_frames_read(const struct zt_component *component, struct zt_source *source,
                              struct zt_frames *out_frames, struct zt_error *error);

/* Decodes one frame into buffer, which has room for frame->decoded_length bytes. ZT_CORRUPT with a
 * rule, ZT_NO_MEMORY, ZT_IO. */
enum zt_status zt_frame_decode(const struct zt_frame *frame, struct zt_source *source, void *buffer,
                               struct zt_error *error);

void zt_frames_free(struct zt_frames *frames);

/* The decoded bytes of a zt.zstd-seekable/1 component as a source. A read decodes only the frames
 * in its range and keeps the last one, so that sequential reading decodes each frame once. Several
 * threads may read at once, but they replace each other's kept frame: for sequential reading, give
 * each thread a separate source. Holds the kept frame (at most 16 MiB) and 24 bytes for each frame.
 * The seek table is read and checked by this call, which fails as zt_frames_read does. source is
 * borrowed. */
enum zt_status zt_frames_source(const struct zt_component *component, struct zt_source *source,
                                struct zt_source **out_source, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
