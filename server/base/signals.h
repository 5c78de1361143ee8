/* Signals as events: blocked in all threads, and read by one thread that waits for them. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/* Blocks SIGTERM, SIGINT and SIGHUP, even if they were ignored, and ignores SIGPIPE. Call it before
 * the first thread starts, since threads inherit the signal mask. Returns a descriptor for
 * signals_wait, or -1. */
int signals_open(void);

/* Returns the next signal, or 0 if none arrives within timeout_ms (-1: no limit). */
int signals_wait(int descriptor, int timeout_ms);

/* Ends the process with status 0 if it is still running after this many seconds. */
void signals_end_after(unsigned seconds);

#endif
