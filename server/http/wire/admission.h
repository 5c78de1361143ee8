/* Which connections are admitted: how many the process may have, and how many each client address.
 * From any thread. */
#ifndef HTTP_WIRE_ADMISSION_H
#define HTTP_WIRE_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "config/config.h"

/* The most connections over the limit that are open, to be told so, at the same time. */
#define ADMISSION_SURPLUS 64u

/* How many connections the process may have: limits.connections, or fewer if the system's limit on
 * descriptors does not allow that many. At least 1. */
unsigned admission_limit(const struct config *config);

/* Whether one more connection can be opened at all, be it only to be told that there are too
 * many. */
bool admission_is_open(unsigned limit);

/* Counts a connection that was opened. False: it is one more than limit. */
bool admission_enter(unsigned limit);

/* A connection that was counted is gone. */
void admission_leave(void);

/* Counts a connection from an address. False, and not counted, if it has limit of them already, or
 * out of memory. */
bool admission_enter_address(const struct sockaddr *address, unsigned limit);

/* A connection that was counted for the address is gone. */
void admission_leave_address(const struct sockaddr *address);

#endif
