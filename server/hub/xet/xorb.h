/* Xorbs, in which clients of the Hub send the chunks of their files: chunk after chunk, each a
 * header of 8 bytes (version 0, stored length of 3 bytes, scheme, length of 3 bytes, both little
 * endian) and what is stored of it. Older clients append a footer, which begins with "XETBLOB" and
 * is not needed. Pure functions over bytes. */
#ifndef HUB_XET_XORB_H
#define HUB_XET_XORB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XORB_HEADER_BYTES 8
/* What clients make: 64 KiB on average, never more than this, decoded. */
#define XORB_CHUNK_MAX ((uint32_t)128 << 10)
/* What they accept themselves. */
#define XORB_STORED_MAX (2 * XORB_CHUNK_MAX)
#define XORB_CHUNKS_MAX ((uint32_t)8192)
/* Of all chunks, decoded. */
#define XORB_DECODED_MAX ((uint64_t)64 << 20)
/* As it is sent: chunks that do not compress, their headers, and a footer. */
#define XORB_BYTES_MAX (XORB_DECODED_MAX + ((uint64_t)1 << 20))

enum xorb_scheme {
    XORB_PLAIN,
    XORB_LZ4,        /* a frame */
    XORB_LZ4_PLANES, /* the same, of all first bytes of four, all second ones, … */
};

struct xorb_chunk {
    enum xorb_scheme scheme;
    uint32_t stored; /* bytes behind the header */
    uint32_t length; /* decoded */
};

/* NULL, or what is wrong with the header. */
const char *xorb_chunk_read(const uint8_t header[XORB_HEADER_BYTES], struct xorb_chunk *out_chunk);

/* --- where the chunks of a xorb lie, found while it arrives --- */

/* Zeroed memory is empty. */
struct xorb_layout {
    uint32_t count;
    uint32_t ends[XORB_CHUNKS_MAX]; /* of each chunk in the xorb; the first one begins at 0 */
    const char *mistake;            /* NULL: none so far */

    /* Private. */
    uint8_t header[XORB_HEADER_BYTES];
    unsigned header_length;
    uint32_t at;   /* where the chunk begins */
    uint32_t left; /* of its stored bytes */
    uint64_t decoded;
    bool is_in_footer;
};

/* Reads on. False: mistake says what is wrong. */
bool xorb_layout_take(struct xorb_layout *layout, const uint8_t *bytes, size_t length);
/* The end of the bytes. False: as above. */
bool xorb_layout_finish(struct xorb_layout *layout);

/* --- decoding --- */

struct xorb_decoder;

/* NULL if out of memory. */
struct xorb_decoder *xorb_decoder_new(void);
/* Takes NULL. */
void xorb_decoder_free(struct xorb_decoder *decoder);

/* Decodes the stored bytes of a chunk into exactly chunk->length bytes. False: they are something
 * else; the output may have been written to. */
bool xorb_decode(struct xorb_decoder *decoder, const struct xorb_chunk *chunk,
                 const uint8_t *stored, uint8_t *out_bytes);

#endif
