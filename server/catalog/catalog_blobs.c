/* Making the index of blobs complete, once, when the first of them is asked for; and the search for
 * what it cannot hold. */
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_content.h"
#include "verify/kept_facts.h"

/* All of the index, held; NULL when memory is out. */
static struct generation **hold_all(struct catalog_content *content, size_t *out_count)
{
    struct generation **all;

    pthread_rwlock_rdlock(&content->index_lock);
    *out_count = content->index.count;
    all = calloc(*out_count + 1, sizeof(*all));
    for (size_t i = 0; all != NULL && i < *out_count; i++)
        all[i] = generation_hold(content->index.by_path[i]);
    pthread_rwlock_unlock(&content->index_lock);
    return all;
}

void catalog_content_fill_blobs(struct catalog_content *content)
{
    struct generation **all;
    size_t count;

    if (!blob_index_begin(&content->blobs))
        return;
    all = hold_all(content, &count);
    for (size_t i = 0; all != NULL && i < count; i++) {
        blob_index_add(&content->blobs, all[i]);
        generation_release(all[i]);
    }
    blob_index_end(&content->blobs, all != NULL);
    free(all);
}

/* --- by decoded bytes --- */

static bool find_in(struct generation *generation, const uint8_t sha256[32],
                    struct component_place *out_place)
{
    if (generation->model == NULL || atomic_load(&generation->kept_facts) == NULL ||
        atomic_load(&generation->retired))
        return false;
    for (uint32_t i = 0; i < generation->model->component_count; i++) {
        struct zt_fingerprint fact;

        if (!kept_fact_find(generation, i, ZT_DIGEST_SHA256, &fact) ||
            memcmp(fact.digest.bytes, sha256, 32) != 0 ||
            atomic_load(&generation->states[i]) == COMPONENT_CORRUPT)
            continue;
        *out_place = (struct component_place){generation_hold(generation), i};
        return true;
    }
    return false;
}

bool catalog_content_find_decoded(struct catalog_content *content, const uint8_t sha256[32],
                                  struct component_place *out_place)
{
    size_t count;
    struct generation **all = hold_all(content, &count);
    bool found = false;

    for (size_t i = 0; all != NULL && i < count; i++) {
        found = found || find_in(all[i], sha256, out_place);
        generation_release(all[i]);
    }
    free(all);
    return found;
}
