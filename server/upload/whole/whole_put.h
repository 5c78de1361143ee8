/* The body of a PUT, from its first byte to the published file, for every API that has one.
 *
 *   RECEIVING --last byte--> FINISHING --published--> PUBLISHED
 *       |                        |
 *       +--store failed----------+--refused---------> FAILED
 *
 * If the connection is lost, all data is removed in every state.
 *
 * The body goes to an unnamed file as it arrives, and workers hash the written bytes. After the
 * last byte, a worker validates the file with the reader that serves it, checks its digests, and
 * publishes it. */
#ifndef UPLOAD_WHOLE_WHOLE_PUT_H
#define UPLOAD_WHOLE_WHOLE_PUT_H

#include "upload/shared/body_follower.h"
#include "upload/shared/publication.h"
#include "upload/shared/registry.h"

enum whole_put_state { PUT_RECEIVING, PUT_FINISHING, PUT_PUBLISHED, PUT_FAILED };

struct whole_put;

/* Functions of an API; NULL: none. */
struct whole_put_ops {
    /* Checks the complete and hashed body before it is published. On a worker. Returns false with
     * body.failure set. */
    bool (*check)(struct whole_put *put);
    /* Called after the publication or its failure. On a worker. */
    void (*end)(struct whole_put *put);
    /* Frees what the API has added. On any thread. */
    void (*free)(struct whole_put *put);
};

/* The context of the request, and the first member of an API's own structure. */
struct whole_put {
    struct whole_body body;
    struct server *server;
    const struct whole_put_ops *ops;
    enum whole_put_state state;
    char name[MODEL_NAME_MAX + 1];
    struct publication publication; /* stored is NULL once it is published */
    struct counted_body counted;
};

/* Makes the context of a request, of size bytes, that begins with a struct whole_put; the rest is
 * zeroed. is_file: name is the path of a file. Returns NULL if it has replied. */
void *whole_put_new(struct request *request, struct zt_text name, bool is_file, size_t size,
                    const struct whole_put_ops *ops);

/* Begins to receive a body of length bytes (UINT64_MAX: unknown), after the name and the
 * preconditions were checked. Returns false if it has replied. */
bool whole_put_begin(struct request *request, struct whole_put *put, uint64_t length);

/* Waits for the end. OUTCOME_READY: the state is PUT_PUBLISHED, or PUT_FAILED with body.failure
 * set. */
enum outcome whole_put_finish(struct request *request, struct whole_put *put);

#endif
