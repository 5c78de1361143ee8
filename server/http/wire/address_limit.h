/* How many connections each client address has, over all loops. */
#ifndef HTTP_WIRE_ADDRESS_LIMIT_H
#define HTTP_WIRE_ADDRESS_LIMIT_H

#include <stdbool.h>
#include <sys/socket.h>

/* Counts one more connection of the address in; false, and not counted, when it has limit of them
 * already. */
bool address_limit_enter(const struct sockaddr *address, unsigned limit);

/* A connection that was counted in is gone. */
void address_limit_leave(const struct sockaddr *address);

#endif
