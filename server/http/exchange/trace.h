/* What tells requests apart, in answers and in the log: X-Request-Id and the trace of W3C Trace
 * Context; and how each of them ended, in the log and in the metrics. */
#ifndef HTTP_EXCHANGE_TRACE_H
#define HTTP_EXCHANGE_TRACE_H

#include "http/exchange/request.h"

/* Writes an id of 16 digits and a NUL that no other request of the process has. */
void trace_make_id(char out_id[REQUEST_ID_SIZE]);

/* Fills in the request's id, which is the client's own if that is well-formed, and the id of its
 * trace. Call it when the header fields are in. */
void trace_identify(struct request *request);

/* How a request's exchange ended. */
enum ending {
    ENDING_WHOLE,   /* the whole answer was sent, as far as this program can tell */
    ENDING_REFUSED, /* the HTTP library answered before the exchange began */
    ENDING_TIMEOUT, /* cut by a time limit */
    ENDING_DRAIN,   /* cut because the server stopped */
    ENDING_CLIENT,  /* the client went away */
    ENDING_SERVER   /* the server gave up: an unwanted body, stored bytes that cannot be read */
};

/* Counts the request and writes its line to the log. sent_bytes counts what the client has received
 * of the answer, head included; it matters only if the ending is not whole. The status of a request
 * that was cut before it had an answer is 408 (timeout), 503 (drain), 499 (client gone, as in
 * nginx) or 500. What the HTTP library answered by itself has the status of that answer, or 400 if
 * it gave none. */
void trace_end(struct request *request, enum ending ending, uint64_t sent_bytes);

#endif
