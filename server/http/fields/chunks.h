/* The framing of a chunked body (RFC 9112 section 7.1): sizes, extensions and trailers, which are
 * read strictly and thrown away. A pure function of the bytes, fed as they come.
 *
 * It says how many bytes are sure to belong to the body, so that whoever reads from a connection
 * need not read a byte of the next request. */
#ifndef HTTP_FIELDS_CHUNKS_H
#define HTTP_FIELDS_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

enum chunks_state {
    CHUNKS_SIZE, /* before or within the digits of a size */
    /* From here to CHUNKS_EXTENSION_END: within an extension of a size. */
    CHUNKS_EXTENSION, /* behind a ';' */
    CHUNKS_EXTENSION_NAME,
    CHUNKS_EXTENSION_EQUALS, /* behind its '=' */
    CHUNKS_EXTENSION_VALUE,
    CHUNKS_EXTENSION_QUOTED,
    CHUNKS_EXTENSION_ESCAPED, /* behind a '\' in quotes */
    CHUNKS_EXTENSION_END,     /* behind the quotes */
    CHUNKS_SIZE_LF,           /* behind the CR of a size */
    CHUNKS_DATA,              /* left bytes of the chunk are to come */
    CHUNKS_CR,                /* behind the last byte of a chunk */
    CHUNKS_LF,                /* behind the CR after a chunk */
    CHUNKS_TRAILER,           /* at the beginning of a line behind the last chunk */
    CHUNKS_TRAILER_NAME,
    CHUNKS_TRAILER_VALUE,
    CHUNKS_TRAILER_LF,   /* behind the CR of a trailer */
    CHUNKS_END_LF,       /* behind the CR of the empty line */
    CHUNKS_OVER,         /* the body is over */
    CHUNKS_MALFORMED,    /* 400: where it ends is in doubt */
    CHUNKS_TRAILERS_LONG /* 431 */
};

struct chunks {
    enum chunks_state state;
    unsigned digits;        /* of the size */
    uint64_t left;          /* of the size, and then of the chunk */
    size_t extension_bytes; /* of all sizes */
    size_t trailer_bytes;
    const char *why; /* for a person; static; NULL unless malformed */
};

/* The beginning of a body. */
void chunks_begin(struct chunks *chunks);

/* Takes framing, up to the first byte of data, or the end of the body, or the first byte that must
 * not be there. Not to be called within data. Returns how many bytes were taken. */
size_t chunks_take(struct chunks *chunks, const void *bytes, size_t length);

/* To be called behind a chunk: somebody else has taken its CR LF. */
void chunks_skip_end(struct chunks *chunks);

/* Takes data, at most as much as is left of the chunk. */
void chunks_take_data(struct chunks *chunks, uint64_t length);

/* How many more bytes belong to the body at least; 0: it is over, or broken. */
uint64_t chunks_least(const struct chunks *chunks);

#endif
