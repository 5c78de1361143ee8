/* What a request is called in answers and in the log: X-Request-Id, and the trace of W3C Trace Context. */
#ifndef HTTP_TRACE_H
#define HTTP_TRACE_H

#include "http/request.h"

/* Fills in the request's id, the client's own if it is sane, and its trace's, once the header fields are in. */
void trace_identify(struct request *request);

/* Writes the request's line to the log. */
void trace_log(struct request *request, uint64_t bytes_sent);

/* Nanoseconds of a clock that never goes back. */
uint64_t trace_clock_ns(void);

#endif
