/* A deflated stream (RFC 1951) that must inflate to a known number of bytes. The only wrapper of
 * <zlib.h> except digest.c.
 *
 * The stream never returns more bytes than expected, holds one input buffer and zlib's window, and
 * reports the end only if the deflated data ends there and every stored byte was used. Its rules
 * are the rules of ZIP entries, "zip §Deflate …". */
#ifndef ZT_CODING_INFLATE_STREAM_H
#define ZT_CODING_INFLATE_STREAM_H

#include <stdbool.h>

#include "zt/source.h"

struct zt_inflate_stream;

/* Whether so few deflated bytes can inflate to decoded_length bytes: two bits, the shortest match,
 * give at most 258 bytes, so one byte gives at most 1032. */
bool zt_inflate_ratio_possible(uint64_t stored_length, uint64_t decoded_length);

/* Makes a stream, which must be started before it is read. source is borrowed. ZT_NO_MEMORY. */
enum zt_status zt_inflate_stream_new(struct zt_source *source,
                                     struct zt_inflate_stream **out_stream, struct zt_error *error);

/* Starts reading a run of stored bytes; anything read before is forgotten. If is_partial, more than
 * the expected bytes may follow, and the end is not checked. ZT_CORRUPT if so few bytes cannot
 * inflate to the expected length. */
enum zt_status zt_inflate_stream_start(struct zt_inflate_stream *stream, uint64_t offset,
                                       uint64_t stored_length, uint64_t expected_length,
                                       bool is_partial, struct zt_error *error);

/* Reads up to capacity bytes; *out_length is less than capacity only at the end. The last expected
 * bytes are returned only after the end has been checked, so a caller with all bytes need not read
 * again. */
enum zt_status zt_inflate_stream_read(struct zt_inflate_stream *stream, void *buffer,
                                      size_t capacity, size_t *out_length, struct zt_error *error);

/* Number of stored bytes read since zt_inflate_stream_start. */
uint64_t zt_inflate_stream_consumed(const struct zt_inflate_stream *stream);

/* Takes NULL. */
void zt_inflate_stream_free(struct zt_inflate_stream *stream);

#endif
