/* Which request works on a resumable upload: one body, publication or removal at a time. A body
 * that is still arriving gives way to a request that ends the upload, and to another body after
 * some seconds of silence, since its client may be gone without the connection showing it. Safe
 * from any thread; nothing here waits. */
#ifndef UPLOAD_TUS_CLAIM_H
#define UPLOAD_TUS_CLAIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct claim {
    pthread_mutex_t lock;
    uint64_t last;    /* numbers of claims: never used again */
    uint64_t holder;  /* 0: free */
    bool gives_way;   /* the holder's body is still arriving */
    bool is_storing;  /* the holder's bytes are being written: slow, perhaps, but not silent */
    int64_t heard_ms; /* when the holder last made progress */
};

void claim_init(struct claim *claim);
void claim_free(struct claim *claim);

/* The claim's number; 0 when it is held. */
uint64_t claim_take(struct claim *claim);
/* The same for a body that is to arrive, which gives way. */
uint64_t claim_take_for_body(struct claim *claim);
/* The same, also taking it away from a body that is still arriving. */
uint64_t claim_seize(struct claim *claim);
/* Ends the claim of a body that is still arriving and was silent for some seconds. */
void claim_end_silent(struct claim *claim);

/* Around writing a body's bytes. False: the claim is lost. */
bool claim_begin_store(struct claim *claim, uint64_t number);
void claim_end_store(struct claim *claim, uint64_t number);
/* The body is whole: it no longer gives way. False: the claim is lost. */
bool claim_confirm(struct claim *claim, uint64_t number);
/* Nothing if the claim is lost. */
void claim_end(struct claim *claim, uint64_t number);

#endif
