/* From a whole stored file to a model: validated by the reader that serves it, its digests checked,
 * published under its name, preconditions checked again at that moment. One way for every kind of
 * upload (PUT, the streaming writer, tus). */
#ifndef UPLOAD_SHARED_PUBLICATION_H
#define UPLOAD_SHARED_PUBLICATION_H

#include "catalog/catalog.h"
#include "http/exchange/problem.h"
#include "http/fields/conditional.h"
#include "store/store.h"

struct publication {
    /* Set by whoever publishes. */
    struct server *server;
    struct stored_upload *stored; /* taken over on success (then NULL), left as it is on failure */
    const char *name;             /* the model's, NUL-terminated, borrowed */
    struct preconditions preconditions; /* texts borrowed */
    uint8_t sha256[32];                 /* of the whole file */
    /* Of a component's decoded bytes, NULL where it is not known; or no function: nobody has hashed
     * them. *out_compressed: these are not what is stored. */
    const uint8_t *(*decoded_sha256)(void *context, struct zt_text object, struct zt_text component,
                                     bool *out_compressed);
    void *context;
    /* Failure: which problem, and what exactly. */
    enum problem problem;
    struct zt_error error;
    /* Success. */
    bool replaced;
    char etag[GENERATION_ETAG_SIZE]; /* empty when the file is gone again */
};

/* On a worker; may take long. False: problem and error are set, and it may be tried again. */
bool publication_run(struct publication *publication);

/* Whether a write's preconditions hold for what stands under the name now (NULL: nothing). */
bool publication_preconditions_hold(const struct preconditions *preconditions,
                                    const struct generation *current);

/* What stands under a name at this moment, whatever its format; looked at on the disk, not in what
 * a scan last saw. A reference, or NULL. On a worker. */
struct generation *publication_find_current(struct server *server, const char *name);

/* Two that write under one name take turns; others go on meanwhile. name is borrowed for as long as
 * the turn. */
struct name_turn {
    const char *name;
    struct name_turn *next;
};
void name_turn_begin(struct name_turn *turn);
void name_turn_end(const struct name_turn *turn);

#endif
