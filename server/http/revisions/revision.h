/* Finds what a name means at a revision: the name or path that the store has for it. */
#ifndef HTTP_REVISIONS_REVISION_H
#define HTTP_REVISIONS_REVISION_H

#include "http/exchange/request.h"
#include "store/store.h"

struct history_repo;

/* A name at a revision. */
struct revision_found {
    char commit[STORE_COMMIT_SIZE];
    char name[MODEL_PATH_SIZE]; /* in the store */
};

enum revision_kind { REVISION_OF_MODEL, REVISION_OF_FILE, REVISION_OF_FOLDER };

/* Finds the name of a model, or the path of a file or folder, at a revision: in the kept history,
 * or in a mirrored repository. Returns ZT_NOT_FOUND with a message for the client, ZT_STALE if
 * that is a mirrored repository; ZT_UNAVAILABLE, ZT_IO. On a worker; may wait for an upstream. */
enum zt_status revision_look_up(struct server *server, struct zt_text name, enum revision_kind kind,
                                struct zt_text revision, struct revision_found *out_found,
                                struct zt_error *error);

/* Replies that revision_look_up has failed. Always returns OUTCOME_READY. */
enum outcome revision_reply_failure(struct request *request, const struct zt_error *error);

bool revision_find_model(struct request *request, enum outcome *out_outcome);
/* Replaces request->names[0] by the store's name at the revision, and sets the answer's ZT-Commit.
 * Does nothing if the request names no revision. Returns false if the request has been answered or
 * must wait; the handler then returns *out_outcome. */
static inline bool revision_resolve_model(struct request *request, enum outcome *out_outcome)
{
    if (request->revision.bytes != NULL || store_history(request->server->store) != NULL)
        return revision_find_model(request, out_outcome);
    *out_outcome = OUTCOME_READY;
    return true;
}

/* Does the same for the path of a file or folder and the parameter revision. The path of a file may
 * turn out to be a folder's. */
bool revision_resolve_path(struct request *request, enum revision_kind kind,
                           enum outcome *out_outcome);

/* After revision_resolve_path: redirects to the folder of the commit, in which relative references
 * lead to the commit's files. has_slash: the request's path ends in a slash. Always returns
 * OUTCOME_READY. */
enum outcome revision_redirect_to_folder(struct request *request, bool has_slash);

/* Writes the store's name of a model or file of a repository at a commit. Returns false if it is
 * too long. */
bool revision_store_name(const struct history_repo *repo, const char *commit, struct zt_text name,
                         char out_name[MODEL_PATH_SIZE]);

#endif
