/* What the system allows a loop: connections, descriptors, socket buffers. */
#ifndef HTTP_WIRE_CAPACITY_H
#define HTTP_WIRE_CAPACITY_H

#include <stdint.h>

#include "base/server.h"

/* A loop's share of limits.connections, or of what descriptors allow; raises the soft limit of
 * descriptors first. */
unsigned capacity_connections(const struct server *server);

/* Sets the send buffer of every connection that the socket will accept; 0 leaves it to the kernel.
 */
void capacity_cap_send_buffer(int listen_socket, int64_t bytes);

#endif
