/* A run of zstd frames (RFC 8878), usually of a known decoded length. Besides this file, only
 * zstd_encoder.c and xor_encoder.c wrap <zstd.h>.
 *
 * The stream never returns more bytes than expected, holds one input buffer and zstd's window, and
 * reports the end only if every stored byte was used. The window is at most 128 MiB, or less if the
 * rules say so. Frames that need a dictionary are rejected. */
#ifndef ZT_CODING_ZSTD_STREAM_H
#define ZT_CODING_ZSTD_STREAM_H

#include <stdbool.h>

#include "zt/source.h"

/* The rules that a stream reports for its failures. */
struct zt_zstd_rules {
    const char *frame;  /* a frame is broken, cut short, or followed by something else */
    const char *length; /* too many bytes, or too few */
    const char *window; /* a window above the limit */
    const char *ratio;  /* more bytes declared than the stored bytes can decode to */
    /* Require exactly one frame with a content checksum (zt.zstd-seekable/1). */
    bool one_checked_frame;
    int window_log_max; /* the limit; 0: 27, 128 MiB */
};

struct zt_zstd_stream;

/* Whether so few stored bytes can decode to decoded_length bytes: a block of four bytes decodes to
 * at most 128 KiB. */
bool zt_zstd_ratio_possible(uint64_t stored_length, uint64_t decoded_length);

/* Makes a stream, which must be started before it is read. source and rules are borrowed.
 * ZT_NO_MEMORY. */
enum zt_status zt_zstd_stream_new(struct zt_source *source, const struct zt_zstd_rules *rules,
                                  struct zt_zstd_stream **out_stream, struct zt_error *error);

/* Starts reading a run of stored bytes; anything read before is forgotten. If expected_length is
 * ZT_LENGTH_UNKNOWN, any decoded length is accepted. ZT_CORRUPT if so few bytes cannot decode to
 * the expected length. */
enum zt_status zt_zstd_stream_start(struct zt_zstd_stream *stream, uint64_t offset,
                                    uint64_t stored_length, uint64_t expected_length,
                                    struct zt_error *error);

/* Reads up to capacity bytes; *out_length is less than capacity only at the end. If the expected
 * length is known, its last bytes are returned only after the end has been checked, so a caller
 * with all bytes need not read again. */
enum zt_status zt_zstd_stream_read(struct zt_zstd_stream *stream, void *buffer, size_t capacity,
                                   size_t *out_length, struct zt_error *error);

/* Number of stored bytes read since zt_zstd_stream_start. */
uint64_t zt_zstd_stream_consumed(const struct zt_zstd_stream *stream);

/* Takes NULL. */
void zt_zstd_stream_free(struct zt_zstd_stream *stream);

#endif
