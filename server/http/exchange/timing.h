/* Server-Timing (W3C): the duration of a request's phases, for a client that asks with the
 * parameter "timing". Other requests read no clock for it. */
#ifndef HTTP_EXCHANGE_TIMING_H
#define HTTP_EXCHANGE_TIMING_H

#include "http/exchange/request.h"

/* Starts measuring if the query asks for it; only then may the functions below be called. Replies
 * with 400 if the parameter is invalid. */
void timing_begin(struct request *request);

/* Ends a phase: it took the time since the end of the previous phase. name must live as long as the
 * program. */
void timing_lap(struct request *request, const char *name);

/* Call these when the request starts to wait (for workers or another request), and when it
 * continues. */
void timing_wait(struct request *request);
void timing_continue(struct request *request);

/* Returns the current value of the field; NULL if out of memory. */
const char *timing_text(struct request *request);

#endif
