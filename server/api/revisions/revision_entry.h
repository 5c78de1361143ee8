/* Commits, branches and tags as the API describes them. */
#ifndef API_REVISIONS_REVISION_ENTRY_H
#define API_REVISIONS_REVISION_ENTRY_H

#include "base/json_write.h"
#include "http/exchange/request.h"
#include "store/store.h"
#include "store/versions/history.h"

/* A commit that is described. */
struct revision_entry {
    const char *base_path; /* prefix of hrefs */
    const struct history_repo *repo;
    struct zt_text model; /* its name in the folder */
    const struct history_ref *refs;
    size_t ref_count;
    bool shows_notes; /* the client may see all files that titles and messages may name */
};

/* Returns true if the client may see everything in a repository. */
bool revision_shows_notes(const struct request *request, const struct history_repo *repo);

/* Writes a commit as an object. */
void revision_entry_write(struct json *json, const struct revision_entry *entry,
                          const struct history_commit *commit);

/* Writes the same members for a mirrored repository: only the identity of a commit is known. */
void revision_entry_write_mirrored(struct json *json, const char *base_path,
                                   const struct store_revision *revision, struct zt_text name,
                                   struct zt_text branch);

/* Writes a text as a member; null if it is empty. */
void revision_write_text(struct json *json, const char *key, const char *text);

#endif
