/* Making the index of blobs complete, once, when the first of them is asked for. */
#include <stdlib.h>

#include "model/catalog_content.h"

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
