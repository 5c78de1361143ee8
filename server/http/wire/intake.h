/* Reads long bodies past the HTTP library, whose small memory per connection gives pieces of a few
 * KiB that each cost as much as a large one. Once the library has delivered the first piece of a
 * body and has read no more of it, the connection is suspended. The rest goes from the socket into
 * large buffers, which workers store and digest in parallel. If they cannot keep up, nothing is
 * read and the client waits. */
#ifndef HTTP_WIRE_INTAKE_H
#define HTTP_WIRE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct intake;
struct mailbox;
struct request;

/* The library reads shorter rests itself. */
#define INTAKE_LEAST_BYTES ((uint64_t)64 << 10)
/* As the length of what is left: the request's chunks say where the body ends. */
#define INTAKE_CHUNKED UINT64_MAX

enum intake_ending {
    INTAKE_WHOLE,    /* all of the body was stored and digested */
    INTAKE_BROKEN,   /* the client is gone, or took too long */
    INTAKE_MALFORMED /* the request's chunks say why */
};

struct intake_set;

/* Events reported to the connection's owner, on the loop's thread. */
struct intake_events {
    void *context;
    /* Bytes were read. False: the client took too long, and the connection must end. */
    bool (*received)(void *context, struct connection *connection);
    /* Nothing is read at present, which is not the client's fault. May be repeated. */
    void (*paused)(void *context, struct connection *connection);
    /* From now on the server waits for the client's bytes. */
    void (*awaited)(void *context, struct connection *connection);
    /* No worker uses the body any more. */
    void (*ended)(void *context, struct connection *connection, enum intake_ending ending);
};

/* mailbox: of the loop. NULL without memory or descriptors. */
struct intake_set *intake_set_new(struct mailbox *mailbox, const struct intake_events *events);
/* To be called after every intake has ended. Takes NULL. */
void intake_set_free(struct intake_set *set);

/* Readable when intake_run has something to do. */
int intake_descriptor(const struct intake_set *set);
void intake_run(void *set);

/* When intake_store_parts has something to do; UINT64_MAX: never. */
uint64_t intake_parts_due_ms(const struct intake_set *set);

/* Stores what has come of pieces that have waited long enough for their rest, if their operations
 * keep parts. */
void intake_store_parts(struct intake_set *set, uint64_t now_ms);

/* Ends an intake as broken: nothing more is read. */
void intake_cut(struct intake *intake);

/* Takes over the rest of a body, left bytes or INTAKE_CHUNKED, of a connection that the caller then
 * suspends. Not a byte behind the body is read. False if there are too many intakes, or if out of
 * memory. */
bool intake_begin(struct intake_set *set, struct request *request, uint64_t left);

#endif
