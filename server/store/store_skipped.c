/* Paths are compared by a 64-bit hash. If two paths had the same hash, one of them would not be
 * logged. */
#include "store/store_skipped.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "store/store.h"
#include "zt/digest.h"

/* 8 bytes each, twice. */
#define REMEMBERED_MAX ((size_t)65536)
/* Maximum number of lines per walk: the first walk of a large folder may find thousands. */
#define NAMED_MAX 100

static_assert((int)METRIC_SKIPPED_LONG - (int)METRIC_SKIPPED_NAME == (int)SKIP_LONG,
              "a metric for each reason, in their order");

static uint64_t hash_of(const char *path, enum skip_reason reason)
{
    assert(reason < SKIP_REASONS);
    return zt_xxh3(path, strlen(path)) + (uint64_t)reason;
}

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static bool is_known(const struct skipped *skipped, uint64_t hash)
{
    return skipped->known_count > 0 &&
           bsearch(&hash, skipped->known, skipped->known_count, sizeof(hash), compare) != NULL;
}

static void log_skipped(const char *path, enum skip_reason reason, int os_error)
{
    assert(reason < SKIP_REASONS);
    switch (reason) {
    case SKIP_NAME:
    case SKIP_FOLDER_NAME:
        log_write(LOG_LEVEL_WARN,
                  reason == SKIP_NAME
                      ? "%s is not served: a model's name is UTF-8 without control characters, of "
                        "at most %d bytes"
                      : "folder %s is not searched: a model's name is UTF-8 without control "
                        "characters, of at most %d bytes",
                  path, MODEL_NAME_MAX);
        break;
    case SKIP_EXTENSION:
        log_write(
            LOG_LEVEL_WARN,
            "%s is not served: its extension is not supported (.zt, .safetensors, .gguf, .mag, "
            ".npz, .npy, .pt, .pth, .bin, .ckpt and .onnx are)",
            path);
        break;
    case SKIP_OUTSIDE:
        log_write(LOG_LEVEL_WARN,
                  "the link %s is not followed: it leads out of the folder of models", path);
        break;
    case SKIP_BROKEN:
        log_write(LOG_LEVEL_WARN, "the link %s is not followed: its target does not exist", path);
        break;
    case SKIP_SPECIAL:
        log_write(LOG_LEVEL_WARN, "%s is not served: it is a device, FIFO or socket", path);
        break;
    case SKIP_UNREADABLE:
        log_write(LOG_LEVEL_WARN, "folder %s is skipped: %s", path, strerrordesc_np(os_error));
        break;
    case SKIP_LONG:
        log_write(LOG_LEVEL_WARN, "%.200s… is skipped: its path is too long", path);
        break;
    case SKIP_REASONS:
        break;
    }
}

void skipped_free(struct skipped *skipped)
{
    free(skipped->known);
    free(skipped->found);
    *skipped = (struct skipped){0};
}

void skipped_begin(struct skipped *skipped)
{
    skipped->found_count = 0;
    memset(skipped->counts, 0, sizeof(skipped->counts));
    skipped->named = 0;
    skipped->unnamed = 0;
    skipped->sum = 0;
    skipped->beyond = 0;
}

void skipped_note(struct skipped *skipped, const char *path, enum skip_reason reason, int os_error)
{
    const uint64_t hash = hash_of(path, reason);
    bool remembered =
        zt_array_reserve(&skipped->found, &skipped->found_capacity, skipped->found_count + 1,
                         sizeof(hash), REMEMBERED_MAX) == ZT_OK;

    assert(skipped->found_count <= REMEMBERED_MAX && reason < SKIP_REASONS);
    skipped->counts[reason]++;
    if (!remembered) {
        skipped->sum += hash;
        skipped->beyond++;
        return;
    }
    skipped->found[skipped->found_count++] = hash;
    if (is_known(skipped, hash))
        return;
    if (skipped->named >= NAMED_MAX) {
        skipped->unnamed++;
        return;
    }
    skipped->named++;
    log_skipped(path, reason, os_error);
}

/* Paths beyond the limit are counted again when their set changes, which the sum shows. */
static void log_rest(struct skipped *skipped)
{
    size_t rest = skipped->unnamed;

    if (skipped->sum != skipped->known_sum)
        rest += skipped->beyond;
    if (rest > 0)
        log_write(LOG_LEVEL_WARN, "%zu more files, folders and links are skipped", rest);
    skipped->known_sum = skipped->sum;
}

/* Keeps the earlier paths after a walk that was cut short: they may be ones it did not reach. */
static void keep_known(struct skipped *skipped)
{
    assert(skipped->known_count <= REMEMBERED_MAX);
    for (size_t i = 0; i < skipped->known_count; i++) {
        if (zt_array_reserve(&skipped->found, &skipped->found_capacity, skipped->found_count + 1,
                             sizeof(uint64_t), REMEMBERED_MAX) != ZT_OK)
            return;
        skipped->found[skipped->found_count++] = skipped->known[i];
    }
}

static size_t sort_distinct(uint64_t *items, size_t count)
{
    size_t kept = 0;

    if (count > 1)
        qsort(items, count, sizeof(*items), compare);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || items[i] != items[i - 1])
            items[kept++] = items[i];
    return kept;
}

static void show(const struct skipped *skipped)
{
    for (enum skip_reason reason = 0; reason < SKIP_REASONS; reason++)
        metric_set(METRIC_SKIPPED_NAME + (enum metric)reason, (int64_t)skipped->counts[reason]);
}

void skipped_end(struct skipped *skipped, bool whole)
{
    log_rest(skipped);
    if (whole)
        show(skipped);
    if (!whole)
        keep_known(skipped);
    free(skipped->known);
    skipped->known_count = sort_distinct(skipped->found, skipped->found_count);
    skipped->known = skipped->found;
    assert(skipped->known_count <= skipped->found_count);
    skipped->found = NULL;
    skipped->found_count = 0;
    skipped->found_capacity = 0;
}
