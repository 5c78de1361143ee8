/* From a whole stored file to a visible model: validated by the reader that serves it, its digests
 * checked, published under its name, preconditions checked again at that moment. The same for every
 * kind of upload (PUT, the streaming writer, tus), as is the answer. */
#ifndef UPLOAD_SHARED_PUBLICATION_H
#define UPLOAD_SHARED_PUBLICATION_H

#include "base/name_filter.h"
#include "catalog/catalog.h"
#include "http/fields/conditional.h"
#include "store/store.h"
#include "upload/shared/failure.h"
#include "upload/shared/model_hold.h"

/* What a successful publication is answered with. */
struct published {
    uint8_t sha256[32];              /* of the whole file */
    char etag[GENERATION_ETAG_SIZE]; /* empty when the file is gone again, or not known any more */
    bool replaced;
};

struct publication {
    /* Set by the caller. */
    struct server *server;
    struct stored_upload *stored; /* taken over on success (then NULL), unchanged on failure */
    const char *name;             /* the model's, NUL-terminated, borrowed */
    struct preconditions preconditions; /* texts borrowed */
    /* The names that the client may use: those of the model's shards must be among them. */
    struct name_filter covers;
    /* Of a component's decoded bytes, or NULL where it is not known; no function where no decoded
     * bytes were hashed. *out_compressed: these bytes are not what is stored. */
    const uint8_t *(*decoded_sha256)(void *context, struct zt_text object, struct zt_text component,
                                     bool *out_compressed);
    void *context;
    /* sha256 is set by the caller, the rest on success. */
    struct published published;
};

/* On a worker; may take long. False with failure set: it may be tried again. */
bool publication_run(struct publication *publication, struct failure *failure);

/* --- its steps, for files that are published at paths of their own (file_publication.h) --- */

struct findings;

/* What takes long is done while others may still write under the name. */
bool publication_prepare(struct publication *publication, const char *path,
                         struct failure *failure);
/* Gives the file its name; exists: whether the preconditions were checked with what is there. While
 * it is held. On success stored is NULL. */
bool publication_give_name(struct publication *publication, const struct model_hold *hold,
                           const char *path, bool exists, struct failure *failure);
/* Whether what is found under a name is the very file that was checked: another may have been put
 * in its place since. In a folder the time of change is not compared, since publication changes it.
 * claim: of the hold. */
bool publication_is_shown(const struct findings *findings, const struct store_claim *claim,
                          const struct file_identity *shown);
/* It is served from now on, and what was found out about it is known. While it is held. */
void publication_show(struct publication *publication, const struct findings *findings,
                      const struct model_hold *hold, const char *path);

/* --- the answer --- */

/* Fields of the answer: where the model is; and its ETag and Repr-Digest. */
void published_reply_location(struct request *request, struct zt_text model);
void published_reply_digest(struct request *request, const struct published *published);

/* --- what stands under a name --- */

/* The current model under a name, whatever its format, looked up on disk rather than in what a scan
 * last saw. A reference, or NULL. On a worker. */
struct generation *model_find_current(struct server *server, const char *name);
/* Whether a path has a file that turned out to be no model: it is nobody's to replace or remove. On
 * a worker. */
bool model_file_is_foreign(struct server *server, const char *path);
/* Whether a write's preconditions hold for a current model (NULL: none). */
bool model_preconditions_hold(const struct preconditions *preconditions,
                              const struct generation *current);
/* Whether what was found as current (NULL: none) is what the store has: a replica that could not
 * read the newest version may still have an older one. False: failure is set. */
bool model_is_current(const struct model_hold *hold, const struct generation *current,
                      struct failure *failure);
/* Finds it, and checks the preconditions. False: failure is set. *out_exists is set only if there
 * are preconditions. On a worker. */
bool model_check_preconditions(struct server *server, const char *name,
                               const struct preconditions *preconditions, bool *out_exists,
                               struct failure *failure);

#endif
