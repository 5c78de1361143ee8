/* Answers that are not in the page cache, read into it by workers ahead of what is sent.
 *
 * The disk is asked for so much at once that it always has something to do; a job waits only for
 * the window that is to be sent next. All functions are for the loop's thread. */
#ifndef HTTP_BODY_READ_IN_H
#define HTTP_BODY_READ_IN_H

#include <stdbool.h>

#include "base/server.h"
#include "base/workers.h"
#include "http/body/place.h"

struct read_in {
    struct job job; /* first: the job is the structure. done, mailbox and client: the owner's */
    const struct answer *answer; /* the owner's */
    struct place from;           /* of the window that the job waits for */
    struct place asked;          /* the disk has been asked for what is before this */
    bool runs;
};

/* Whether the disk should be asked for more if the byte at `at` of the answer is to be sent next.
 * False while a job runs. */
bool read_in_is_due(const struct read_in *reading, uint64_t at);

/* Asks the disk for more, unless it has enough to do, and waits for the window that begins at
 * `from`, which is not the answer's end. Does nothing while a job runs. When done is called, the
 * owner has to call read_in_done. */
void read_in_begin(struct read_in *reading, struct server *server, struct place from);

/* Where the window ends that was waited for. If it could not be read, sending it shows why. */
struct place read_in_done(struct read_in *reading);

#endif
