/* What is found, what is wanted, and who finds it. Shared by the files of found digests and by the
 * verifier, which owns the queue; everybody else uses found_digests.h. */
#ifndef VERIFY_FOUND_WORK_H
#define VERIFY_FOUND_WORK_H

#include <pthread.h>

#include "base/server.h"
#include "catalog/generation.h"
#include "store/state_file.h"

#define FOUND_DIGEST_SIZE 32
/* Idle jobs at once; the pool has no more threads for them than that on most machines. */
#define FINDERS_MAX 64

struct verifier;

/* A component's block, FOUND_WANTED, or NULL. Blocks never change. */
typedef _Atomic(uint8_t *) found_slot;

/* In the table: wanted, and not found yet. */
extern uint8_t found_wanted_mark[1];
#define FOUND_WANTED found_wanted_mark

/* A queue of components; it gives its memory back when it is empty. */
struct component_list {
    uint32_t *items;
    uint32_t next;
    uint32_t count;
    uint32_t capacity;
};

/* A generation's part. */
struct found_digests {
    uint64_t piece_bytes;
    _Atomic(found_slot *) table; /* NULL until something is wanted or recalled */
    /* The queue's, under its lock. */
    struct component_list wanted;
    struct component_list unsaved;
    bool queued;
    struct generation *next;
    /* The saver's: how much of the file in the state folder is what this generation wrote; 0: to be
     * written anew. */
    uint64_t saved_bytes;
};

struct finding;

struct finder {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    bool queued;             /* under the queue's lock */
    struct finding *finding; /* what it is at, between its turns */
};

/* The verifier's part. */
struct found_queue {
    struct state_folder folder;
    pthread_mutex_t lock; /* of what follows */
    struct generation *first;
    struct generation **last;
    unsigned waiting;
    unsigned finder_count;
    struct finder finders[FINDERS_MAX];
};

/* --- found_finder.c --- */

void found_queue_init(struct verifier *verifier, int state_folder);
/* No finder may run any more. */
void found_queue_clear(struct verifier *verifier);
/* Puts a component among those that are to be read. False when that cannot be, now. */
bool found_queue_add(struct verifier *verifier, struct generation *generation, uint32_t component);
/* A component's block was put: it is to be written down, and found by its digest. */
void found_queue_note(struct verifier *verifier, struct generation *generation, uint32_t component);
/* What is not written down yet becomes the caller's, to be freed. */
struct component_list found_queue_take_unsaved(struct verifier *verifier,
                                               struct generation *generation);

/* --- found_digests.c --- */

/* A new generation, before anybody else has it: recalls what an earlier run found. */
void found_digests_adopt(struct verifier *verifier, struct generation *generation);
/* generation.c calls this when the last reference goes. */
void found_digests_free(struct generation *generation);
/* Digests of a block: the whole's alone, or, of a component of several pieces, that and theirs. */
uint64_t found_block_count(uint64_t length_bytes, uint64_t piece_bytes);
/* Puts a block in the place of what is (NULL or FOUND_WANTED). False when it is not so, or memory
 * is out. */
bool found_block_put(struct generation *generation, uint32_t component, uint8_t *before,
                     uint8_t *block);
/* What was found, believed or not; NULL where nothing was. */
const uint8_t *found_block(const struct generation *generation, uint32_t component);
/* What was wanted cannot be had now; it may be wanted again. */
void found_forget_wanted(struct generation *generation, uint32_t component);

/* --- found_state.c --- */

void found_state_recall(struct state_folder *folder, struct generation *generation);
/* Writes down what was found since the last time. */
void found_state_save(struct verifier *verifier, struct generation *generation);

#endif
