/* Windows of an answer: whether their bytes of files are in the page cache, and reading them in. */
#ifndef HTTP_BODY_WINDOWS_H
#define HTTP_BODY_WINDOWS_H

#include <stdbool.h>

#include "http/body/place.h"

/* The place behind the window that begins at `from`, which is not the answer's end. What has to be
 * asked or read of a window is bounded. */
struct place window_end(const struct answer *answer, struct place from);

/* Whether the kernel says that all of the window's bytes are in memory. */
bool window_is_warm(const struct answer *answer, struct place from);

/* Has the kernel begin to read the window. Takes about 0.2 ms. Returns where it ends. */
struct place window_ask(const struct answer *answer, struct place from);

/* Waits for a disk until the window is in memory. Errors appear when the bytes are sent. */
void window_wait(const struct answer *answer, struct place from);

#endif
