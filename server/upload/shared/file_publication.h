/* From a whole stored file to a visible one at a path of its own, whatever it is: what its name
 * says is checked (a tensor file, an index, JSON), and what says nothing is taken as it is.
 *
 * In two stages, so that several files can be checked before the first of them is published. */
#ifndef UPLOAD_SHARED_FILE_PUBLICATION_H
#define UPLOAD_SHARED_FILE_PUBLICATION_H

#include "upload/shared/publication.h"
#include "upload/shared/write_checks.h"

struct file_publication {
    /* Set by the caller. What is published is publication.stored; publication.name is borrowed and
     * is the file's whole path; preconditions are about the file (its ETag is that of GET
     * /files/{path}); publication.published.sha256 is set. */
    struct publication publication;

    /* Private. */
    char model[MODEL_NAME_MAX + 1]; /* whose file it is; empty for another */
    struct findings findings;
};

/* Whether a file of that path may be written. */
bool file_path_is_writable(struct zt_text path);

/* Checks what was stored. On a worker; may take long. False: failure is set. */
bool file_publication_check(struct file_publication *file, struct failure *failure);

/* Gives it its name, after the check; may be tried again. On a worker. On success stored is NULL
 * and publication.published is filled in; its etag is that of GET /files/{path}. */
bool file_publication_publish(struct file_publication *file, struct failure *failure);

/* Frees what the check has found. Harmless on a cleared structure, and twice. */
void file_publication_clear(struct file_publication *file);

/* Removes the file at a path: only that, whatever models need it. False: failure is set
 * (PROBLEM_NOT_FOUND, PROBLEM_PRECONDITION_FAILED, …). On a worker. */
bool file_remove(struct server *server, const char *path, const struct preconditions *preconditions,
                 struct failure *failure);

/* The file that is at a path now: its ETag, of GET /files/{path}, and what is known of its
 * SHA-256. */
struct file_found {
    bool exists;
    bool has_sha256;
    uint8_t sha256[32];
    struct file_identity identity;
    time_t modified;
    char etag[GENERATION_ETAG_SIZE];
};
/* False: failure is set. On a worker if the store is elsewhere. */
bool file_look(struct server *server, const char *path, struct file_found *out_found,
               struct failure *failure);

bool file_preconditions_hold(const struct preconditions *preconditions,
                             const struct file_found *found);

#endif
