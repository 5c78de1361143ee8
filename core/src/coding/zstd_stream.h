/* A run of zstd frames that must give a known number of bytes (RFC 8878). The only wrapper of
 * <zstd.h> beside zstd_encoder.c.
 *
 * It never gives more bytes than expected, holds one input buffer and zstd's window, and reports
 * the end only if every stored byte was used. The window is at most 128 MiB; frames that need a
 * dictionary are rejected. */
#ifndef ZT_CODING_ZSTD_STREAM_H
#define ZT_CODING_ZSTD_STREAM_H

#include <stdbool.h>

#include "zt/source.h"

/* The rules that a stream's failures name. */
struct zt_zstd_rules {
    const char *frame;  /* a frame is broken, cut short, or followed by something else */
    const char *length; /* too many bytes, or too few */
    const char *window; /* a window above 128 MiB */
    const char *ratio;  /* more bytes declared than so few stored bytes can give */
    /* Exactly one frame, and it has a content checksum (zt.zstd-seekable/1). */
    bool one_checked_frame;
};

struct zt_zstd_stream;

/* Whether zstd can give that many bytes from so few: at most 128 KiB from a block of four bytes. */
bool zt_zstd_ratio_possible(uint64_t stored_length, uint64_t decoded_length);

/* The stream is at its end until zt_zstd_stream_start. source and rules are borrowed.
 * ZT_NO_MEMORY. */
enum zt_status zt_zstd_stream_new(struct zt_source *source, const struct zt_zstd_rules *rules,
                                  struct zt_zstd_stream **out_stream, struct zt_error *error);

/* Starts at a run of stored bytes, whatever was read before. expected_length may be
 * ZT_LENGTH_UNKNOWN: then any length is right. ZT_CORRUPT if so few bytes cannot give the expected
 * length. */
enum zt_status zt_zstd_stream_start(struct zt_zstd_stream *stream, uint64_t offset,
                                    uint64_t stored_length, uint64_t expected_length,
                                    struct zt_error *error);

/* Reads up to capacity bytes; *out_length is less than capacity only at the end. The last expected
 * bytes are returned only after the end was checked: a caller who has them all need not read
 * again. */
enum zt_status zt_zstd_stream_read(struct zt_zstd_stream *stream, void *buffer, size_t capacity,
                                   size_t *out_length, struct zt_error *error);

/* Stored bytes read so far since the start. */
uint64_t zt_zstd_stream_consumed(const struct zt_zstd_stream *stream);

/* Takes NULL. */
void zt_zstd_stream_free(struct zt_zstd_stream *stream);

#endif
