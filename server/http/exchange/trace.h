/* What a request is called in answers and in the log: X-Request-Id, and the trace of W3C Trace
 * Context. */
#ifndef HTTP_EXCHANGE_TRACE_H
#define HTTP_EXCHANGE_TRACE_H

#include "http/exchange/request.h"

/* Fills in the request's id, the client's own if it is sane, and its trace's, once the header
 * fields are in. */
void trace_identify(struct request *request);

/* How a request's exchange ended. */
enum ending {
    ENDING_WHOLE,   /* the answer went out, to the last byte as far as this program can tell */
    ENDING_REFUSED, /* the HTTP library answered before the handler was asked */
    ENDING_TIMEOUT, /* a limit in time cut it */
    ENDING_DRAIN,   /* the server stopped */
    ENDING_CLIENT,  /* the client went away */
    ENDING_SERVER   /* the server gave up: a body nobody wants, stored bytes that cannot be read */
};

/* Writes the request's line to the log, and counts what its connection has taken of answers. The
 * status of a request that was cut before it had an answer is 408 (timeout), 503 (drain), 499
 * (client gone, as nginx has it) or 500; the HTTP library's own refusals are told as 400. */
void trace_end(struct request *request, enum ending ending);

/* Nanoseconds of a clock that never goes back. */
uint64_t trace_clock_ns(void);

#endif
