/* A hash table from digest to a chain of candidates. A candidate is a place and a number; its
 * digest is its generation's to tell. Those of a generation that is gone stay until there are too
 * many, so that removing one costs nothing; then the table is made anew. */
#include "catalog/blob_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "verify/found_digests.h"
#include "verify/found_work.h"
#include "zt/digest.h"

#define KEYS_LEAST 1024
/* Candidates of removed generations, beside half of all, that are left in their chains. */
#define DEAD_MAX 1024
/* Candidates looked at where nobody may wait for more: a few microseconds. */
#define STEPS_MAX 1000

/* hash: of seed and digest, so that nobody who writes models can choose which chains are long; 0:
 * free. first: the candidate's number from 1. */
struct blob_key {
    uint64_t hash;
    uint32_t first;
};

struct blob_candidate {
    uint32_t place;
    uint32_t component;
    uint32_t next; /* from 1; 0: the last */
};

void blob_index_init(struct blob_index *index)
{
    pthread_mutex_init(&index->filling, NULL);
    pthread_rwlock_init(&index->lock, NULL);
    if (getrandom(&index->seed, sizeof(index->seed), 0) != (ssize_t)sizeof(index->seed))
        index->seed = (uint64_t)(uintptr_t)index;
    index->place_count = 1;
}

static void free_tables(struct blob_index *index)
{
    free(index->keys);
    free(index->candidates);
    index->keys = NULL;
    index->candidates = NULL;
    index->key_room = index->key_count = 0;
    index->candidate_room = index->candidate_count = 0;
    index->dead_count = 0;
}

void blob_index_clear(struct blob_index *index)
{
    free_tables(index);
    free(index->places);
    pthread_rwlock_destroy(&index->lock);
    pthread_mutex_destroy(&index->filling);
}

bool blob_index_begin(struct blob_index *index)
{
    if (atomic_load(&index->complete))
        return false;
    pthread_mutex_lock(&index->filling);
    if (atomic_load(&index->complete)) {
        pthread_mutex_unlock(&index->filling);
        return false;
    }
    atomic_store(&index->begun, true);
    return true;
}

void blob_index_end(struct blob_index *index, bool complete)
{
    atomic_store(&index->complete, complete);
    pthread_mutex_unlock(&index->filling);
}

/* --- the table; the lock is held for writing --- */

static uint64_t hash_of(const struct blob_index *index, const uint8_t sha256[FOUND_DIGEST_SIZE])
{
    uint8_t seeded[sizeof(index->seed) + FOUND_DIGEST_SIZE];
    uint64_t hash;

    memcpy(seeded, &index->seed, sizeof(index->seed));
    memcpy(seeded + sizeof(index->seed), sha256, FOUND_DIGEST_SIZE);
    hash = zt_xxh3(seeded, sizeof(seeded));
    return hash != 0 ? hash : 1;
}

/* The key's place in a table with room, taken or free. */
static struct blob_key *find_key(struct blob_key *keys, size_t room, uint64_t hash)
{
    size_t at = hash & (room - 1);

    while (keys[at].hash != 0 && keys[at].hash != hash)
        at = (at + 1) & (room - 1);
    return &keys[at];
}

/* At most two thirds of the table are taken. */
static bool make_room_for_key(struct blob_index *index)
{
    size_t room = index->key_room == 0 ? KEYS_LEAST : index->key_room * 2;
    struct blob_key *keys;

    if (index->key_count < index->key_room / 3 * 2)
        return true;
    keys = calloc(room, sizeof(*keys));
    if (keys == NULL)
        return false;
    for (size_t i = 0; i < index->key_room; i++)
        if (index->keys[i].hash != 0)
            *find_key(keys, room, index->keys[i].hash) = index->keys[i];
    free(index->keys);
    index->keys = keys;
    index->key_room = room;
    return true;
}

static bool make_room_for_candidate(struct blob_index *index)
{
    uint64_t room = (uint64_t)index->candidate_room + index->candidate_room / 4 + KEYS_LEAST;
    struct blob_candidate *grown;

    if (index->candidate_count < index->candidate_room)
        return true;
    grown = room > UINT32_MAX ? NULL : realloc(index->candidates, (size_t)room * sizeof(*grown));
    if (grown == NULL)
        return false;
    index->candidates = grown;
    index->candidate_room = (uint32_t)room;
    return true;
}

static bool digest_of(const struct generation *generation, uint32_t component,
                      uint8_t out_sha256[FOUND_DIGEST_SIZE])
{
    const uint8_t *found = found_block(generation, component);

    if (found != NULL)
        memcpy(out_sha256, found, FOUND_DIGEST_SIZE);
    return found != NULL || found_digest_stated(generation, component, out_sha256);
}

