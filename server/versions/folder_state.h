/* The files that a repository has in the folder, with their SHA-256s. */
#ifndef VERSIONS_FOLDER_STATE_H
#define VERSIONS_FOLDER_STATE_H

#include "base/server.h"
#include "store/versions/history.h"

struct folder_state {
    struct history_file *files;       /* sorted by path */
    struct file_identity *identities; /* in the same order */
    size_t count;
    struct tree_listing *listing; /* private: has the paths */
};

/* Lists the files and hashes those whose SHA-256 is not known. Files that cannot be read are left
 * out. Returns ZT_STALE if files keep changing; ZT_IO, ZT_UNAVAILABLE, ZT_NO_MEMORY. */
enum zt_status folder_state_read(struct server *server, const struct history_repo *repo,
                                 struct folder_state *out_state, struct zt_error *error);
/* Accepts a cleared structure, and clears it. */
void folder_state_free(struct folder_state *state);

/* Returns NULL if there is no such file. */
const struct history_file *folder_state_find(const struct folder_state *state, const char *path);

/* Writes a file's path below the root. Returns false if it is too long. */
bool folder_state_path(const struct history_repo *repo, const char *path,
                       char out_path[MODEL_PATH_SIZE]);

#endif
