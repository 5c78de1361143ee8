/* Long bodies, read past the HTTP library: its memory for a connection gives pieces of a few KiB,
 * and each costs as much as a large one. Once the library has delivered a body's first piece, and
 * has nothing else of it, the connection is suspended, the rest goes from the socket into large
 * buffers, and workers store and digest these side by side. While they cannot keep up nothing is
 * read, and the client waits. */
#ifndef HTTP_WIRE_INTAKE_H
#define HTTP_WIRE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct loop;
struct request;

/* A rest that is shorter is the library's to read: afterwards the connection could not go on. */
#define INTAKE_LEAST_BYTES ((uint64_t)1 << 20)

struct intake_set;

/* What the connection is told, on the loop's thread. */
struct intake_events {
    void *context;
    /* Bytes were read. False: the connection has taken too long, and is to end. */
    bool (*received)(void *context, struct connection *connection);
    /* Nothing is read for now, and that is not the client's fault; told again and again. */
    void (*paused)(void *context, struct connection *connection);
    /* From now on the client's bytes are waited for. */
    void (*awaited)(void *context, struct connection *connection);
    /* Nobody works on the body any more; whole: all of it was stored and digested, and the answer
     * is due. */
    void (*ended)(void *context, struct connection *connection, bool whole);
};

/* NULL when memory or descriptors are out. */
struct intake_set *intake_set_new(struct loop *loop, const struct intake_events *events);
/* When every intake has ended. Takes NULL. */
void intake_set_free(struct intake_set *set);

/* Readable when intake_run has something to do. */
int intake_descriptor(const struct intake_set *set);
void intake_run(void *set);

/* Takes the rest of a body over, left bytes of a connection that is suspended right after this.
 * False: too many are under way, or memory is out. */
bool intake_begin(struct intake_set *set, struct request *request, uint64_t left);

#endif
