/* One try of an exchange: a request on a handle of libcurl, and what becomes of its answer. On the
 * remote's thread. */
#ifndef REMOTE_ATTEMPT_H
#define REMOTE_ATTEMPT_H

#include <curl/curl.h>

#include "remote/remote.h"
#include "remote/request.h"
#include "remote/sign.h"

struct attempt;

/* Handles are kept and used again. The texts are borrowed, for as long as the attempt is there.
 * NULL without memory. */
struct attempt *attempt_new(const struct request_peer *peer);
void attempt_free(struct attempt *attempt);

struct attempt_outcome {
    enum remote_failure failure; /* NONE: an answer came whole, with whatever status */
    bool may_help;               /* another try; of failures */
};

/* Prepares the handle for one request, whose answer has to come within limit_ms. fields: the
 * signature, or NULL. What exchange held of an earlier answer is gone. False: it cannot be sent;
 * out_outcome and the exchange's error say why. Otherwise attempt_end must follow. */
bool attempt_begin(struct attempt *attempt, struct remote_exchange *exchange, uint64_t limit_ms,
                   const struct signed_fields *fields, struct attempt_outcome *out_outcome);

/* When the attempt began, or had last moved some KiB in either direction: coarse clock,
 * milliseconds. A trickle of bytes is no progress. */
int64_t attempt_moved_ms(const struct attempt *attempt);

/* For curl_multi_add_handle; its CURLOPT_PRIVATE is the context. */
CURL *attempt_handle(const struct attempt *attempt);
void attempt_set_context(struct attempt *attempt, void *context);

/* After the transfer, which is no longer in the multi handle: judges it, and fills in the
 * exchange's head, answer, and error if it failed. */
struct attempt_outcome attempt_end(struct attempt *attempt, CURLcode code);

#endif
