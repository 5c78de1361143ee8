/* Caches small answers about models that a loop has just given, for identical requests.
 *
 * A request that equals an earlier one byte for byte gets the same bytes, before the library parses
 * it and without routing, lookup and description (repeat.h). An answer is cached when it is given
 * for the second time. It is valid for KEPT_MS, unless files, models, known facts about them
 * (base/changes.h) or access rights (the lease) change before. An entry copies the data that it
 * needs. */
#ifndef HTTP_WIRE_RESPONSE_CACHE_H
#define HTTP_WIRE_RESPONSE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/exchange/request.h"

/* The maximum number of answers, and the maximum size of their bodies. */
#define KEPT_ANSWERS   256u
#define KEPT_BYTES_MAX (16u * 1024)
/* The maximum length of the request. */
#define KEPT_KEY_MAX 2048u
#define KEPT_MS      50u

struct kept_answer;
struct lease;

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

/* Returns the answer to a request of these bytes on the connection, or NULL. The answer is the
 * cache's, and it may be out of date. */
struct kept_answer *response_cache_find(struct response_cache *kept,
                                        const struct connection *connection, const void *bytes,
                                        size_t length);

/* Returns true if the answer is still valid for requests that begin under this lease. */
bool kept_answer_is_valid(const struct kept_answer *answer, const struct lease *lease,
                          uint64_t now_ms);

/* Returns the target of the answer's request. */
const char *kept_answer_target(const struct kept_answer *answer);

/* Returns the whole answer, from its status line to its last byte. */
const char *kept_answer_text(const struct kept_answer *answer, size_t *out_length);

/* Completes a request for that target: it holds the answer, and counts as answered. */
void kept_answer_give(struct kept_answer *answer, struct request *request);

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
