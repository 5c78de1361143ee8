/* A spare descriptor for the time when the process has no others. With it a connection can still be
 * accepted, so that its client gets an error. */
#ifndef HTTP_LIMITS_RESERVE_H
#define HTTP_LIMITS_RESERVE_H

#include <stdbool.h>
#include <sys/socket.h>

struct reserve {
    int descriptor; /* -1: none */
};

/* reserve_fill takes a descriptor unless there is one. reserve_end closes it. Before and after:
 * -1. */
void reserve_fill(struct reserve *reserve);
void reserve_end(struct reserve *reserve);

/* Returns true if a client waits to be accepted. */
bool reserve_is_awaited(int listening);

/* Accepts a connection as a non-blocking socket. Returns -1 with errno on failure. */
int reserve_accept(int listening, struct sockaddr_storage *out_peer, socklen_t *out_length);

/* Returns true if an error of accept means that no descriptors, or no memory for them, are left. */
bool reserve_is_needed(int os_error);

/* Accepts a connection with the reserve, lets refuse(context, descriptor) send it a few bytes, and
 * shuts it down. It is closed at the next use of the reserve, so that its client has time to read.
 * Returns false if no client waits or there is no reserve. */
bool reserve_refuse(struct reserve *reserve, int listening,
                    void (*refuse)(void *context, int descriptor), void *context);

#endif
