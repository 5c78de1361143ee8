/* What has been computed of the numbers of components: statistics and previews. Each is made once
 * for each version of a file, by all workers side by side, and shared by all requests; the last
 * ones used are kept, within bounds. */
#ifndef NUMBERS_FINDINGS_H
#define NUMBERS_FINDINGS_H

#include "base/server.h"
#include "catalog/generation.h"
#include "zt/preview.h"

struct finding_cache;

/* What is to be computed. */
struct finding_order {
    uint32_t object;
    uint32_t component;
    const struct zt_slice *slice; /* of zt_elements_tensor; NULL: everything */
    uint64_t bytes;               /* about how many must be read */
    unsigned bins;                /* of statistics; 0: a preview is made */
    struct zt_preview preview;
};

/* Statistics are JSON (statistics_json.h), previews floats in the machine's order. */
struct finding {
    void *bytes;
    size_t length;
};

struct finding_cache *finding_cache_new(struct server *server);
/* Nobody may hold a finding or wait for one. Takes NULL. */
void finding_cache_free(struct finding_cache *cache);
/* Makes what is being computed fail soon, which wakes the requests that wait for it. Call it before
 * loops and workers are stopped. */
void finding_cache_stop(struct finding_cache *cache);

enum finding_answer { FINDING_READY, FINDING_PENDING, FINDING_FAILED };

/* READY: the caller holds *out_finding (finding_release). PENDING: waiter is woken when it has been
 * made; then ask again. FAILED: error says why, as decoded_elements_open does. It is given up when
 * all who wait for it are gone. */
enum finding_answer finding_ask(struct finding_cache *cache, struct generation *generation,
                                const struct finding_order *order, struct waiter *waiter,
                                struct finding **out_finding, struct zt_error *error);

/* The length of a finding that has been made and is kept; 0 without one. */
size_t finding_length(struct finding_cache *cache, const struct generation *generation,
                      const struct finding_order *order);

/* void * for request_hold. */
void finding_release(void *finding);

#endif
