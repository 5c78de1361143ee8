/* Caches small answers about models that a loop has just given, for identical requests.
 *
 * A request that equals an earlier one byte for byte gets the same bytes, before the library parses
 * it and without routing, lookup and description: the library believes that no bytes have arrived.
 * An answer is cached when it is given for the second time. It is valid for KEPT_MS, unless files,
 * models, known facts about them (base/changes.h) or access rights (the lease) change before. An
 * entry copies the data that it needs. For the loop's thread. */
#ifndef HTTP_WIRE_RESPONSE_CACHE_H
#define HTTP_WIRE_RESPONSE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/exchange/request.h"
#include "http/tap/tap.h"

/* The maximum number of answers, and the maximum size of their bodies. */
#define KEPT_ANSWERS   256u
#define KEPT_BYTES_MAX (16u * 1024)
/* The maximum length of the request. */
#define KEPT_KEY_MAX 2048u
#define KEPT_MS      50u

struct kept_answer;

/* The cache of one loop. All members are initially 0. */
struct response_cache {
    struct kept_answer *answers[KEPT_ANSWERS];
    uint64_t asked[KEPT_ANSWERS]; /* hashes of requests that were answered once */
    unsigned looked_at;
    /* The last request that was received in one piece and alone. */
    const struct connection *noted_on; /* NULL: none, or more bytes have arrived since */
    uint64_t noted_hash;
    size_t noted_length;
    char noted[KEPT_KEY_MAX];
};

/* Answers a request of these bytes, which the connection has received at the start of a request.
 * Returns TAP_PASS if the answer is not cached; TAP_TAKEN if the answer is sent, or will be: then
 * the connection is SENDING until handover_on_answered is called; TAP_END if the client is gone. */
enum tap_verdict response_cache_answer(struct connection *connection, const void *bytes,
                                       size_t length);

/* Ends such a request. whole: all of the answer was sent. */
void response_cache_end(struct connection *connection, bool whole);

/* Notes bytes that were not found and that the library is about to parse. They are the whole header
 * of a request, and no more. */
void response_cache_note(struct response_cache *kept, const struct connection *connection,
                         const void *bytes, size_t length);

/* Forgets the bytes that were noted on the connection. Call it when other bytes have arrived: the
 * next answer may be another request's. */
void response_cache_forget(struct response_cache *kept, const struct connection *connection);

/* Caches the answer of the request that was noted last, if possible and worthwhile. Does nothing
 * for any other request. Call it when the response is ready. */
void response_cache_offer(struct response_cache *kept, struct request *request, uint64_t now_ms);

void response_cache_clear(struct response_cache *kept);

#endif
