/* Kept facts: a list a component, which only grows, so that those who look need no lock. */
#include "verify/kept_facts.h"

#include <stdlib.h>
#include <string.h>

/* What is kept of a component is less than a five-hundredth of it. */
#define LEAST_BYTES 65536

struct kept_fact {
    struct kept_fact *next;
    struct zt_fingerprint fact;
};

typedef _Atomic(struct kept_fact *) fact_list;

bool kept_fact_find(const struct generation *generation, uint32_t component,
                    enum zt_digest_algorithm algorithm, struct zt_fingerprint *out_fact)
{
    fact_list *lists = atomic_load(&generation->kept_facts);
    struct kept_fact *kept = lists != NULL ? atomic_load(&lists[component]) : NULL;

    while (kept != NULL && kept->fact.digest.algorithm != algorithm)
        kept = kept->next;
    if (kept != NULL)
        *out_fact = kept->fact;
    return kept != NULL;
}

/* NULL when memory is out. */
static fact_list *lists_of(struct generation *generation)
{
    fact_list *there = atomic_load(&generation->kept_facts);
    fact_list *made;

    if (there != NULL)
        return there;
    made = calloc(generation->model->component_count, sizeof(*made));
    /* Of two that made one at the same time the first is kept. */
    if (made != NULL && atomic_compare_exchange_strong(&generation->kept_facts, &there, made))
        return made;
    free(made);
    return there;
}

static void keep(struct generation *generation, uint32_t component,
                 const struct zt_fingerprint *fact)
{
    fact_list *lists = lists_of(generation);
    struct kept_fact *kept = lists != NULL ? malloc(sizeof(*kept)) : NULL;
    struct zt_fingerprint known;

    if (kept == NULL || kept_fact_find(generation, component, fact->digest.algorithm, &known)) {
        free(kept);
        return;
    }
    *kept = (struct kept_fact){.next = atomic_load(&lists[component]), .fact = *fact};
    /* Two that read beside each other may both be kept. */
    while (!atomic_compare_exchange_weak(&lists[component], &kept->next, kept))
        continue;
}

void kept_fact_add(struct generation *generation, uint32_t component,
                   const struct zt_fingerprint *fact)
{
    if (fact->length >= LEAST_BYTES)
        keep(generation, component, fact);
}

void kept_fact_learn(struct generation *generation, uint32_t component, const uint8_t sha256[32])
{
    struct zt_fingerprint fact = {.length = generation->model->components[component].decoded_length,
                                  .digest = {.algorithm = ZT_DIGEST_SHA256, .length_bytes = 32}};

    memcpy(fact.digest.bytes, sha256, 32);
    if (fact.length != ZT_LENGTH_UNKNOWN)
        keep(generation, component, &fact);
}

void kept_facts_free(struct generation *generation)
{
    fact_list *lists = atomic_load(&generation->kept_facts);

    for (uint32_t i = 0; lists != NULL && i < generation->model->component_count; i++) {
        struct kept_fact *kept = atomic_load(&lists[i]);

        while (kept != NULL) {
            struct kept_fact *next = kept->next;

            free(kept);
            kept = next;
        }
    }
    free(lists);
}
