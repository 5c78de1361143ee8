/* Xorbs, in which the Hub's clients send the chunks of their files. Each chunk has a header of 8
 * bytes (version 0, stored length in 3 bytes, scheme, length in 3 bytes, both little-endian),
 * followed by its stored bytes. Older clients append a footer, which begins with "XETBLOB" and is
 * not needed. Pure functions over bytes. */
#ifndef HUB_XET_XORB_H
#define HUB_XET_XORB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XORB_HEADER_BYTES 8
/* The maximum decoded length of a chunk from clients; their average is 64 KiB. */
#define XORB_CHUNK_MAX ((uint32_t)128 << 10)
/* The maximum that clients themselves accept. */
#define XORB_STORED_MAX (2 * XORB_CHUNK_MAX)
#define XORB_CHUNKS_MAX ((uint32_t)8192)
/* Maximum decoded length of all chunks. */
#define XORB_DECODED_MAX ((uint64_t)64 << 20)
/* Maximum length as sent: incompressible chunks, their headers, and a footer. */
#define XORB_BYTES_MAX (XORB_DECODED_MAX + ((uint64_t)1 << 20))

enum xorb_scheme {
    XORB_PLAIN,
    XORB_LZ4,        /* a frame */
    XORB_LZ4_PLANES, /* a frame of all first bytes of four, then all second ones, … */
};

struct xorb_chunk {
    enum xorb_scheme scheme;
    uint32_t stored; /* bytes after the header */
    uint32_t length; /* decoded */
};

/* Returns NULL, or a description of the error in the header. */
const char *xorb_chunk_read(const uint8_t header[XORB_HEADER_BYTES], struct xorb_chunk *out_chunk);

/* --- positions of the chunks in a xorb, found while it arrives --- */

/* Zeroed memory is empty. */
struct xorb_layout {
    uint32_t count;
    uint32_t ends[XORB_CHUNKS_MAX]; /* the end of each chunk in the xorb; the first one begins at
                                     * 0 */
    const char *mistake;            /* NULL: no error so far */

    /* Private. */
    uint8_t header[XORB_HEADER_BYTES];
    unsigned header_length;
    uint32_t at;   /* start of the chunk */
    uint32_t left; /* of its stored bytes */
    uint64_t decoded;
    bool is_in_footer;
};

/* Reads more bytes. Returns false with mistake set. */
bool xorb_layout_take(struct xorb_layout *layout, const uint8_t *bytes, size_t length);
/* Called at the end of the bytes. Returns false with mistake set. */
bool xorb_layout_finish(struct xorb_layout *layout);

/* --- decoding --- */

struct xorb_decoder;

/* Returns NULL if out of memory. */
struct xorb_decoder *xorb_decoder_new(void);
/* Accepts NULL. */
void xorb_decoder_free(struct xorb_decoder *decoder);

/* Decodes the stored bytes of a chunk into exactly chunk->length bytes. Returns false if they do
 * not decode to that; the output may have been written to. */
bool xorb_decode(struct xorb_decoder *decoder, const struct xorb_chunk *chunk,
                 const uint8_t *stored, uint8_t *out_bytes);

#endif
