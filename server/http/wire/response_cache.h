/* Caches small answers about models that a loop has just given, for identical requests.
 *
 * A request that equals an earlier one byte for byte, as far as the server examines it, gets the
 * same library response, without routing, lookup and description. An answer is cached when it is
 * given for the second time. It is valid for KEPT_MS, unless files, models, known facts about them
 * (base/changes.h) or access rights (the lease) change before. An entry copies the data that it
 * needs. */
#ifndef HTTP_WIRE_RESPONSE_CACHE_H
#define HTTP_WIRE_RESPONSE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/exchange/request.h"

/* The maximum number of answers, and their maximum size. */
#define KEPT_ANSWERS   256u
#define KEPT_BYTES_MAX (16u * 1024)
/* The maximum length of the request, without the parts that the HTTP library adds. */
#define KEPT_KEY_MAX 2048u
#define KEPT_MS      50u

struct MHD_Response;
struct kept_answer;

/* The cache of one loop. All members are initially 0. */
struct response_cache {
    struct kept_answer *answers[KEPT_ANSWERS];
    uint64_t asked[KEPT_ANSWERS]; /* hashes of requests that were answered once */
    unsigned looked_at;
    size_t key_length;
    char key[KEPT_KEY_MAX];
};

/* Returns true if the request, whose header is complete and well-formed, has a cached answer. The
 * request then counts as answered: call only response_cache_give. */
bool response_cache_find(struct response_cache *kept, struct request *request, uint64_t now_ms);

/* Returns the response for such a request, which the request owns. */
struct MHD_Response *response_cache_give(struct request *request);

/* Caches the answer of a request for which response_cache_find returned false, if possible and
 * worthwhile. Call it when the response is ready. */
void response_cache_offer(struct response_cache *kept, struct request *request, uint64_t now_ms);

void response_cache_clear(struct response_cache *kept);

#endif
