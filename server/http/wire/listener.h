/* Listening sockets: one for each loop, on the same address (SO_REUSEPORT), or those that a service
 * manager has passed. */
#ifndef HTTP_WIRE_LISTENER_H
#define HTTP_WIRE_LISTENER_H

#include <stddef.h>
#include <stdint.h>

/* A host of 255 characters, brackets and a port fit. */
#define LISTENER_ADDRESS_SIZE 300

struct listener {
    unsigned count; /* number of sockets to open */
    int *sockets;   /* room for count descriptors */
    char address[LISTENER_ADDRESS_SIZE];
};

/* Opens count sockets for "host:port" ("[::1]:8080"; port 0 takes a free one, the same for all) and
 * writes the address that they are bound to ("127.0.0.1:41234"). -1 with one clear line in error,
 * also if another server has the port, which SO_REUSEPORT alone would share with it. */
int listener_open(struct listener *listener, const char *listen_on, char *error, size_t error_size);

/* The same with listening sockets that somebody else has opened: each of the listener's sockets is
 * a duplicate of one of them, and loops may share one. Takes over the given descriptors, in any
 * case. The address is that of the first. */
int listener_share(struct listener *listener, const int *descriptors, unsigned count, char *error,
                   size_t error_size);

/* Writes the address to which a socket is bound; empty if it is not bound. */
void listener_address_of(int descriptor, char out_address[LISTENER_ADDRESS_SIZE]);

/* Sets the send buffer of a connection, or of those that a listening socket will accept; 0 leaves
 * it to the kernel. */
void listener_cap_send_buffer(int descriptor, int64_t bytes);

/* Raises the send buffer of a connection that leaves it to the kernel, and still does so. Does
 * nothing from then on if the system allows (net.core.wmem_max) less than the kernel has given. */
void listener_raise_send_buffer(int descriptor, int bytes);

#endif
