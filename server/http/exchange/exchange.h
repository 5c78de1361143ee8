/* Processes one request from header to answer: route, begin, body, handler, preconditions, steps,
 * ranges, digests, answer.
 *
 *  START --header in--> BODY --last byte--> HANDLE --ready--> PREPARE --ready--> DIGEST --ready--+
 *    |                    |                   | ^ waiting       | ^ waiting        | ^ waiting   |
 *    +--refused-----------+-------------------+-+---------------+-+----------------+-+--> ANSWER <+
 *
 * handler.c calls these functions from libmicrohttpd's callbacks and sends the answers. The
 * exchange does not use the library. */
#ifndef HTTP_EXCHANGE_EXCHANGE_H
#define HTTP_EXCHANGE_EXCHANGE_H

#include "http/exchange/request.h"

/* Called after the header fields. Returns true if the request is refused; the reply may then be
 * sent before the body is read. */
bool exchange_begin(struct request *request);

/* Called for each piece of the body. Returns false if the body is unwanted and too large to be read
 * and dropped: the request then has its reply, and the connection must end after the answer. */
bool exchange_receive(struct request *request, const void *bytes, size_t length);

/* Called after the body, and when a wait has ended. Returns READY when the answer can be sent. */
enum outcome exchange_advance(struct request *request);

/* A 304 skips the steps, so its length may be unknown and is then omitted. Some answers to HEAD
 * must omit it too. */
#define ANSWER_LENGTH_UNKNOWN UINT64_MAX

/* The answer after preconditions and ranges. HEAD and 304 have no segments, but the content_length
 * of the GET. Other answers have at most as many segments as the representation, plus two for each
 * of several ranges. */
struct answer {
    unsigned status;
    uint64_t content_length;
    bool close; /* the connection ends after this answer */
    const struct field *fields;
    unsigned field_count;
    struct segment *segments; /* start is the position in the answer */
    size_t segment_count;
};

/* Returns the request's answer. Call it after exchange_advance returned READY or exchange_begin
 * refused the request, and again if the reply was replaced in the meantime. The request owns the
 * answer; the sender may replace the segments by others with the same bytes. */
struct answer *exchange_answer(struct request *request);

/* Writes the header fields of the answer again, because something has been learned of the file
 * while its bytes were awaited. */
void exchange_write_fields(struct request *request);

#endif
