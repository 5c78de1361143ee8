/* A piece of a request's body in memory. Its receiver may keep the bytes for longer than the call
 * that passes them on, so that another worker can hash one piece while the next one is written. */
#ifndef HTTP_EXCHANGE_BODY_PIECE_H
#define HTTP_EXCHANGE_BODY_PIECE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/workers.h"

/* The owner of a piece's memory reuses it when the receiver has returned and, if the piece was
 * kept, when returned is done. */
struct piece_keeper {
    struct job returned; /* only done and mailbox are used, as by a worker after run */
    bool is_kept;        /* for the owner, once the receiver has returned */
};

struct body_piece {
    const void *bytes;
    size_t length;
    uint64_t offset;             /* in the body */
    bool on_loop;                /* received on the loop's thread, which must not be blocked */
    struct piece_keeper *keeper; /* NULL: the bytes cannot be kept */
};

/* For the receiver, before it returns. The request then does not end before the piece is
 * returned. */
static inline void piece_keeper_keep(struct piece_keeper *keeper)
{
    assert(!keeper->is_kept && keeper->returned.done != NULL);
    keeper->is_kept = true;
}

/* On any thread, once for each piece that was kept. The piece must not be used any more. */
static inline void piece_keeper_return(struct piece_keeper *keeper)
{
    struct job *returned = &keeper->returned;

    assert(keeper->is_kept);
    if (returned->mailbox != NULL)
        mailbox_put(returned->mailbox, &returned->mail);
    else
        returned->done(returned);
}

#endif
