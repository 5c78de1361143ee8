/* Decides which request may use a resumable upload: one body, publication or removal at a time. A
 * body that is still arriving yields to a request that ends the upload, and to another body after
 * some seconds of silence, since its client may be gone without the connection showing it. Safe
 * from any thread; nothing here waits. */
#ifndef UPLOAD_TUS_CLAIM_H
#define UPLOAD_TUS_CLAIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct claim {
    pthread_mutex_t lock;
    uint64_t last;    /* the last number given to a claim */
    uint64_t holder;  /* 0: free */
    bool gives_way;   /* the holder's body is still arriving */
    bool is_storing;  /* the holder's bytes are being written: slow, perhaps, but not silent */
    int64_t heard_ms; /* when the holder last made progress */
};

void claim_init(struct claim *claim);
void claim_free(struct claim *claim);

/* Returns the claim's number; 0 if another request holds the claim. */
uint64_t claim_take(struct claim *claim);
/* The same for a body that will arrive, and yields. */
uint64_t claim_take_for_body(struct claim *claim);
/* The same, but also takes the claim away from a body that is still arriving. */
uint64_t claim_seize(struct claim *claim);
/* Ends the claim of a body that is still arriving but has been silent for some seconds. */
void claim_end_silent(struct claim *claim);

/* Around writing a body's bytes. False: the claim is lost. */
bool claim_begin_store(struct claim *claim, uint64_t number);
void claim_end_store(struct claim *claim, uint64_t number);
/* To be called when the body is complete: it no longer yields. False: the claim is lost. */
bool claim_confirm(struct claim *claim, uint64_t number);
/* Does nothing if the claim is lost. */
void claim_end(struct claim *claim, uint64_t number);

#endif
