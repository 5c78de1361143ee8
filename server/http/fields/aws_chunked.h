/* Parses the aws-chunked coding of S3, which is independent of the framing of the HTTP body: the
 * chunks, their signatures, and the trailer. A pure function of the bytes, in pieces as they
 * arrive; it verifies nothing and copies no data.
 *
 *     SIZE[;chunk-signature=HEX] CRLF data CRLF … 0[;chunk-signature=HEX] CRLF
 *     [name:value CRLF …] CRLF
 *
 *     aws_chunked_begin
 *     while (aws_chunked_next(…) != AWS_CHUNKED_MORE) …      for each piece
 *     aws_chunked_is_over                                    after the last piece
 *
 * Some clients end the lines of a trailer with LF alone, and write an empty line before
 * x-amz-trailer-signature; others add a line at the end. */
#ifndef HTTP_FIELDS_AWS_CHUNKED_H
#define HTTP_FIELDS_AWS_CHUNKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/text.h"

/* Longer lines are malformed: a size with a signature has about 100 bytes, a field of a trailer
 * fewer than 200. */
#define AWS_CHUNKED_LINE_MAX 512
/* More fields in a trailer are malformed. */
#define AWS_CHUNKED_FIELDS_MAX 16

enum aws_chunked_event {
    AWS_CHUNKED_MORE,     /* all bytes of the piece are parsed */
    AWS_CHUNKED_CHUNK,    /* a chunk begins; the last one has a size of 0 */
    AWS_CHUNKED_DATA,     /* text: the next bytes of the chunk, in the piece */
    AWS_CHUNKED_COMPLETE, /* the data of a chunk, also of the last, is complete */
    AWS_CHUNKED_FIELD,    /* name and text: a field of the trailer */
    AWS_CHUNKED_MALFORMED /* why; and so again at each call */
};

struct aws_chunked_part {
    uint64_t size;            /* AWS_CHUNKED_CHUNK */
    struct zt_text signature; /* AWS_CHUNKED_CHUNK: unchecked text; length 0: none */
    struct zt_text name;      /* AWS_CHUNKED_FIELD: in lower case */
    /* AWS_CHUNKED_DATA; AWS_CHUNKED_FIELD: the value without space around it. The texts other than
     * data are valid until the next call. */
    struct zt_text text;
};

enum aws_chunked_state {
    AWS_CHUNKED_AT_SIZE, /* in the line of a size */
    AWS_CHUNKED_IN_DATA,
    AWS_CHUNKED_AFTER_DATA, /* before CRLF */
    AWS_CHUNKED_AT_END,     /* after the line of the last chunk */
    AWS_CHUNKED_AT_FIELD,   /* in a line of the trailer */
    AWS_CHUNKED_OVER,       /* after the empty line */
    AWS_CHUNKED_BROKEN
};

struct aws_chunked {
    enum aws_chunked_state state;
    bool wants_signature; /* the trailer ends only after x-amz-trailer-signature */
    bool has_signature;
    unsigned fields;
    uint64_t left; /* bytes of the chunk */
    size_t line_length;
    char line[AWS_CHUNKED_LINE_MAX];
    const char *why; /* message; static; NULL unless malformed */
};

/* has_signed_trailer: a trailer with a signature is expected. */
void aws_chunked_begin(struct aws_chunked *decoder, bool has_signed_trailer);

/* Parses up to the next event, advances *io_piece, and fills the members of the event. */
enum aws_chunked_event aws_chunked_next(struct aws_chunked *decoder, struct zt_text *io_piece,
                                        struct aws_chunked_part *out_part);

/* Returns true if the body is complete. */
bool aws_chunked_is_over(const struct aws_chunked *decoder);

#endif
