/* Records commits: what PUT, tus, the streaming writer, S3, DELETE and the Hub's commits do to the
 * folder becomes an entry in the log of its repository. */
#ifndef VERSIONS_RECORDING_H
#define VERSIONS_RECORDING_H

#include "base/server.h"
#include "store/versions/history.h"

/* A change of a repository in progress. Zeroed: none, because versions are off. */
struct recording {
    struct server *server;
    struct history_repo repo;
    bool is_locked;
};

/* Computes the SHA-256s of a repository's files that are not known yet, so that recording_begin
 * is quick. No effect without versions. On a worker; may take long. */
void recording_prepare(struct server *server, const struct history_repo *repo);

/* Locks the repository, and records the present state of the folder if it differs from the last
 * commit, because files were put there by other means. Call it before the first change and before
 * the lock of a name is taken. Without versions, it only succeeds. On a worker. */
enum zt_status recording_begin(struct recording *recording, struct server *server,
                               const struct history_repo *repo, struct zt_error *error);
/* Records the state of the folder after the change, unless it is the same, and unlocks. note: NULL
 * if no file was changed. A failure means that the change was made and will be recorded later
 * without its note. Does nothing for a zeroed structure. */
enum zt_status recording_end(struct recording *recording, const struct history_note *note,
                             struct history_commit *out_commit, struct zt_error *error);

/* Returns true if a change of the repository is in progress, which may have changed files that no
 * commit has yet. Rarely true for another reason. */
bool recording_is_in_progress(struct server *server, const struct history_repo *repo);

struct recording_target {
    const char *commit;
    const char *expected; /* the commit that main must have, or NULL */
};

/* Replaces the files of the folder by the files of a commit, and records that as a commit of main.
 * Returns ZT_ARGUMENT if main has another commit than expected; ZT_NOT_FOUND. On a worker. */
enum zt_status recording_restore(struct server *server, const struct history_repo *repo,
                                 const struct recording_target *target,
                                 const struct history_note *note, struct history_commit *out_commit,
                                 struct zt_error *error);

#endif
