/* Listening sockets: one for each loop on the same address (SO_REUSEPORT), and a port in use told
 * at once. */
#ifndef HTTP_WIRE_LISTENER_H
#define HTTP_WIRE_LISTENER_H

#include <stddef.h>

/* A host of 255 characters, brackets and a port fit. */
#define LISTENER_ADDRESS_SIZE 300

struct listener {
    unsigned count; /* of sockets wanted */
    int *sockets;   /* room for them */
    char address[LISTENER_ADDRESS_SIZE];
};

/* Opens count sockets for "host:port" ("[::1]:8080"; port 0 takes a free one, the same for all) and
 * writes the address they are bound to ("127.0.0.1:41234"). -1 with one clear line in error.
 * SO_REUSEPORT would let a second server of the same user share the port unseen, so the address is
 * first bound without it. */
int listener_open(struct listener *listener, const char *listen_on, char *error, size_t error_size);

#endif
