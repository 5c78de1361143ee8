/* Listening sockets: one for each loop on the same address (SO_REUSEPORT), and a port in use told at once. */
#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include <stddef.h>

/* Opens count sockets for "host:port" ("[::1]:8080"; port 0 takes a free one, the same for all) and writes the address
 * they are bound to ("127.0.0.1:41234") to out_address. -1 with one clear line in error. SO_REUSEPORT would let a
 * second server of the same user share the port unseen, so the address is first bound without it. */
int listener_open(const char *listen, unsigned count, int *out_sockets, char *out_address, size_t address_size,
                  char *error, size_t error_size);

#endif
