/* Turns a stored file into a visible model or file: validates it with the reader that serves it,
 * checks the preconditions again, and publishes it under its name. Every kind of upload uses this
 * (PUT, the streaming writer, tus, commits to the Hub). */
#ifndef UPLOAD_SHARED_PUBLICATION_H
#define UPLOAD_SHARED_PUBLICATION_H

#include "base/name_filter.h"
#include "http/fields/conditional.h"
#include "store/store.h"
#include "upload/shared/failure.h"
#include "upload/shared/published.h"

struct publication {
    /* Set by the caller. */
    struct server *server;
    struct staged_file *stored; /* taken over and set to NULL on success, unchanged on failure */
    /* NUL-terminated, borrowed. The model's name, to which the format's extension is added; or,
     * with is_file, the whole path of any file. Tensor files, indices and JSON must match their
     * extensions. */
    const char *name;
    bool is_file;
    /* For publication_check: the file will not be in the folder, so the other files there do not
     * matter. */
    bool is_apart;
    /* For the model, or for the file (whose ETag is that in GET /files/{path}); the texts are
     * borrowed. */
    struct preconditions preconditions;
    /* The names that the client may use. They must include the names of the model's shards. */
    struct name_filter covers;
    /* For the commit of the repository: the client's name, and a verb ("PUT"; NULL: "Upload"). */
    const char *client;
    const char *action;
    /* Returns the digest of a component's decoded bytes, or NULL if it is unknown. The function is
     * NULL if no decoded bytes were hashed. *out_compressed: the component is stored compressed. */
    const uint8_t *(*decoded_sha256)(void *context, struct zt_text object, struct zt_text component,
                                     bool *out_compressed);
    void *context;
    /* sha256 is set by the caller, everything else on success. */
    struct published published;

    /* Set by publication_check. */
    char model[MODEL_NAME_MAX + 1]; /* the model that the file belongs to; empty: none */
    const char *extension;          /* of the model's format: ".zt" and so on */
    bool has_identity;
    struct file_identity identity;
    /* The verdict on each component, so that the server need not verify the file again. NULL for
     * data shards and files that are not models. */
    unsigned char *verdicts;
    uint32_t verdict_count;
};

/* Checks and publishes. On a worker; may take long. Returns false with failure set if nothing was
 * published; the call may then be repeated. Returns true once the file has its name, even if
 * published.remains lists unfinished work. */
bool publication_run(struct publication *publication, struct failure *failure);

/* --- the two stages, so that several files can be checked before the first is published; on a
 * worker --- */

/* Opens the file with the reader that serves it. Checks whether the client may use the shards'
 * files, then the digests in the file, then the rules for its content. May take long. Returns false
 * with failure set. */
bool publication_check(struct publication *publication, struct failure *failure);
/* Gives the checked file its name; may be retried. Returns false with failure set. */
bool publication_publish(struct publication *publication, struct failure *failure);
/* Frees the results of the check. May be called twice, and on a cleared structure. */
void publication_clear(struct publication *publication);

/* --- afterwards --- */

/* Retries the unfinished work of a publication under a model's name, before the response is
 * repeated. On a worker. */
void publication_complete(struct server *server, const char *name, struct published *published);
/* Makes the finished work durable, and changes nothing else. */
void publication_settle(struct server *server, const char *name, struct published *published);

#endif
