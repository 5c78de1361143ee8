/* Which call is to fail: the environment variable ZT_FAULT. */
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
    FAULT_KINDS
};

/* Counts a call of this kind. True, with errno set, if it is one that must fail. */
bool fault_is_due(enum fault_kind kind);

/* Waits for as long as the environment variable ZT_SLOW_READ_MS says. */
void fault_delay(void);

/* Whether fault_delay waits at all. */
bool fault_delays(void);

/* How many of so many bytes are to be sent; 0: none at present. */
size_t fault_shorten(size_t length);

#endif
