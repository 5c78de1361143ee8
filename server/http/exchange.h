/* One request from header to answer: route, begin, body, handler, preconditions, preparation, ranges, answer.
 *
 *   START --header in--> BODY --last byte--> HANDLE --ready--> PREPARE --ready--> ANSWER
 *     |                    |                   | ^ waiting       | ^ waiting
 *     +--refused-----------+-------------------+-+---------------+-+--> ANSWER
 *
 * mhd.c drives this from libmicrohttpd's callbacks and sends what comes out; nothing here knows the library. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "http/request.h"

/* The header fields are in. True: refused, the reply is settled and may be sent before the body. */
bool exchange_begin(struct request *request);

/* A piece of the body. */
void exchange_receive(struct request *request, const void *bytes, size_t length);

/* The body is in, or a wait has ended. READY: answer can be sent. */
enum outcome exchange_advance(struct request *request);

/* The answer after preconditions and ranges: status, fields, and the segments that are sent (none for HEAD, though
 * content_length is that of the GET). Borrowed from the request. */
struct answer {
    unsigned status;
    uint64_t content_length;
    const struct field *fields;
    unsigned field_count;
    const struct segment *segments;
    unsigned segment_count;
};

/* After exchange_advance said READY (or exchange_begin refused). */
void exchange_answer(struct request *request, struct answer *out_answer);

#endif
