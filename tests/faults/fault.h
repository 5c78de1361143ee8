/* Which call is to fail: the environment variable ZT_FAULT, or, while the program runs, the file of
 * ZT_FAULT_CONTROL. */
#ifndef TESTS_FAULTS_FAULT_H
#define TESTS_FAULTS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

enum fault_kind {
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_LINK,
    FAULT_RENAME,
    FAULT_COPY,
    FAULT_TRUNCATE,
    FAULT_OPEN,
    FAULT_DUPLICATE,
    FAULT_MKDIR,
    FAULT_UNLINK,
    FAULT_DISCARD,
    FAULT_WALK,
    FAULT_KINDS
};

/* Counts a call of this kind. True, with errno set, if it is one that must fail. */
bool fault_is_due(enum fault_kind kind);

/* What the thread that calls is named: only requests fail by ZT_FAULT_CONTROL. */
void fault_name_thread(const char *name);

/* Whether a test controls what fails, and there is no power cut. */
bool fault_is_controlled(void);

/* How far the time of day is ahead, for the program. */
long fault_clock_ahead_s(void);

/* Waits for as long as the environment variable ZT_SLOW_READ_MS says. */
void fault_delay(void);

/* Whether fault_delay waits at all. */
bool fault_delays(void);

/* How many of so many bytes are to be sent; 0: none at present. */
size_t fault_shorten(size_t length);

#endif
