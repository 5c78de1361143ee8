/* A hash table from digests to chains of candidates. A candidate is the place of a generation and
 * the index of a component; its digest is read from the generation. Removing a generation is cheap,
 * since its candidates stay in the table until there are too many; then the table is rebuilt. */
#include "verify/blob_index.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "catalog/catalog.h"
#include "verify/verifier_work.h"
#include "zt/digest.h"

#define KEYS_LEAST 1024
/* The table is rebuilt when the candidates of removed generations exceed half of all candidates by
 * this number. */
#define DEAD_MAX 1024
/* The maximum number of candidates examined on a loop, which takes a few microseconds. */
#define STEPS_MAX 1000

struct blob_key {
    uint64_t
        hash; /* hash of seed and digest; the seed keeps writers of models from making long chains;
               * 0: free */
    uint32_t first; /* index of a candidate, counted from 1 */
};

struct blob_candidate {
    uint32_t place;
    uint32_t component;
    uint32_t next; /* counted from 1; 0: this is the last */
};

struct blob_index {
    pthread_mutex_t filling; /* held while the index is being made complete */
    atomic_bool begun;       /* additions are accepted */
    atomic_bool complete;
    pthread_rwlock_t lock; /* protects the members below */
    uint64_t seed;
    struct blob_key *keys; /* a hash table; key_room is a power of two */
    size_t key_room;
    size_t key_count;
    struct blob_candidate *candidates;
    size_t candidate_room;
    uint32_t candidate_count;
    uint32_t place_count;
    size_t dead_count; /* candidates of generations that were removed */
    /* Indexed by the generation's blob_place; NULL if it was removed. Place 0 is never used. */
    struct generation **places;
    size_t place_room;
};

struct blob_index *blob_index_new(void)
{
    struct blob_index *index = calloc(1, sizeof(*index));

    if (index == NULL)
        return NULL;
    pthread_mutex_init(&index->filling, NULL);
    pthread_rwlock_init(&index->lock, NULL);
    if (getrandom(&index->seed, sizeof(index->seed), 0) != (ssize_t)sizeof(index->seed))
        index->seed = (uint64_t)(uintptr_t)index;
    index->place_count = 1;
    return index;
}

static void free_tables(struct blob_index *index)
{
    free(index->keys);
    free(index->candidates);
    index->keys = NULL;
    index->candidates = NULL;
    index->key_room = 0;
    index->key_count = 0;
    index->candidate_room = 0;
    index->candidate_count = 0;
    index->dead_count = 0;
}

void blob_index_free(struct blob_index *index)
{
    if (index == NULL)
        return;
    free_tables(index);
    free(index->places);
    pthread_rwlock_destroy(&index->lock);
    pthread_mutex_destroy(&index->filling);
    free(index);
}

/* --- the table, with the lock held for writing --- */

static uint64_t hash_of(const struct blob_index *index, const uint8_t sha256[SHA256_BYTES])
{
    uint8_t seeded[sizeof(index->seed) + SHA256_BYTES];
    uint64_t hash;

    memcpy(seeded, &index->seed, sizeof(index->seed));
    memcpy(seeded + sizeof(index->seed), sha256, SHA256_BYTES);
    hash = zt_xxh3(seeded, sizeof(seeded));
    return hash != 0 ? hash : 1;
}

/* Returns the slot of a key, used or free, in a table of size room. */
static struct blob_key *find_key(struct blob_key *keys, size_t room, uint64_t hash)
{
    size_t at = hash & (room - 1);

    while (keys[at].hash != 0 && keys[at].hash != hash)
        at = (at + 1) & (room - 1);
    return &keys[at];
}

/* Keeps the table at most two thirds full. */
static bool make_room_for_key(struct blob_index *index)
{
    const size_t room = index->key_room == 0 ? KEYS_LEAST : index->key_room * 2;
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
    return zt_array_reserve(&index->candidates, &index->candidate_room,
                            (size_t)index->candidate_count + 1, sizeof(*index->candidates),
                            UINT32_MAX) == ZT_OK;
}

