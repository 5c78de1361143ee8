/* The table of a generation's digests, the queue of components to be read, and saving. Shared by
 * the files of digests and by the verifier, which owns the queue; all others use
 * component_digests.h. */
#ifndef VERIFY_DIGEST_WORK_H
#define VERIFY_DIGEST_WORK_H

#include <pthread.h>

#include "store/state_file.h"
#include "verify/component_digests.h"

/* Idle jobs at a time; on most machines the pool has fewer threads for them. */
#define FINDERS_MAX 64

struct verifier;

/* A component's block of digests, DIGEST_WANTED, or NULL. A block is the SHA-256 of the whole,
 * followed by those of the pieces if there are several. Blocks never change. */
typedef _Atomic(uint8_t *) digest_slot;

/* In the table: wanted, but not computed yet. */
extern uint8_t digest_wanted_mark[1];
#define DIGEST_WANTED digest_wanted_mark

struct decoded_digest;
typedef _Atomic(struct decoded_digest *) decoded_list;

/* A queue of components, which frees its memory when it becomes empty. */
struct component_list {
    uint32_t *items;
    size_t capacity;
    uint32_t next;
    uint32_t count;
};

/* A generation's side table. */
struct digest_table {
    struct side_table base;
    uint64_t piece_bytes;            /* 0: stored bytes are not read for their digests */
    _Atomic(digest_slot *) stored;   /* by component; NULL until a digest is wanted or recalled */
    _Atomic(decoded_list *) decoded; /* by component; NULL until a digest is kept */
    /* Used by the queue, under its lock. */
    struct component_list wanted;
    struct component_list unsaved;
    bool queued;
    struct generation *next;
    /* Used by the saver: how much of the file in the state folder this generation wrote; 0: the
     * file must be written from the start. */
    uint64_t saved_bytes;
    /* Used by blob_index.c, under its lock: the generation's place there, 0 for none. */
    uint32_t blob_place;
    /* Used by shared_digests.c. */
    atomic_bool is_shared_now;     /* a job of this generation is queued or runs */
    atomic_uint shared_count;      /* how many blocks the replicas' fact has */
    _Atomic(int64_t) next_fact_ms; /* it is not written before, unless there is much more */
    bool is_owed;                  /* the saver's: what was found last is still to be offered */
};

/* The generation's table; NULL if it has none. */
static inline struct digest_table *digest_table_of(const struct generation *generation)
{
    return (struct digest_table *)generation_side_table(generation, SIDE_TABLE_DIGESTS);
}

/* Whether stored bytes are read for their digests. */
static inline bool digests_are_on(const struct generation *generation)
{
    const struct digest_table *table = digest_table_of(generation);

    return table != NULL && table->piece_bytes > 0;
}

struct reading;

struct finder {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    bool queued;             /* under the queue's lock */
    struct reading *reading; /* kept between turns; NULL if there is none */
};

/* The verifier's part. */
struct finder_queue {
    struct state_folder folder;
    pthread_mutex_t lock; /* of what follows */
    struct generation *first;
    struct generation **last;
    unsigned waiting;
    unsigned finder_count;
    struct finder finders[FINDERS_MAX];
};

/* --- digest_finder.c --- */

void digest_finder_init(struct verifier *verifier, int state_folder);
/* To be called when no finder runs any more. */
void digest_finder_clear(struct verifier *verifier);
/* Queues a component to be read. False if that is impossible at present. */
bool digest_finder_add(struct verifier *verifier, struct generation *generation,
                       uint32_t component);
/* Finders rest while whole models are verified. To be called when none is any more. */
void digest_finder_continue(struct verifier *verifier);
/* To be called when a component's block was put into the table: has it saved and indexed as a
 * blob. */
void digest_finder_note(struct verifier *verifier, struct generation *generation,
                        uint32_t component);

/* --- component_digests.c --- */

/* For a new generation, which no other thread has seen: recalls what an earlier run computed. */
void digest_table_adopt(struct verifier *verifier, struct generation *generation);
/* Number of digests in a block: that of the whole and, if there are several pieces, theirs. */
uint64_t digest_block_count(uint64_t length_bytes, uint64_t piece_bytes);
/* Replaces before (NULL or DIGEST_WANTED) by block. False if the slot holds something else, or
 * out of memory. */
bool digest_block_put(struct generation *generation, uint32_t component, uint8_t *before,
                      uint8_t *block);
/* The block, whatever the component's state; NULL if there is none. */
const uint8_t *digest_block(const struct generation *generation, uint32_t component);
/* For a wanted component that cannot be read now; it may be wanted again. */
void digest_forget_wanted(struct generation *generation, uint32_t component);

/* --- saved_state.c: digests across restarts --- */

void digest_state_recall(struct state_folder *folder, struct generation *generation);
/* The same as bytes: all digests that are known. */
void digest_state_encode(struct record_writer *image, const struct generation *generation);
/* Takes over what is not known yet, from bytes that anybody may have written: calls took for each
 * component. Nothing is taken unless they are about this version; the first damaged record ends
 * them, and so does one that contradicts the file. */
void digest_state_decode(const uint8_t *bytes, size_t length, struct generation *generation,
                         void (*took)(void *context, uint32_t component), void *context);
/* Saves what was computed since the last time. */
void digest_state_save(struct verifier *verifier, struct generation *generation);

/* --- shared_digests.c: digests of replicas, kept with the version in their store --- */

/* Has what other replicas found read in the background, if the store is elsewhere. */
void shared_digests_recall(struct verifier *verifier, struct generation *generation);
/* To be called now and then when digests were found: has them written in the background, if this
 * server may write and it is worth it. False: there is more to be written, but not now. */
bool shared_digests_offer(struct verifier *verifier, struct generation *generation);

#endif
