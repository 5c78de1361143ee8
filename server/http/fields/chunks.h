/* Parses the framing of a chunked body (RFC 9112 section 7.1). Sizes, extensions and trailers are
 * checked strictly and discarded. A pure function of the bytes, in pieces as they arrive.
 *
 * It reports how many bytes certainly belong to the body, so that a reader of the connection never
 * reads a byte of the next request. */
#ifndef HTTP_FIELDS_CHUNKS_H
#define HTTP_FIELDS_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

enum chunks_state {
    CHUNKS_SIZE, /* before or within the digits of a size */
    /* From here to CHUNKS_EXTENSION_END: in an extension of a size. */
    CHUNKS_EXTENSION, /* after a ';' */
    CHUNKS_EXTENSION_NAME,
    CHUNKS_EXTENSION_EQUALS, /* after its '=' */
    CHUNKS_EXTENSION_VALUE,
    CHUNKS_EXTENSION_QUOTED,
    CHUNKS_EXTENSION_ESCAPED, /* after a '\' in quotes */
    CHUNKS_EXTENSION_END,     /* after the closing quote */
    CHUNKS_SIZE_LF,           /* after the CR of a size */
    CHUNKS_DATA,              /* left bytes of the chunk follow */
    CHUNKS_CR,                /* after the last byte of a chunk */
    CHUNKS_LF,                /* after the CR that follows a chunk */
    CHUNKS_TRAILER,           /* at the beginning of a line after the last chunk */
    CHUNKS_TRAILER_NAME,
    CHUNKS_TRAILER_VALUE,
    CHUNKS_TRAILER_LF,   /* after the CR of a trailer */
    CHUNKS_END_LF,       /* after the CR of the empty line */
    CHUNKS_OVER,         /* the body has ended */
    CHUNKS_MALFORMED,    /* 400: the end of the body is unclear */
    CHUNKS_TRAILERS_LONG /* 431 */
};

struct chunks {
    enum chunks_state state;
    unsigned digits;        /* digits of the size */
    uint64_t left;          /* the size so far, then the rest of the chunk */
    size_t line_bytes;      /* extension bytes of the current size */
    size_t extension_bytes; /* extension bytes of all sizes */
    size_t trailer_bytes;
    const char *why; /* error message; static; NULL unless malformed */
};

/* Starts a body. */
void chunks_begin(struct chunks *chunks);

/* Parses framing up to the first byte of data, the end of the body, or the first invalid byte. Must
 * not be called within data. Returns how many bytes were parsed. */
size_t chunks_take(struct chunks *chunks, const void *bytes, size_t length);

/* Skips data, at most the rest of the chunk. */
void chunks_take_data(struct chunks *chunks, uint64_t length);

/* Returns the minimum number of bytes that still belong to the body; 0 if it has ended or is
 * broken. */
uint64_t chunks_least(const struct chunks *chunks);

#endif
