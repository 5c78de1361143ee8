/* From a whole stored file to a model: validated by the reader that serves it, its digests checked, published under its
 * name, preconditions checked again at that moment. One way for every kind of upload (PUT, the streaming writer, tus).
 */
#ifndef UPLOAD_PUBLICATION_H
#define UPLOAD_PUBLICATION_H

#include "http/conditional.h"
#include "http/problem.h"
#include "model/catalog.h"
#include "model/store.h"

struct publication {
    /* Set by whoever publishes. */
    struct server *server;
    struct stored_upload *stored;       /* taken over on success (then NULL), left as it is on failure */
    const char *name;                   /* the model's, NUL-terminated, borrowed */
    struct preconditions preconditions; /* texts borrowed */
    uint8_t sha256[32];                 /* of the whole file */
    /* Failure: which problem, and what exactly. */
    enum problem problem;
    struct zt_error error;
    /* Success. */
    bool replaced;
    char etag[GENERATION_ETAG_SIZE]; /* empty when the file is gone again */
    /* Between validation and publication; private. */
    bool has_identity;
    struct file_identity identity;
    unsigned char *verdicts;
    uint32_t verdict_count;
};

/* On a worker; may take long. False: problem and error are set. */
bool publication_run(struct publication *publication);

#endif
