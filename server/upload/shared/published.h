/* The result of a publication, and the response to it. Once a file has its name it is published:
 * later failures change the response, never the file. */
#ifndef UPLOAD_SHARED_PUBLISHED_H
#define UPLOAD_SHARED_PUBLISHED_H

#include "catalog/generation.h"
#include "http/exchange/request.h"
#include "store/versions/history.h"
#include "upload/shared/failure.h"

/* An extension and NUL. The longest extension is an index's. */
#define PUBLISHED_EXTENSION_SIZE 32

/* Work that failed after a file got its name, or lost it. */
struct remains {
    bool is_unsynced; /* a folder was not synced */
    bool has_files;   /* files that belong to an old model were not removed */
    char replaced[PUBLISHED_EXTENSION_SIZE]; /* extension of the replaced file, if that was not
                                              * removed */
    struct file_identity replaced_identity;
};

/* The contents of the response to a successful publication. */
struct published {
    uint8_t sha256[32];              /* of the whole file */
    char etag[GENERATION_ETAG_SIZE]; /* empty if the file has been removed again, or is not known
                                      * any more */
    struct file_identity identity;   /* of a file at a path; valid if there is an ETag */
    bool replaced;
    char commit[HISTORY_COMMIT_SIZE]; /* of the repository; empty: not recorded */
    struct remains remains;
};

/* Makes a finished change at a path durable. Logs and notes a failure. done: "published", … */
void remains_settle(struct remains *remains, struct store *store, const char *path,
                    const char *done);

/* Notes, for the whole process, that some publication is incomplete. From then on, only a worker
 * can find out whether a repeated request was already carried out, and which work is left. From any
 * thread. */
void remains_note(void);
bool remains_were_noted(void);

/* Fails if work remains: with PROBLEM_INCOMPLETE, otherwise PROBLEM_NOT_DURABLE. done completes the
 * sentence "the model was …". */
bool remains_fail(const struct remains *remains, const char *done, struct failure *failure);

/* Replies with a problem if work remains. */
bool published_refuse(struct request *request, const struct published *published);

/* The name under which a client asks for it: a model's name, or with is_file the path of any
 * file. */
struct published_name {
    struct zt_text text;
    bool is_file;
};

/* Replies with that status, the location, ETag and Repr-Digest. */
void published_reply(struct request *request, unsigned status, struct published_name name,
                     const struct published *published);
/* Add only the location; only ETag and Repr-Digest. */
void published_reply_location(struct request *request, struct published_name name);
void published_reply_digest(struct request *request, const struct published *published);

#endif
