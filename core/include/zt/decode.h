/* Decoded bytes of a component: what the tensor is, little-endian.
 *
 * raw is passed through, zTensor 0.1's big-endian data is swapped, zstd and zt.zstd-seekable/1 are
 * decompressed. Memory is bounded by the zstd window (at most 128 MiB, rule "window") and never
 * follows a declared length. A component in a shard is read from that shard's source (zt/shards.h).
 */
#ifndef ZT_DECODE_H
#define ZT_DECODE_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_decoder;

/* Whether the decoded bytes are the stored bytes, so that they can be sent from the file as they
 * lie there. */
bool zt_component_is_plain(const struct zt_component *component);

/* Starts decoding from the first byte. source is the file the component lies in, borrowed until
 * zt_decoder_close; the model must live as long. ZT_UNSUPPORTED for an encoding that is not known;
 * ZT_CORRUPT when the declared length cannot come from so few stored bytes (so that a bomb is told
 * before anything is decoded), or a seek table is wrong. */
enum zt_status zt_decoder_open(const struct zt_component *component, struct zt_source *source,
                               struct zt_decoder **out_decoder, struct zt_error *error);

/* Reads up to capacity decoded bytes; *out_length is 0 at the end. The end is reported only when
 * exactly the declared number of bytes came out and every stored byte was used: too few, too many,
 * or a broken frame is ZT_CORRUPT. */
enum zt_status zt_decoder_read(struct zt_decoder *decoder, void *buffer, size_t capacity,
                               size_t *out_length, struct zt_error *error);

/* Takes NULL. */
void zt_decoder_close(struct zt_decoder *decoder);

/* --- zt.zstd-seekable/1: decoding a part without the rest (its frames are independent) --- */

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

/* Reads and checks the seek table. ZT_CORRUPT with a rule when it is wrong. Freed with
 * zt_frames_free. */
enum zt_status zt_frames_read(const struct zt_component *component, struct zt_source *source,
                              struct zt_frames *out_frames, struct zt_error *error);

/* Decodes one frame into buffer, which holds frame->decoded_length bytes. */
enum zt_status zt_frame_decode(const struct zt_frame *frame, struct zt_source *source, void *buffer,
                               struct zt_error *error);

void zt_frames_free(struct zt_frames *frames);

/* The decoded bytes of a zt.zstd-seekable/1 component as a source that decodes, when it is read,
 * the frames that the range touches and no others; the last one stays, so that a reader going
 * forward decodes each once. Readers at several places at once are all answered rightly, but take
 * the kept frame from one another: better, each has a source of its own. It holds the frame (at
 * most 16 MiB) and 24 bytes for each in the table, which is read and checked here. source is
 * borrowed. ZT_UNSUPPORTED for another encoding, ZT_CORRUPT, ZT_NO_MEMORY, ZT_IO. */
enum zt_status zt_frames_source(const struct zt_component *component, struct zt_source *source,
                                struct zt_source **out_source, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
