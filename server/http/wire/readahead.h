/* Workers read the bytes of an answer ahead of sending: one window is sent while another is filled.
 *
 * Used for bytes that a loop must not read itself: sources that gather, decode or wait for a disk,
 * in any mixture of segments. All functions are for the loop's thread; the worker touches only the
 * window that it fills and its position in the segments. */
#ifndef HTTP_WIRE_READAHEAD_H
#define HTTP_WIRE_READAHEAD_H

#include <sys/types.h>

#include "http/exchange/exchange.h"

struct mhd;
struct readahead;

/* Starts to fill the first window of the request's answer, and resumes the request when the window
 * is full. The answer must not change afterwards. Returns NULL if out of memory. */
struct readahead *readahead_begin(struct request *request, struct mhd *mhd);

/* Copies the available bytes at position, which must be where the last call ended. Returns 0 if
 * there are none yet: the caller suspends the connection, and the request is resumed later. Returns
 * -1 if reading has failed (see readahead_error). */
ssize_t readahead_take(struct readahead *ahead, uint64_t position, void *buffer, size_t size);

/* Returns how many bytes to take per call. */
size_t readahead_block(const struct readahead *ahead);

/* Returns the error that ended reading, or NULL. */
const struct zt_error *readahead_error(const struct readahead *ahead);

/* Stops reading soon and starts no more reads. Accepts NULL. */
void readahead_cancel(struct readahead *ahead);

/* As remote_body_give_up. */
void readahead_give_up(struct readahead *ahead, int64_t waited_ms);

/* Call it when the request is over. Returns true if it was freed; the caller then frees the
 * request. Returns false if a worker is still reading from the request's answer; both are freed
 * when the worker is done. */
bool readahead_end(struct readahead *ahead);

#endif
