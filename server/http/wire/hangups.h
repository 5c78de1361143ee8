/* Clients that are gone without the HTTP library noticing.
 *
 * It waits for edges of readiness. An end of the stream that arrives together with the last bytes
 * makes no edge of its own: the library reads the bytes, and waits for more until its timeout. And
 * while a request waits for work the library does not look at its connection: a client that ended
 * (its socket closed, so no reset comes before something is sent) looks like one that has shut down
 * its sending side and waits for its answer. That is believed for five seconds. */
#ifndef HTTP_WIRE_HANGUPS_H
#define HTTP_WIRE_HANGUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/wire/deadlines.h"

struct connection;

struct hangups {
    int epoll; /* its descriptor becomes readable when a client of the set hangs up */
    bool seen;
    struct deadlines looks; /* at those that hung up while the server owed them an answer */
};

int hangups_init(struct hangups *hangups);
void hangups_end(struct hangups *hangups);

/* Without descriptors or memory to watch it, a connection ends by its timeout as it would without
 * this. */
void hangups_add(struct hangups *hangups, struct connection *connection);
/* Before the connection's descriptor is closed or copied. */
void hangups_remove(struct hangups *hangups, struct connection *connection);

/* For the loop: the descriptor is readable. */
void hangups_notice(void *hangups);

/* Shuts connections down whose client sends no more though the server waits for it; those whose
 * client has sent no more for long, and waits for work, are deserted. Call after the library has
 * read what there was. */
void hangups_run(struct hangups *hangups, uint64_t now_ms);

/* When hangups_run is to be called at the latest; UINT64_MAX: no need. */
uint64_t hangups_due_ms(const struct hangups *hangups);

#endif
