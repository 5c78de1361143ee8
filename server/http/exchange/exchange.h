/* One request from header to answer: route, begin, body, handler, preconditions, preparation,
 * ranges, digests, answer.
 *
 *   START --header in--> BODY --last byte--> HANDLE --ready--> PREPARE --ready--> DIGEST --ready--+
 *     |                    |                   | ^ waiting       | ^ waiting        | ^ waiting   |
 *     +--refused-----------+-------------------+-+---------------+-+----------------+-+--> ANSWER <+
 *
 * mhd.c drives this from libmicrohttpd's callbacks and sends what comes out; nothing here knows the
 * library. */
#ifndef HTTP_EXCHANGE_EXCHANGE_H
#define HTTP_EXCHANGE_EXCHANGE_H

#include "http/exchange/request.h"

/* The header fields are in. True: refused, the reply is settled and may be sent before the body. */
bool exchange_begin(struct request *request);

/* A piece of the body. False: more than may be wasted on a body that nobody wants; the connection
 * is to be ended. */
bool exchange_receive(struct request *request, const void *bytes, size_t length);

/* The body is in, or a wait has ended. READY: answer can be sent. */
enum outcome exchange_advance(struct request *request);

/* The answer after preconditions and ranges: status, fields, and the segments that are sent (none
 * for HEAD and 304, though content_length is that of the GET). There may be as many as the
 * representation has, and two more for each of several ranges. */
#define ANSWER_LENGTH_UNKNOWN \
    UINT64_MAX /* of a 304 before the steps: it must not tell a wrong one */

struct answer {
    unsigned status;
    uint64_t content_length;
    bool close; /* this answer is the connection's last */
    const struct field *fields;
    unsigned field_count;
    struct segment *segments; /* with start, in the answer */
    size_t segment_count;
};

/* After exchange_advance said READY (or exchange_begin refused). Borrowed from the request; whoever
 * sends it may put other segments of the same bytes in the place of these. */
struct answer *exchange_answer(struct request *request);

#endif
