/* Counts of requests by route, method and status; how long they took, by route; and problems by
 * code. Labels are words of this program, never a client's: the pattern of the route or "none", a
 * known method or "other", a status that the server sends or "other". */
#ifndef HTTP_EXCHANGE_REQUEST_METRICS_H
#define HTTP_EXCHANGE_REQUEST_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* An ended request. Durations are in nanoseconds. */
struct request_outcome {
    unsigned status;
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t duration_ns;
    uint64_t wait_ns; /* from the end of the request to the start of its answer; UINT64_MAX: none */
};

void request_metrics_count(const struct request *request, const struct request_outcome *outcome);

/* A problem that was sent, in answer to a request or to a connection without one. */
void request_metrics_problem(enum problem problem);

/* Writes all of these (base/metrics.h). */
void request_metrics_write(FILE *stream);

#endif
