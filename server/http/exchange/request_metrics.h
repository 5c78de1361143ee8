/* Metrics: the number of requests by route, method and status; their duration by route; and
 * problems by code. Labels are words of this program and never come from a client: the route's
 * pattern or "none", a known method or "other", a status that the server sends or "other". */
#ifndef HTTP_EXCHANGE_REQUEST_METRICS_H
#define HTTP_EXCHANGE_REQUEST_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* A request that has ended. Durations are in nanoseconds. */
struct request_outcome {
    unsigned status;
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t duration_ns;
    uint64_t wait_ns; /* from the end of the request to the start of its answer; UINT64_MAX: no
                       * answer */
};

void request_metrics_count(const struct request *request, const struct request_outcome *outcome);

/* Counts a problem that was sent, either for a request or on a connection without one. */
void request_metrics_problem(enum problem problem);

/* Writes all these metrics (base/metrics.h). */
void request_metrics_write(FILE *stream);

#endif
