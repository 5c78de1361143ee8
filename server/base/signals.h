/* Signals as events: blocked in every thread and read by the one that waits for them. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/* Before the first thread is started, so that all inherit it: SIGTERM, SIGINT and SIGHUP are
 * blocked, whatever they were before, and SIGPIPE is ignored. Returns a descriptor for
 * signals_wait, or -1. */
int signals_open(void);

/* The next signal, or 0 when none came within timeout_ms (-1: no limit). */
int signals_wait(int descriptor, int timeout_ms);

/* Ends the process with status 0 when it is still there after so many seconds: an orderly end must
 * not hang. */
void signals_end_after(unsigned seconds);

#endif
