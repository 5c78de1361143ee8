/* Who works on a resumable upload: one body, publication or removal at a time. A body that still
 * arrives yields: to whoever ends the upload at once, and to another body when nothing was heard of
 * it for some seconds. Its client may be gone without the connection telling so. Safe from any
 * thread; nothing here waits. */
#ifndef UPLOAD_SHARED_CLAIM_H
#define UPLOAD_SHARED_CLAIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct claim {
    pthread_mutex_t lock;
    uint64_t last;   /* numbers of claims: never used again */
    uint64_t holder; /* 0: nobody */
    bool yields;
    bool
        /* the holder's bytes are being written: it is not silent, whatever the disk takes */
        is_storing;
    time_t heard; /* of the holder */
};

void claim_init(struct claim *claim);
void claim_free(struct claim *claim);

/* The claim's number; 0 when somebody has it. */
uint64_t claim_take(struct claim *claim);
/* The same for a body that is to arrive, which yields. */
uint64_t claim_take_for_body(struct claim *claim);
/* The same, also where a body that still arrives has it: that one's ends. */
uint64_t claim_seize(struct claim *claim);
/* Ends the claim of a body that still arrives and was not heard of for some seconds. */
void claim_end_silent(struct claim *claim);

/* A body's bytes are about to be written, and were. False: the claim is lost. */
bool claim_begin_store(struct claim *claim, uint64_t number);
void claim_end_store(struct claim *claim, uint64_t number);
/* The body is whole: it yields no longer. False: the claim is lost. */
bool claim_settle(struct claim *claim, uint64_t number);
/* Nothing where the claim is lost. */
void claim_end(struct claim *claim, uint64_t number);

#endif
