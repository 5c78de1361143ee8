/* The bytes of an answer, prepared by workers ahead of what is sent: two windows, one that is being
 * sent and one that is being filled.
 *
 * For what a loop must not read itself: sources that gather, decode or wait for a disk, in any
 * mixture of segments. All functions are for the loop's thread; the worker touches only the window
 * it fills and its place in the segments. */
#ifndef HTTP_WIRE_READAHEAD_H
#define HTTP_WIRE_READAHEAD_H

#include <sys/types.h>

#include "http/exchange/exchange.h"

struct mhd;
struct readahead;

/* Begins to fill the first window of the request's answer; the request is resumed when that is
 * done. The answer must not change as long as this lives. NULL when memory is out. */
struct readahead *readahead_begin(struct request *request, struct mhd *mhd);

/* Copies the bytes at position, which is where the last call ended, as far as they are there. 0:
 * none yet, the caller suspends and is resumed. -1: they cannot be had. */
ssize_t readahead_take(struct readahead *ahead, uint64_t position, void *buffer, size_t size);

/* What is to be taken at a time. */
size_t readahead_block(const struct readahead *ahead);

/* Why there are no more bytes; NULL when nothing has failed. */
const struct zt_error *readahead_error(const struct readahead *ahead);

/* What is under way ends soon, and nothing is begun any more. Takes NULL. */
void readahead_cancel(struct readahead *ahead);

/* The request is over. Frees, at once or when the worker is done; then the request is freed with
 * it, which the worker reads from. True: the request is the caller's to free. Takes NULL. */
bool readahead_end(struct readahead *ahead);

#endif
