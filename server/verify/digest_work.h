/* The table of a generation's digests, the queue of components to be read, and saving. Only the
 * digest files and the verifier, which owns the queue, use this header; other files use
 * component_digests.h. */
#ifndef VERIFY_DIGEST_WORK_H
#define VERIFY_DIGEST_WORK_H

#include <pthread.h>

#include "disk/ledger.h"
#include "verify/component_digests.h"

struct verifier;

/* A component's block of digests, a mark, or NULL. A block is the SHA-256 of the whole component,
 * followed by the pieces' digests if there are several. Blocks never change. */
typedef _Atomic(uint8_t *) digest_slot;

/* Marks for components whose digests are wanted, and are being computed. */
extern uint8_t digest_marks[2];
#define DIGEST_WANTED  (&digest_marks[0])
#define DIGEST_READING (&digest_marks[1])

struct decoded_digest;
typedef _Atomic(struct decoded_digest *) decoded_list;

/* A generation's side table. */
struct digest_table {
    struct side_table base;
    uint64_t piece_bytes;            /* 0: stored bytes are not read for their digests */
    _Atomic(digest_slot *) stored;   /* by component; NULL until a digest is wanted or recalled */
    _Atomic(decoded_list *) decoded; /* by component; NULL until a digest is kept */
    /* Used by the queue, under its lock. */
    struct record_writer unsaved; /* records to be appended to the saved file */
    uint32_t first_wanted;        /* no earlier component is wanted */
    bool queued;
    struct generation *next;
    /* Used by the saver: how much of the file in the state folder this generation has written; 0:
     * the file must be rewritten. */
    uint64_t saved_bytes;
    /* Used by blob_index.c, under its lock: the generation's place there, 0 for none. */
    uint32_t blob_place;
    /* Used by shared_digests.c. */
    atomic_bool is_shared_now;     /* a job of this generation is queued or runs */
    atomic_uint shared_count;      /* number of blocks in the replicas' fact */
    _Atomic(int64_t) next_fact_ms; /* no write before this time, unless many digests are new */
    bool is_owed;                  /* for the saver: the latest digests must still be offered */
};

/* The generation's table; NULL if it has none. */
static inline struct digest_table *digest_table_of(const struct generation *generation)
{
    return (struct digest_table *)generation_side_table(generation, SIDE_TABLE_DIGESTS);
}

/* Returns true if stored bytes are read for their digests. */
static inline bool digests_are_on(const struct generation *generation)
{
    const struct digest_table *table = digest_table_of(generation);

    return table != NULL && table->piece_bytes > 0;
}

/* The verifier's queue: the generations with wanted components, in order of arrival. */
struct wanted_digests {
    struct ledger_folder folder;
    pthread_mutex_t lock; /* protects the members below; may be taken while hash_queue's lock is
                           * held */
    struct generation *first;
    struct generation **last;
    unsigned waiting;
};

/* --- wanted_digests.c --- */

void wanted_digests_init(struct verifier *verifier, int state_folder);
/* Releases the generations that still wait. To be called after the workers have ended. */
void wanted_digests_drop(struct verifier *verifier);
void wanted_digests_clear(struct verifier *verifier);
/* Queues a component to be read in the background. Returns false if too many models wait, the
 * server is stopping or memory is short. */
bool wanted_digests_add(struct verifier *verifier, struct generation *generation,
                        uint32_t component);
/* Call it when a component's block has been put into the table: schedules saving it and indexes it
 * as a blob. */
void digests_note(struct verifier *verifier, struct generation *generation, uint32_t component);

/* --- component_digests.c --- */

/* Restores the digests of an earlier run for a new generation that no other thread has seen. */
void digest_table_adopt(struct verifier *verifier, struct generation *generation);
/* Replaces before (NULL or a mark) by block, which may be a mark. Returns false if the slot has
 * another value, or if out of memory. */
bool digest_block_put(struct generation *generation, uint32_t component, uint8_t *before,
                      uint8_t *block);
/* Returns the block, whatever the component's state; NULL if there is none. */
const uint8_t *digest_block(const struct generation *generation, uint32_t component);
/* Marks the next wanted component, from *io_component on, as being read. Returns false if there is
 * none. */
bool digest_take_wanted(struct generation *generation, uint32_t *io_component);

/* --- saved_state.c: digests across restarts --- */

void digest_state_recall(struct ledger_folder *folder, struct generation *generation);
/* Adds the record of one component's digests. */
void digest_state_put(struct record_writer *image, const struct generation *generation,
                      uint32_t component);
/* Adds all known digests. */
void digest_state_encode(struct record_writer *image, const struct generation *generation);
/* Reads unknown digests from untrusted bytes and calls took for each component. Reads none unless
 * they belong to this version; stops at the first record that is damaged or contradicts the
 * file. */
void digest_state_decode(const uint8_t *bytes, size_t length, struct generation *generation,
                         void (*took)(void *context, uint32_t component), void *context);
/* Saves the digests computed since the last call. */
void digest_state_save(struct verifier *verifier, struct generation *generation);

/* --- shared_digests.c: digests of replicas, kept with the version in their store --- */

/* Reads the digests of other replicas in the background, if the store is remote. */
void shared_digests_recall(struct verifier *verifier, struct generation *generation);
/* Call it from time to time after digests were computed: writes them in the background, if this
 * server may write and enough are new. Returns false if more must be written later. */
bool shared_digests_offer(struct verifier *verifier, struct generation *generation);

#endif
