/* Decides which request may use a resumable upload: only one body, publication or removal uses it
 * at once. A body that is still arriving yields to a request that ends the upload. After some
 * seconds of silence it also yields to another body, since its client may be gone without the
 * connection showing it. Any thread may call these functions; none of them waits. */
#ifndef UPLOAD_TUS_CLAIM_H
#define UPLOAD_TUS_CLAIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct claim {
    pthread_mutex_t lock;
    uint64_t last;            /* the last number given to a claim */
    uint64_t holder;          /* 0: free */
    bool gives_way;           /* the holder's body is still arriving */
    bool is_storing;          /* the holder's bytes are being written, which may be slow but is not
                       * silence */
    int64_t last_progress_ms; /* when the holder last made progress */
};

void claim_init(struct claim *claim);
void claim_free(struct claim *claim);

/* Returns the claim's number; 0 if another request holds the claim. */
uint64_t claim_take(struct claim *claim);
/* Takes a claim for a body that will arrive, and that yields. */
uint64_t claim_take_for_body(struct claim *claim);
/* Takes the claim, even from a body that is still arriving. */
uint64_t claim_seize(struct claim *claim);
/* Ends the claim of a body that is still arriving but has been silent for some seconds. */
void claim_end_silent(struct claim *claim);

/* Call these around writing a body's bytes. Returns false if the claim is lost. */
bool claim_begin_store(struct claim *claim, uint64_t number);
void claim_end_store(struct claim *claim, uint64_t number);
/* Called when the body is complete and no longer yields. Returns false if the claim is lost. */
bool claim_confirm(struct claim *claim, uint64_t number);
/* Does nothing if the claim is lost. */
void claim_end(struct claim *claim, uint64_t number);

#endif
