/* Listening sockets: one per loop on the same address (SO_REUSEPORT), or sockets passed by a
 * service manager. */
#ifndef HTTP_WIRE_LISTENER_H
#define HTTP_WIRE_LISTENER_H

#include <stddef.h>
#include <stdint.h>

/* Has room for a host of 255 characters, brackets and a port. */
#define LISTENER_ADDRESS_SIZE 300

struct listener {
    unsigned count; /* number of sockets to open */
    int *sockets;   /* room for count descriptors */
    char address[LISTENER_ADDRESS_SIZE];
};

/* Opens count sockets for "host:port" ("[::1]:8080"; port 0 takes a free port, the same for all)
 * and writes the address that they are bound to ("127.0.0.1:41234"). Returns -1 with one line in
 * error, also if another server uses the port: SO_REUSEPORT alone would share it. */
int listener_open(struct listener *listener, const char *listen_on, char *error, size_t error_size);

/* Does the same with listening sockets that are open already: each of the listener's sockets is a
 * duplicate of one of them, and loops may share one. Always takes ownership of the given
 * descriptors. The address is the first socket's. */
int listener_share(struct listener *listener, const int *descriptors, unsigned count, char *error,
                   size_t error_size);

/* Writes the address that a socket is bound to; empty if it is not bound. */
void listener_address_of(int descriptor, char out_address[LISTENER_ADDRESS_SIZE]);

/* Sets the send buffer of a connection, or of the connections that a listening socket will accept.
 * 0 lets the kernel choose. */
void listener_cap_send_buffer(int descriptor, int64_t bytes);

/* Raises the send buffer of a connection if the kernel still chooses its size. Does nothing from
 * then on if the system's limit (net.core.wmem_max) is below the size that the kernel has
 * chosen. */
void listener_raise_send_buffer(int descriptor, int bytes);

#endif
