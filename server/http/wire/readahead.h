/* The bytes of an answer, read by workers ahead of what is sent: one window is being sent while
 * another is being filled.
 *
 * For bytes that a loop must not read itself: sources that gather, decode or wait for a disk, in
 * any mixture of segments. All functions are for the loop's thread; the worker touches only the
 * window that it fills and its position in the segments. */
#ifndef HTTP_WIRE_READAHEAD_H
#define HTTP_WIRE_READAHEAD_H

#include <sys/types.h>

#include "http/exchange/exchange.h"

struct mhd;
struct readahead;

/* Begins to fill the first window of the request's answer, and resumes the request when it is full.
 * The answer must not change any more. NULL if out of memory. */
struct readahead *readahead_begin(struct request *request, struct mhd *mhd);

/* Copies the bytes at position, which is where the last call ended, as far as they have been read.
 * 0: none yet; the caller suspends the connection, and the request is resumed later. -1: reading
 * has failed, see readahead_error. */
ssize_t readahead_take(struct readahead *ahead, uint64_t position, void *buffer, size_t size);

/* How much should be taken at a time. */
size_t readahead_block(const struct readahead *ahead);

/* Why there are no more bytes; NULL if nothing has failed. */
const struct zt_error *readahead_error(const struct readahead *ahead);

/* Ends reading soon, and begins no more reads. Takes NULL. */
void readahead_cancel(struct readahead *ahead);

/* To be called when the request is over. True: freed, and the caller frees the request. False: a
 * worker is still reading from what the request holds; both are freed when it is done. */
bool readahead_end(struct readahead *ahead);

#endif
