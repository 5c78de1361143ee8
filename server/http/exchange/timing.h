/* Server-Timing (W3C): how long the phases of a request took, for a client that asks with the
 * parameter "timing". Other requests read no clock for it. */
#ifndef HTTP_EXCHANGE_TIMING_H
#define HTTP_EXCHANGE_TIMING_H

#include "http/exchange/request.h"

/* Begins to measure if the request asks for it. Replies with 400 if the parameter makes no
 * sense. */
void timing_begin(struct request *request);

/* A phase has ended: the time since the end of the one before is its. name lives as long as the
 * program. Does nothing if nothing is measured, like the others. */
void timing_lap(struct request *request, const char *name);

/* The request begins to wait, for workers or for another request; and continues. */
void timing_wait(struct request *request);
void timing_continue(struct request *request);

/* The value of the field, up to now. NULL if nothing is measured, or out of memory. */
const char *timing_text(struct request *request);

#endif