static bool digest_of(const struct generation *generation, uint32_t component,
                      uint8_t out_sha256[SHA256_BYTES])
{
    const uint8_t *block = digest_block(generation, component);

    if (block != NULL)
        memcpy(out_sha256, block, SHA256_BYTES);
    return block != NULL || stored_digest_stated(generation, component, out_sha256);
}

static void insert(struct blob_index *index, const struct generation *generation,
                   uint32_t component)
{
    uint8_t sha256[SHA256_BYTES];
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
        (struct blob_candidate){digest_table_of(generation)->blob_place, component, key->first};
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
    if (zt_array_reserve(&index->places, &index->place_room, (size_t)index->place_count + 1,
                         sizeof(struct generation *), UINT32_MAX) != ZT_OK)
        return false;
    digest_table_of(generation)->blob_place = index->place_count;
    index->places[index->place_count++] = generation;
    return true;
}

/* Rebuilds the table from the remaining generations. */
static void compact(struct blob_index *index)
{
    uint32_t count = index->place_count;

    free_tables(index);
    index->place_count = 1;
    for (uint32_t i = 1; i < count; i++) {
        struct generation *generation = index->places[i];

        if (generation == NULL)
            continue;
        /* This cannot fail: there are no more places than before. */
        (void)take_place(index, generation);
        insert_all(index, generation);
    }
    assert(index->place_count <= count);
}

/* Returns true if the generation has a place in the index, which only generations with a table of
 * digests have. */
static bool is_indexed(const struct blob_index *index, const struct generation *generation)
{
    return atomic_load(&index->begun) && generation->model != NULL &&
           digest_table_of(generation) != NULL;
}

void blob_index_add(struct blob_index *index, struct generation *generation)
{
    if (!is_indexed(index, generation))
        return;
    pthread_rwlock_wrlock(&index->lock);
    if (digest_table_of(generation)->blob_place == 0 && !atomic_load(&generation->retired) &&
        take_place(index, generation))
        insert_all(index, generation);
    pthread_rwlock_unlock(&index->lock);
}

void blob_index_remove(struct blob_index *index, struct generation *generation)
{
    struct digest_table *table;

    if (!is_indexed(index, generation))
        return;
    table = digest_table_of(generation);
    pthread_rwlock_wrlock(&index->lock);
    if (table->blob_place != 0) {
        assert(index->places[table->blob_place] == generation);
        index->places[table->blob_place] = NULL;
        table->blob_place = 0;
        index->dead_count += generation->model->component_count;
        if (index->dead_count > index->candidate_count / 2 + DEAD_MAX)
            compact(index);
    }
    pthread_rwlock_unlock(&index->lock);
}

void blob_index_note(struct blob_index *index, struct generation *generation, uint32_t component)
{
    uint8_t stated[SHA256_BYTES];

    /* A component with a stated digest is already in the index. */
    if (!is_indexed(index, generation) || stored_digest_stated(generation, component, stated))
        return;
    pthread_rwlock_wrlock(&index->lock);
    if (digest_table_of(generation)->blob_place != 0)
        insert(index, generation, component);
    pthread_rwlock_unlock(&index->lock);
}

static void add_all(struct blob_index *index, struct catalog *catalog)
{
    size_t count;
    struct generation **all = catalog_hold_all(catalog, &count);

    for (size_t i = 0; all != NULL && i < count; i++) {
        blob_index_add(index, all[i]);
        generation_release(all[i]);
    }
    atomic_store(&index->complete, all != NULL);
    free(all);
}

/* Completes the index, which stays complete from then on. The first call may take long. */
static void fill(struct blob_index *index, struct catalog *catalog)
{
    if (atomic_load(&index->complete))
        return;
    pthread_mutex_lock(&index->filling);
    if (!atomic_load(&index->complete)) {
        /* Set this before reading the catalog, so that no change in between is missed. */
        atomic_store(&index->begun, true);
        add_all(index, catalog);
    }
    pthread_mutex_unlock(&index->filling);
}

