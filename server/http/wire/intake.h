/* Reads long bodies past the HTTP library. With its small memory per connection the library
 * delivers pieces of a few KiB, and each costs as much as a large one. Once the library has
 * delivered the first piece of a body, and has read no more of it, the connection is suspended. The
 * rest goes from the socket into large buffers, and a worker passes them to the request's receiver.
 * If the worker cannot keep up, reading stops and the client waits. */
#ifndef HTTP_WIRE_INTAKE_H
#define HTTP_WIRE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct deadlines;
struct intake;
struct mailbox;
struct request;

/* The library reads the rest of a body itself if it is shorter than this. */
#define INTAKE_LEAST_BYTES ((uint64_t)64 << 10)
/* A value for the length that is left: the request's chunks say where the body ends. */
#define INTAKE_CHUNKED UINT64_MAX

enum intake_ending {
    INTAKE_WHOLE,    /* the whole body was received */
    INTAKE_BROKEN,   /* the client is gone, or took too long */
    INTAKE_MALFORMED /* the request's chunks say why */
};

struct intake_set;

/* Events reported to the connection's owner, on the loop's thread. */
struct intake_events {
    void *context;
    /* Bytes were read. Returns false if the client took too long, and the connection must end. */
    bool (*received)(void *context, struct connection *connection);
    /* Reading is paused through no fault of the client. May be called repeatedly. */
    void (*paused)(void *context, struct connection *connection);
    /* From now on the server waits for the client's bytes. */
    void (*awaited)(void *context, struct connection *connection);
    /* No worker uses the body any more. */
    void (*ended)(void *context, struct connection *connection, enum intake_ending ending);
};

/* mailbox and parts are the loop's; intake_store_parts has work when a deadline in parts is due.
 * Returns NULL if out of memory or descriptors. */
struct intake_set *intake_set_new(struct mailbox *mailbox, struct deadlines *parts,
                                  const struct intake_events *events);
/* Call it after all intakes have ended. Accepts NULL. */
void intake_set_free(struct intake_set *set);

/* Returns a descriptor that is readable when intake_run has work. */
int intake_descriptor(const struct intake_set *set);
void intake_run(void *set);

/* Passes on partly filled pieces that have waited long enough, if their receivers keep parts. */
void intake_store_parts(struct intake_set *set, uint64_t now_ms);

/* Ends an intake as broken: no more bytes are read. */
void intake_cut(struct intake *intake);

/* Reads the rest of a body (left bytes, or INTAKE_CHUNKED), and never a byte beyond it; the caller
 * then suspends the connection. Returns false if there are too many intakes, or if out of
 * memory. */
bool intake_begin(struct intake_set *set, struct request *request, uint64_t left);

#endif
