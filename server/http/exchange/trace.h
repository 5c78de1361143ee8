/* Identifies requests in answers and in the log (X-Request-Id, and the trace id of W3C Trace
 * Context), and records how each request ended in the log and the metrics. */
#ifndef HTTP_EXCHANGE_TRACE_H
#define HTTP_EXCHANGE_TRACE_H

#include "http/exchange/request.h"

/* Writes an id of 16 digits and a NUL, unique in the process. */
void trace_make_id(char out_id[REQUEST_ID_SIZE]);

/* Sets the request's id, which is the client's if that is well-formed, and its trace id. Call it
 * after the header fields. */
void trace_identify(struct request *request);

/* How a request's exchange ended. */
enum ending {
    ENDING_WHOLE,   /* the whole answer was sent, as far as this program can tell */
    ENDING_REFUSED, /* the HTTP library answered before the exchange began */
    ENDING_TIMEOUT, /* cut by a time limit */
    ENDING_DRAIN,   /* cut because the server stopped */
    ENDING_CLIENT,  /* the client went away */
    ENDING_SERVER   /* the server gave up: an unwanted body, or stored bytes that cannot be read */
};

/* Counts the request and logs it. sent_bytes counts the bytes of the answer that the client has
 * received, head included; it matters only if the ending is not whole. A request that was cut
 * before it had an answer gets the status 408 (timeout), 503 (drain), 499 (client gone, as in
 * nginx) or 500. If the HTTP library answered itself, the status is that answer's, or 400 if it
 * gave none. */
void trace_end(struct request *request, enum ending ending, uint64_t sent_bytes);

#endif
