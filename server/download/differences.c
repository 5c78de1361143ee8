#include "download/differences.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "client/web_source.h"
#include "zt/xor.h"

#define REFUSALS_MOST 3

enum zt_status differences_add(struct differences *differences, const struct difference *difference,
                               struct zt_error *error)
{
    if (zt_array_reserve(&differences->list, &differences->capacity, differences->count + 1,
                         sizeof(*differences->list), UINT32_MAX) != ZT_OK)
        return zt_fail_memory(error, "differences");
    differences->list[differences->count++] = *difference;
    return ZT_OK;
}

void differences_free(struct differences *differences)
{
    for (size_t i = 0; i < differences->count; i++)
        free(differences->list[i].target);
    free(differences->list);
    differences->list = NULL;
    differences->count = differences->capacity = 0;
}

/* --- one tensor --- */

struct making {
    struct differences *differences;
    const struct part_file *file;
    const struct piece_map *map;
    differences_watcher watch;
    void *context;
    pthread_mutex_t lock; /* of watch and the sums */
};

/* Takes the tensor's bytes in order. */
struct placing {
    const struct part_file *file;
    const struct piece_map *map;
    uint64_t at;
    struct zt_hasher *hasher;
};

/* Leaves alone pieces that have arrived: only the last byte shows whether the tensor is right. */
static enum zt_status place(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    struct placing *placing = context;
    const uint8_t *next = bytes;
    const uint64_t end = placing->at + length;
    enum zt_status status = ZT_OK;

    zt_hasher_update(placing->hasher, bytes, length);
    while (placing->at < end && status == ZT_OK) {
        const uint32_t piece = piece_map_at(placing->map, placing->at);
        const uint64_t until = piece_map_end(placing->map, piece);
        const size_t part = (size_t)((until < end ? until : end) - placing->at);

        if (placing->map->states[piece] == PIECE_MISSING)
            status = part_file_write(placing->file, placing->at, next, part, error);
        placing->at += part;
        next += part;
    }
    return status;
}

static bool has_digest(struct zt_hasher *hasher, const struct zt_digest *wanted)
{
    struct zt_digest digest;

    zt_hasher_finish(hasher, &digest);
    return digest.length_bytes == wanted->length_bytes &&
           memcmp(digest.bytes, wanted->bytes, digest.length_bytes) == 0;
}

static bool decode(const struct making *making, const struct difference *difference,
                   struct zt_source *frames)
{
    const struct zt_xor_difference decoded = {frames, difference->base, difference->base_at,
                                              difference->length};
    struct placing placing = {.file = making->file, .map = making->map, .at = difference->at};
    const struct zt_sink sink = {place, &placing};
    struct zt_error error;
    bool is_made = zt_hasher_new(difference->digest.algorithm, &placing.hasher) == ZT_OK;

    is_made = is_made && zt_xor_decode(&decoded, &sink, &error) == ZT_OK &&
              has_digest(placing.hasher, &difference->digest);
    zt_hasher_free(placing.hasher);
    return is_made;
}

/* A difference that is as long as the tensor saves nothing. */
static bool is_useful(const struct difference *difference, const struct web_file *web)
{
    const struct zt_digest *wanted = &difference->digest;

    return web->has_ranges && web->size < difference->length &&
           (!web->has_sha256 || wanted->algorithm != ZT_DIGEST_SHA256 ||
            memcmp(web->sha256, wanted->bytes, sizeof(web->sha256)) == 0);
}

static enum zt_status ask(const struct differences *differences,
                          const struct difference *difference, struct web_file *out_web,
                          struct zt_error *error)
{
    struct client_place place;
    enum zt_status status =
        client_place_beside(differences->place, difference->target, &place, error);

    if (status == ZT_OK)
        status = web_file_open(differences->client, &place, out_web, error);
    if (status == ZT_OK)
        atomic_store(differences->refusals, 0);
    else
        atomic_fetch_add(differences->refusals, 1);
    return status;
}

static void count(struct making *making, const struct difference *difference,
                  const struct web_file *web)
{
    pthread_mutex_lock(&making->lock);
    making->differences->made_bytes += difference->length;
    making->differences->received_bytes += web->size;
    making->watch(making->context, making->differences->made_bytes);
    pthread_mutex_unlock(&making->lock);
}

/* A tensor that cannot be made is fetched instead. */
static bool make(void *context, uint32_t index)
{
    struct making *making = context;
    struct differences *differences = making->differences;
    struct difference *difference = &differences->list[index];
    struct zt_source *frames = NULL;
    struct web_file web;
    struct zt_error error;

    assert(difference->length > 0 && difference->length <= making->map->size - difference->at);
    if (atomic_load(differences->refusals) >= REFUSALS_MOST ||
        piece_map_has(making->map, difference->at, difference->length) ||
        ask(differences, difference, &web, &error) != ZT_OK || !is_useful(difference, &web) ||
        web_source_open(differences->client, &web, &frames, &error) != ZT_OK)
        return true;
    difference->is_made = decode(making, difference, frames);
    zt_source_close(frames);
    if (difference->is_made)
        count(making, difference, &web);
    return true;
}

void differences_make(struct differences *differences, const struct part_file *file,
                      const struct piece_map *map, differences_watcher watch, void *context)
{
    struct making making = {.differences = differences,
                            .file = file,
                            .map = map,
                            .watch = watch,
                            .context = context,
                            .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct parallel_work work = {
        .count = (uint32_t)differences->count, .run = make, .context = &making};

    if (differences->count == 0)
        return;
    assert(differences->client != NULL && differences->jobs > 0);
    parallel_for_threads("difference", differences->jobs, &work);
}
