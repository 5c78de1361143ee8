/* One request, from header to answer: route, begin, body, handler, preconditions, steps, ranges,
 * digests, answer.
 *
 *  START --header in--> BODY --last byte--> HANDLE --ready--> PREPARE --ready--> DIGEST --ready--+
 *    |                    |                   | ^ waiting       | ^ waiting        | ^ waiting   |
 *    +--refused-----------+-------------------+-+---------------+-+----------------+-+--> ANSWER <+
 *
 * handler.c drives this from libmicrohttpd's callbacks and sends what comes out; nothing here knows
 * the library. */
#ifndef HTTP_EXCHANGE_EXCHANGE_H
#define HTTP_EXCHANGE_EXCHANGE_H

#include "http/exchange/request.h"

/* Called when the header fields are in. True: the request is refused, and the reply may be sent
 * before the body is read. */
bool exchange_begin(struct request *request);

/* Called for each piece of the body. False: the body is unwanted and too large to be read and
 * dropped; the connection must be ended. */
bool exchange_receive(struct request *request, const void *bytes, size_t length);

/* Called when the body is in, and when a wait has ended. READY: the answer can be sent. */
enum outcome exchange_advance(struct request *request);

/* A 304 skips the steps, so its length may be unknown: it is then left out rather than wrong. A
 * HEAD may have to keep silent about it. */
#define ANSWER_LENGTH_UNKNOWN UINT64_MAX

/* The answer after preconditions and ranges. HEAD and 304 have no segments, though content_length
 * is that of the GET. Other answers have at most as many as the representation, plus two for each
 * of several ranges. */
struct answer {
    unsigned status;
    uint64_t content_length;
    bool close; /* the last answer on its connection */
    const struct field *fields;
    unsigned field_count;
    struct segment *segments; /* their start is the position in the answer */
    size_t segment_count;
};

/* To be called after exchange_advance returned READY or exchange_begin refused, and again if the
 * reply has been replaced since. Borrowed from the request; the sender may replace the segments by
 * others with the same bytes. */
struct answer *exchange_answer(struct request *request);

#endif
