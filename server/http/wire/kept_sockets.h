/* Sockets that outlive a connection of the library.
 *
 * The library still expects what the server has read or sent in its place, so its connection can
 * only end then. The socket need not: a duplicate of its descriptor is taken before, and given to
 * the library as a new connection when the old one has ended. Its place among the connections, its
 * counts and its peer go with it. All functions are for the loop's thread. */
#ifndef HTTP_WIRE_KEPT_SOCKETS_H
#define HTTP_WIRE_KEPT_SOCKETS_H

#include <stdbool.h>

struct connection;
struct kept_socket;
struct mhd;
struct sockaddr;

struct kept_sockets {
    int dead;                  /* a pipe without a writer */
    struct kept_socket *first; /* that wait to be given to the library */
    const struct kept_socket *readmitting;
};

/* Those of a loop. -1 without descriptors; then only kept_sockets_end may follow. */
int kept_sockets_init(struct kept_sockets *kept);
void kept_sockets_end(struct kept_sockets *kept);

/* Whether HTTP, and the state of the server, let the connection stay open after the answer to its
 * current request, which must be decided (RFC 9112 section 9.3). */
bool kept_sockets_may_keep(const struct connection *connection);

/* Takes the duplicate, so that the library may close its descriptor. False without descriptors. */
bool kept_sockets_take(struct connection *connection);

/* Takes that back: the socket ends with the connection. Does nothing if nothing was taken. */
void kept_sockets_drop(struct connection *connection);

/* Puts a dead end in the place of the socket of a suspended connection, then resumes the
 * connection: the library finds nothing to read, not even what the client sends next, and ends it.
 * The socket itself is closed unless it has a duplicate. */
void kept_sockets_detach(struct connection *connection);

/* Called when the library has ended a connection whose socket was taken; address: the peer's. If it
 * fails, or without an address, the socket ends too. */
void kept_sockets_put(struct connection *connection, const struct sockaddr *address);

/* Gives the library the sockets that wait; to be called outside its callbacks. add takes over each
 * descriptor. */
void kept_sockets_readmit(struct mhd *mhd, void (*add)(struct mhd *mhd, int descriptor,
                                                       const struct sockaddr *address));

/* Whether kept_sockets_readmit is giving a socket to the library. */
bool kept_sockets_are_readmitting(const struct kept_sockets *kept);

/* What a new connection must know about the past of its socket, while kept_sockets_readmit gives it
 * to the library; does nothing otherwise. */
void kept_sockets_restore(const struct kept_sockets *kept, struct connection *connection);

#endif
