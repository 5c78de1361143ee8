/* Answers a request from the response cache before the library parses it. The library believes that
 * no bytes have arrived, and so spends nothing on the request. For the loop's thread. */
#ifndef HTTP_WIRE_REPEAT_H
#define HTTP_WIRE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>

#include "http/tap/tap.h"

struct connection;

/* Answers a request of these bytes, which the connection has received at the start of a request.
 * Returns TAP_PASS if the answer is not cached; TAP_TAKEN if the answer is sent, or will be: then
 * the connection is SENDING until handover_on_answered is called; TAP_END if the client is gone. */
enum tap_verdict repeat_answer(struct connection *connection, const void *bytes, size_t length);

/* Ends such a request. whole: all of the answer was sent. */
void repeat_end(struct connection *connection, bool whole);

#endif
