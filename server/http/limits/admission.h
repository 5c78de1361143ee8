/* Limits on connections, for the process and per client address. All functions may be called on any
 * thread. */
#ifndef HTTP_WIRE_ADMISSION_H
#define HTTP_WIRE_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "config/config.h"

/* The maximum number of open connections over the limit, which are kept only to get an answer. */
#define ADMISSION_SURPLUS 64u

/* Returns true if one more connection can be accepted, even if only to answer that there are too
 * many. */
bool admission_is_open(unsigned limit);

/* Counts a new connection. Returns false if it exceeds the limit; it then counts as surplus. */
bool admission_enter(unsigned limit);

/* Removes a connection from the count. was_admitted: the result of admission_enter. */
void admission_leave(bool was_admitted);

/* Returns the number of admitted connections. *out_surplus: the number of connections being turned
 * away. */
unsigned admission_count(unsigned *out_surplus);

/* Counts a connection from an address. Returns false without counting if the address already has
 * `limit` connections, or if out of memory. */
bool admission_enter_address(const struct sockaddr *address, unsigned limit);

/* Removes a connection from the count of its address. */
void admission_leave_address(const struct sockaddr *address);

#endif
