/* Checks the bytes of a connection before the HTTP library parses, and so rewrites, them (RFC 9112
 * sections 2.2, 3, 5 and 7.1): only CR LF ends a line, a request line has two blanks, a header has
 * lines of "name: value", and a chunk has the framing of chunks.h. A pure function of the bytes, in
 * pieces as they arrive.
 *
 * Only the parsed header says where a body ends. So the stream stops after each header, counts the
 * bytes that follow it, and continues with raw_stream_decide. */
#ifndef HTTP_FIELDS_RAW_STREAM_H
#define HTTP_FIELDS_RAW_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/fields/chunks.h"

enum raw_state {
    RAW_START,    /* before a request line: empty lines are skipped */
    RAW_START_LF, /* after the CR of an empty line */
    RAW_LINE,     /* in the request line */
    RAW_LINE_LF,  /* after its CR */
    RAW_FIELD,    /* at the beginning of a header line */
    RAW_FIELD_NAME,
    RAW_FIELD_VALUE,
    RAW_FIELD_LF,  /* after the CR of a field */
    RAW_END_LF,    /* after the CR of the empty line */
    RAW_UNDECIDED, /* after a header: raw_stream_decide must be called */
    RAW_LENGTH,    /* in a body of known length */
    RAW_CHUNKS,    /* in a chunked body */
    RAW_BROKEN,    /* the end of a request is unclear; no more bytes are checked */
    RAW_ENDED      /* the connection ends; no more bytes are checked */
};

struct raw_stream {
    enum raw_state state;
    unsigned blanks;      /* in the request line */
    size_t undecided;     /* number of bytes after the header in state RAW_UNDECIDED */
    uint64_t left;        /* rest of a body of known length */
    uint64_t content;     /* bytes of the current body so far, without framing */
    struct chunks chunks; /* of a chunked body; why is set if they broke the stream */
};

/* Takes the next bytes of a connection. All members of a new stream are 0. */
void raw_stream_take(struct raw_stream *stream, const void *bytes, size_t length);

/* Call it in state RAW_UNDECIDED, when the header has been parsed. body_length is as in framing.h;
 * behind has the bytes after the header, as many as were counted. */
void raw_stream_decide(struct raw_stream *stream, uint64_t body_length, const void *behind);

/* Returns true if the last byte received belongs to the content of a chunk. */
bool raw_stream_is_in_chunk(const struct raw_stream *stream);

#endif
