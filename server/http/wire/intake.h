/* Long bodies, read past the HTTP library, whose memory for a connection gives pieces of a few KiB
 * that cost as much as large ones. Once the library has delivered the first piece of a body and has
 * read nothing more of it, the connection is suspended. The rest goes from the socket into large
 * buffers, which workers store and digest side by side. If they cannot keep up, nothing is read and
 * the client waits. */
#ifndef HTTP_WIRE_INTAKE_H
#define HTTP_WIRE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct mailbox;
struct request;

/* The library reads a shorter rest, since after an intake the connection must be closed. */
#define INTAKE_LEAST_BYTES ((uint64_t)1 << 20)

struct intake_set;

/* What the owner of the connection is told, on the loop's thread. */
struct intake_events {
    void *context;
    /* Bytes were read. False: the client took too long, and the connection must end. */
    bool (*received)(void *context, struct connection *connection);
    /* Nothing is read for now, which is not the client's fault. May be repeated. */
    void (*paused)(void *context, struct connection *connection);
    /* From now on the server waits for the client's bytes. */
    void (*awaited)(void *context, struct connection *connection);
    /* No worker works on the body any more. whole: all of it was stored and digested. */
    void (*ended)(void *context, struct connection *connection, bool whole);
};

/* mailbox: of the loop. NULL if memory or descriptors are out. */
struct intake_set *intake_set_new(struct mailbox *mailbox, const struct intake_events *events);
/* After every intake has ended. Takes NULL. */
void intake_set_free(struct intake_set *set);

/* Readable when intake_run has something to do. */
int intake_descriptor(const struct intake_set *set);
void intake_run(void *set);

/* Takes over the rest of a body, left bytes, of a connection that the caller then suspends. False
 * if too many are under way, or out of memory. */
bool intake_begin(struct intake_set *set, struct request *request, uint64_t left);

#endif
