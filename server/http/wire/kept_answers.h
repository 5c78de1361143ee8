/* Small answers about models that a loop has just given, for clients that ask for the same again.
 *
 * A request that is the same in every byte that the server looks at gets the same response of the
 * library, without being routed, looked up and described again. An answer is kept when it is given
 * the second time, for KEPT_MS, and only as long as nothing changes that it depends on: files,
 * models and what is known of them (base/changes.h), and who may read what (the lease). What a kept
 * answer needs is copied. */
#ifndef HTTP_WIRE_KEPT_ANSWERS_H
#define HTTP_WIRE_KEPT_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/exchange/request.h"

/* At most so many, of at most so many bytes. */
#define KEPT_ANSWERS   256u
#define KEPT_BYTES_MAX (16u * 1024)
/* The request, without what the HTTP library adds. */
#define KEPT_KEY_MAX 2048u
#define KEPT_MS      50u

struct MHD_Response;
struct kept_answer;

/* Of one loop. All members are 0 at first. */
struct kept_answers {
    struct kept_answer *answers[KEPT_ANSWERS];
    uint64_t asked[KEPT_ANSWERS]; /* hashes of requests that were answered once */
    unsigned looked_at;
    size_t key_length;
    char key[KEPT_KEY_MAX];
};

/* Whether the request, whose header is in and well-formed, has a kept answer. It is then answered:
 * only kept_answers_give is to be called. */
bool kept_answers_find(struct kept_answers *kept, struct request *request, uint64_t now_ms);

/* The response for such a request, borrowed from it. */
struct MHD_Response *kept_answers_give(struct request *request);

/* Keeps the answer of a request that kept_answers_find has not answered, if that is possible and
 * worthwhile. To be called when its response is ready. */
void kept_answers_offer(struct kept_answers *kept, struct request *request, uint64_t now_ms);

void kept_answers_clear(struct kept_answers *kept);

#endif
