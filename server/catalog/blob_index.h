/* Components by the SHA-256 of their stored bytes: as the file states it, or as it was found.
 * Nothing is kept until the first question; from then on 60 to 90 bytes a component, and whoever
 * changes the catalog's index tells this one. */
#ifndef CATALOG_BLOB_INDEX_H
#define CATALOG_BLOB_INDEX_H

#include <pthread.h>

#include "catalog/catalog.h"

struct blob_key;
struct blob_candidate;

struct blob_index {
    pthread_mutex_t filling; /* held by whoever makes it complete */
    atomic_bool begun;       /* additions are taken in */
    atomic_bool complete;
    pthread_rwlock_t lock; /* of what follows */
    uint64_t seed;
    struct blob_key *keys; /* a hash table; key_room is a power of two */
    size_t key_room;
    size_t key_count;
    struct blob_candidate *candidates;
    uint32_t candidate_count;
    uint32_t candidate_room;
    size_t dead_count; /* candidates of generations that are gone */
    /* What blob_place of a generation says; NULL where it is gone. Place 0 is never taken. */
    struct generation **places;
    uint32_t place_count;
    uint32_t place_room;
};

struct blob_search {
    unsigned skip; /* candidates that are not wanted */
    bool may_wait;
};

/* Of a cleared structure. */
void blob_index_init(struct blob_index *index);
void blob_index_clear(struct blob_index *index);

/* Between these, everything that the catalog holds is added, by whoever gets true; others wait, and
 * get false once it is complete. */
bool blob_index_begin(struct blob_index *index);
void blob_index_end(struct blob_index *index, bool complete);

/* Nothing, before the beginning. A generation is borrowed until it is removed, which must come
 * before its last reference goes; a retired one is not taken in. When memory is out components are
 * missing. */
void blob_index_add(struct blob_index *index, struct generation *generation);
void blob_index_remove(struct blob_index *index, struct generation *generation);
/* A component's digest was found. */
void blob_index_note(struct blob_index *index, struct generation *generation, uint32_t component);

/* catalog_find_blob. */
enum catalog_blob blob_index_find(struct blob_index *index, const uint8_t sha256[32],
                                  struct blob_search search, struct component_place *out_place);

#endif
