/* Answers whose bytes are elsewhere, brought here ahead of what is sent.
 *
 * What is here already is pinned at once; what is not, a job brings, one part after another, and
 * has more be on its way than it waits for. Parts are kept until they are sent. All functions are
 * for the loop's thread. */
#ifndef HTTP_BODY_BRING_IN_H
#define HTTP_BODY_BRING_IN_H

#include "base/server.h"
#include "base/workers.h"
#include "http/body/pinned.h"

/* An answer of up to this is brought and kept whole. */
#define BRING_IN_WHOLE ((uint64_t)8 << 20)
#define BRING_IN_PARTS 4

struct bring_in {
    struct job job; /* first: the job is the structure. done, mailbox and client: the owner's */
    const struct answer *answer;         /* the owner's; pinned_is_possible */
    struct pinned parts[BRING_IN_PARTS]; /* the first is what is sent */
    unsigned count;
    struct place end; /* behind the last of them */
    bool is_cold;     /* some of it was not here */
    bool runs;
    struct zt_error error; /* once it has failed */

    /* The job's while it runs. */
    struct pinned coming;
    uint64_t part_bytes;
    uint64_t ahead_bytes;
    struct zt_error job_error;
};

/* Begins: done, mailbox and client of the job are set by the owner. */
void bring_in_begin(struct bring_in *bring, const struct answer *answer);

/* Sees to it that there are parts ahead of the first one, or that a job runs, unless the answer
 * ends or it has failed. When done is called, the owner has to call bring_in_done. */
void bring_in_continue(struct bring_in *bring, struct server *server);

/* The same until there is one part. */
void bring_in_first(struct bring_in *bring, struct server *server);

void bring_in_done(struct bring_in *bring);

/* The first part; NULL: there is none now. Valid until it is dropped. */
const struct answer *bring_in_part(const struct bring_in *bring);
void bring_in_drop(struct bring_in *bring);

/* Whether the first part, or the one that was dropped, is the last of the answer. */
bool bring_in_is_last(const struct bring_in *bring);

/* Why there are no more parts; NULL if nothing has failed. */
const struct zt_error *bring_in_error(const struct bring_in *bring);

/* Releases all parts. No job runs. */
void bring_in_end(struct bring_in *bring);

#endif
