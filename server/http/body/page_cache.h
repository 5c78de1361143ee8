/* Finds out which windows of an answer are in the page cache, so that a loop can send them without
 * waiting for a disk. Workers read the other windows into it ahead of sending. */
#ifndef HTTP_BODY_PAGE_CACHE_H
#define HTTP_BODY_PAGE_CACHE_H

#include <stdbool.h>

#include "base/server.h"
#include "base/workers.h"
#include "http/body/place.h"

/* Returns the end of the window that begins at `from`; `from` must not be the answer's end. The
 * size of a window is limited in bytes, runs and segments, so that checking it is quick. */
struct place window_end(const struct answer *answer, struct place from);

/* Returns true if the kernel says that all of the window's bytes are in memory. */
bool window_is_warm(const struct answer *answer, struct place from);

/* Reads an answer into the page cache. A job requests enough from the disk to keep it busy, and
 * waits only for the window that is sent next. For the loop's thread. */
struct page_reader {
    struct job job; /* first: the job is the structure; the owner sets done, mailbox and client */
    const struct answer *answer; /* the owner's */
    struct place from;           /* start of the window that the job waits for */
    struct place asked;          /* all bytes before this have been requested from the disk */
    bool runs;
};

/* Returns true if more should be requested from the disk before the byte at `at` of the answer is
 * sent. Returns false while a job runs. */
bool page_reader_is_due(const struct page_reader *reader, uint64_t at);

/* Requests more from the disk, unless it is busy enough, and waits for the window that begins at
 * `from`; `from` must not be the answer's end. Does nothing while a job runs. When done is called,
 * the owner must call page_reader_done. */
void page_reader_begin(struct page_reader *reader, struct server *server, struct place from);

/* Returns the end of the window that the job waited for. If reading failed, sending the window
 * shows the error. */
struct place page_reader_done(struct page_reader *reader);

#endif