static void insert(struct blob_index *index, const struct generation *generation,
                   uint32_t component)
{
    uint8_t sha256[FOUND_DIGEST_SIZE];
    struct blob_key *key;

    if (!digest_of(generation, component, sha256) || !make_room_for_key(index) ||
        !make_room_for_candidate(index))
        return;
    key = find_key(index->keys, index->key_room, hash_of(index, sha256));
    if (key->hash == 0) {
        key->hash = hash_of(index, sha256);
        index->key_count++;
    }
    index->candidates[index->candidate_count++] =
        (struct blob_candidate){generation->blob_place, component, key->first};
    key->first = index->candidate_count;
}

static void insert_all(struct blob_index *index, const struct generation *generation)
{
    for (uint32_t i = 0; i < generation->model->component_count; i++)
        insert(index, generation, i);
}

/* --- places --- */

static bool take_place(struct blob_index *index, struct generation *generation)
{
    if (index->place_count >= index->place_room) {
        uint32_t room = index->place_room < UINT32_MAX / 2 - 32 ? index->place_room * 2 + 64 : 0;
        struct generation **grown =
            room == 0 ? NULL : realloc(index->places, room * sizeof(*grown));

        if (grown == NULL)
            return false;
        index->places = grown;
        index->place_room = room;
    }
    generation->blob_place = index->place_count;
    index->places[index->place_count++] = generation;
    return true;
}

/* Makes everything anew from what is left. */
static void compact(struct blob_index *index)
{
    uint32_t count = index->place_count;

    free_tables(index);
    index->place_count = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (index->places[i] != NULL) {
            (void)take_place(index, index->places[i]);
            insert_all(index, index->places[index->place_count - 1]);
        }
    }
}

void blob_index_add(struct blob_index *index, struct generation *generation)
{
    if (!atomic_load(&index->begun) || generation->model == NULL)
        return;
    pthread_rwlock_wrlock(&index->lock);
    if (generation->blob_place == 0 && !atomic_load(&generation->retired) &&
        take_place(index, generation))
        insert_all(index, generation);
    pthread_rwlock_unlock(&index->lock);
}

void blob_index_remove(struct blob_index *index, struct generation *generation)
{
    if (!atomic_load(&index->begun) || generation->model == NULL)
        return;
    pthread_rwlock_wrlock(&index->lock);
    if (generation->blob_place != 0) {
        index->places[generation->blob_place] = NULL;
        generation->blob_place = 0;
        index->dead_count += generation->model->component_count;
        if (index->dead_count > index->candidate_count / 2 + DEAD_MAX)
            compact(index);
    }
    pthread_rwlock_unlock(&index->lock);
}

void blob_index_note(struct blob_index *index, struct generation *generation, uint32_t component)
{
    uint8_t stated[FOUND_DIGEST_SIZE];

    /* What it states itself it is in there by already. */
    if (!atomic_load(&index->begun) || found_digest_stated(generation, component, stated))
        return;
    pthread_rwlock_wrlock(&index->lock);
    if (generation->blob_place != 0)
        insert(index, generation, component);
    pthread_rwlock_unlock(&index->lock);
}

/* --- finding --- */

/* The lock is held for reading. */
static enum catalog_blob walk(const struct blob_index *index,
                              const uint8_t sha256[FOUND_DIGEST_SIZE], struct blob_search search,
                              struct component_place *out_place)
{
    enum catalog_blob answer = CATALOG_BLOB_NONE;
    unsigned steps = 0;
    uint32_t at = index->key_room == 0
                      ? 0
                      : find_key(index->keys, index->key_room, hash_of(index, sha256))->first;

    for (; at != 0; at = index->candidates[at - 1].next) {
        const struct blob_candidate *candidate = &index->candidates[at - 1];
        struct generation *generation = index->places[candidate->place];
        uint8_t own[FOUND_DIGEST_SIZE];

        if (!search.may_wait && ++steps > STEPS_MAX)
            return CATALOG_BLOB_BUSY;
        if (generation == NULL || atomic_load(&generation->retired) ||
            !digest_of(generation, candidate->component, own) ||
            memcmp(own, sha256, sizeof(own)) != 0)
            continue;
        answer = CATALOG_BLOB_CORRUPT;
        if (atomic_load(&generation->states[candidate->component]) == COMPONENT_CORRUPT ||
            search.skip-- > 0)
            continue;
        *out_place = (struct component_place){generation_hold(generation), candidate->component};
        return CATALOG_BLOB_FOUND;
    }
    return answer;
}

enum catalog_blob blob_index_find(struct blob_index *index, const uint8_t sha256[32],
                                  struct blob_search search, struct component_place *out_place)
{
    enum catalog_blob answer;

    if (!search.may_wait &&
        (!atomic_load(&index->complete) || pthread_rwlock_tryrdlock(&index->lock) != 0))
        return CATALOG_BLOB_BUSY;
    if (search.may_wait)
        pthread_rwlock_rdlock(&index->lock);
    answer = walk(index, sha256, search, out_place);
    pthread_rwlock_unlock(&index->lock);
    return answer;
}