/* --- finding --- */

/* The lock must be held for reading. */
static enum blob_answer walk(const struct blob_index *index, const uint8_t sha256[SHA256_BYTES],
                             struct blob_search search, struct component_place *out_place)
{
    enum blob_answer answer = BLOB_NONE;
    unsigned steps = 0;
    uint32_t at = index->key_room == 0
                      ? 0
                      : find_key(index->keys, index->key_room, hash_of(index, sha256))->first;

    for (; at != 0; at = index->candidates[at - 1].next) {
        const struct blob_candidate *candidate = &index->candidates[at - 1];
        struct generation *generation = index->places[candidate->place];
        uint8_t own[SHA256_BYTES];

        assert(at <= index->candidate_count && candidate->place < index->place_count);
        if (!search.may_wait && ++steps > STEPS_MAX)
            return BLOB_BUSY;
        if (generation == NULL || atomic_load(&generation->retired) ||
            !digest_of(generation, candidate->component, own) ||
            memcmp(own, sha256, sizeof(own)) != 0 ||
            !name_filter_passes(search.filter, generation_name(generation)))
            continue;
        answer = BLOB_CORRUPT;
        if (atomic_load(&generation->states[candidate->component]) == COMPONENT_CORRUPT ||
            search.skip-- > 0)
            continue;
        *out_place = (struct component_place){generation_hold(generation), candidate->component};
        return BLOB_FOUND;
    }
    return answer;
}

enum blob_answer blob_find(struct server *server, const uint8_t sha256[SHA256_BYTES],
                           struct blob_search search, struct component_place *out_place)
{
    struct blob_index *index = server->verifier->blobs;
    enum blob_answer answer;

    if (search.may_wait) {
        fill(index, server->catalog);
        pthread_rwlock_rdlock(&index->lock);
    } else if (!atomic_load(&index->complete) || pthread_rwlock_tryrdlock(&index->lock) != 0) {
        return BLOB_BUSY;
    }
    answer = walk(index, sha256, search, out_place);
    pthread_rwlock_unlock(&index->lock);
    return answer;
}

/* --- by decoded bytes --- */

/* Finds the kept digest of decoded bytes, else the one that the file states. */
static bool decoded_sha256_of(const struct generation *generation, uint32_t component,
                              uint8_t out_sha256[SHA256_BYTES])
{
    const struct zt_component *stated = &generation->model->components[component];
    struct zt_fingerprint kept;

    if (decoded_digest_find(generation, component, ZT_DIGEST_SHA256, &kept))
        memcpy(out_sha256, kept.digest.bytes, SHA256_BYTES);
    else if (zt_component_is_plain(stated) ||
             !zt_component_decoded_sha256(generation->model, stated, out_sha256))
        return false;
    return true;
}

static bool find_decoded_in(struct generation *generation, const uint8_t sha256[SHA256_BYTES],
                            unsigned *io_skip, struct component_place *out_place)
{
    if (generation->model == NULL || atomic_load(&generation->retired))
        return false;
    for (uint32_t i = 0; i < generation->model->component_count; i++) {
        uint8_t own[SHA256_BYTES];

        if (!decoded_sha256_of(generation, i, own) || memcmp(own, sha256, SHA256_BYTES) != 0 ||
            atomic_load(&generation->states[i]) == COMPONENT_CORRUPT || (*io_skip)-- > 0)
            continue;
        *out_place = (struct component_place){generation_hold(generation), i};
        return true;
    }
    return false;
}

bool blob_find_decoded(struct server *server, const uint8_t sha256[SHA256_BYTES],
                       struct blob_search search, struct component_place *out_place)
{
    size_t count;
    struct generation **all = catalog_hold_all(server->catalog, &count);
    bool found = false;

    for (size_t i = 0; all != NULL && i < count; i++) {
        found = found || (name_filter_passes(search.filter, generation_name(all[i])) &&
                          find_decoded_in(all[i], sha256, &search.skip, out_place));
        generation_release(all[i]);
    }
    free(all);
    return found;
}
