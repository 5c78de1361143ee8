/* Finds the current model under a name, or the current file at a path, by looking in the store
 * instead of trusting the last scan, unless stated otherwise. */
#ifndef UPLOAD_SHARED_CURRENT_MODEL_H
#define UPLOAD_SHARED_CURRENT_MODEL_H

#include "catalog/catalog.h"
#include "catalog/failed_lookups.h"
#include "http/fields/conditional.h"
#include "upload/shared/publish_lock.h"
#include "upload/shared/published.h"

/* --- models --- */

/* Finds the current model under a name, in any format, by looking in the store instead of trusting
 * the last scan. Returns a reference, or NULL. On a worker. */
struct generation *model_find_current(struct server *server, const char *name);
/* Finds a model whose file's extension is spelled in other letters ("a.NPY"). Returns a reference,
 * or NULL. On a worker. */
struct generation *model_find_uppercase(struct server *server, const char *name);
/* Returns true if the file at a path is not a model although its name says so. Uploads and
 * deletions of models do not touch such a file. On a worker. */
bool model_file_is_not_a_model(struct server *server, const char *path);
/* Returns true if a write's preconditions hold for a current model (NULL: none). */
bool model_preconditions_hold(const struct preconditions *preconditions,
                              const struct generation *current);
/* Returns true if no look at the store has failed since failed_before (failed_lookups_count), so
 * that the results are certain. Returns false with failure set. */
bool model_reads_succeeded(uint64_t failed_before, struct failure *failure);
/* Returns true if the store really has the model found as current (NULL: none). A replica that
 * could not read the newest version may still have an older one. Returns false with failure set. */
bool model_is_current(const struct publish_lock *lock, const struct generation *current,
                      struct failure *failure);
/* Finds the current model and checks the preconditions. lock is NULL if the name is not locked; the
 * result may then be outdated at once. Returns false with failure set. *out_exists is set only if
 * there are preconditions. On a worker. */
bool model_check_preconditions(struct server *server, const struct publish_lock *lock,
                               const char *name, const struct preconditions *preconditions,
                               bool *out_exists, struct failure *failure);
/* Returns the joined model that currently has a name, as a reference; NULL if another model, or
 * none, has the name. On a worker. */
struct generation *model_parts_of(struct server *server, const char *name);

/* Returns true if the current model of a name hides a joined model. Replacing or removing the
 * current one leaves the hidden one unchanged. *out_path is its index, or the first part of its
 * split. On a worker. */
bool model_find_shadowed(struct server *server, const char *name, char out_path[MODEL_PATH_SIZE]);

/* The message of a refusal for that reason. */
#define MODEL_SHADOWED "another model of this name, %s, is hidden by the one that would be replaced"

/* Returns true if the catalog knows a hidden model, in one file or several, which publication will
 * find too. Never waits. */
bool model_find_known_shadowed(struct server *server, struct zt_text name,
                               char out_path[MODEL_PATH_SIZE]);

/* --- files at paths --- */

/* The current file at a path: its ETag, as in GET /files/{path}, and its SHA-256 if known. */
struct current_file {
    const char *path; /* borrowed from the caller */
    bool exists;
    bool has_sha256;
    uint8_t sha256[32];
    struct file_identity identity;
    time_t modified;
    char etag[GENERATION_ETAG_SIZE];
};
/* Returns false with failure set. On a worker if the store is remote. */
bool file_find_current(struct server *server, const char *path, struct current_file *out_found,
                       struct failure *failure);

bool file_preconditions_hold(const struct preconditions *preconditions,
                             const struct current_file *found);
/* Returns false with failure set if they do not hold. */
bool file_check_preconditions(const struct preconditions *preconditions,
                              const struct current_file *found, struct failure *failure);

/* Called when a file was published or removed: from now on, responses reflect the change. */
void file_note_changed(struct server *server);

#endif
