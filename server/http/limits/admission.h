/* Limits on connections: for the process, and for each client address. From any thread. */
#ifndef HTTP_WIRE_ADMISSION_H
#define HTTP_WIRE_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "config/config.h"

/* The most connections over the limit that are open at the same time, to get an answer. */
#define ADMISSION_SURPLUS 64u

/* How many connections the process may have: limits.connections, or fewer if the system's limit on
 * descriptors does not allow that many. At least 1. */
unsigned admission_limit(const struct config *config);

/* Whether one more connection can be accepted at all, even if only to answer that there are too
 * many. */
bool admission_is_open(unsigned limit);

/* Counts a connection that was opened. False: it exceeds the limit, and counts as surplus. */
bool admission_enter(unsigned limit);

/* Uncounts a connection, as what admission_enter counted it. */
void admission_leave(bool was_admitted);

/* The connections that are open now: those with a place; *out_surplus: those being turned away. */
unsigned admission_count(unsigned *out_surplus);

/* Counts a connection from an address. False, and not counted, if it has limit of them already, or
 * out of memory. */
bool admission_enter_address(const struct sockaddr *address, unsigned limit);

/* Uncounts a connection from an address. */
void admission_leave_address(const struct sockaddr *address);

#endif
