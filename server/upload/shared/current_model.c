/* Finds what a write would replace or remove, and checks preconditions against it. */
#include "upload/shared/current_model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/changes.h"
#include "base/server.h"
#include "digests/file_hashes.h"
#include "store/store_here.h"
#include "tree/stored_file.h"

/* --- preconditions --- */

/* If-Match also accepts the tags of the compressed manifest: a client that has read it has read
 * this version. */
static bool if_match_holds(const char *if_match, const struct generation *current)
{
    static const char *const codings[] = {NULL, "gzip", "zstd"};
    const struct preconditions only = {.if_match = if_match};

    if (current == NULL)
        return precondition_check(&only, NULL, 0, false) == PRECONDITION_PASS;
    for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
        char etag[GENERATION_ETAG_SIZE + 8];

        if (codings[i] != NULL)
            generation_etag(current, codings[i], etag, sizeof(etag));
        else
            snprintf(etag, sizeof(etag), "%s", current->etag);
        if (precondition_check(&only, etag, 0, false) == PRECONDITION_PASS)
            return true;
    }
    return false;
}

bool model_preconditions_hold(const struct preconditions *preconditions,
                              const struct generation *current)
{
    struct preconditions others = *preconditions;
    const char *etag;
    time_t modified;

    if (others.if_match != NULL) {
        if (!if_match_holds(others.if_match, current))
            return false;
        others.if_match = NULL;
        others.if_unmodified_since = NULL;
    }
    etag = current != NULL ? current->etag : NULL;
    modified = current != NULL ? generation_modified(current) : 0;
    return precondition_check(&others, etag, modified, false) == PRECONDITION_PASS;
}

bool model_file_is_not_a_model(struct server *server, const char *path)
{
    struct generation *file =
        model_path_needs_sniffing(path) ? catalog_update(server->catalog, path) : NULL;
    const bool is_foreign = file != NULL && generation_is_not_a_model(file);

    generation_release(file);
    return is_foreign;
}

struct generation *model_find_uppercase(struct server *server, const char *name)
{
    struct generation *uppercase = catalog_update_uppercase(server->catalog, zt_text_from(name));

    if (uppercase == NULL || !generation_is_not_a_model(uppercase))
        return uppercase;
    generation_release(uppercase);
    return NULL;
}

static bool is_of_rank(const struct generation *uppercase, unsigned rank)
{
    size_t length;
    unsigned found;

    return uppercase != NULL && model_path_split(uppercase->path, &length, &found) && found == rank;
}

struct generation *model_find_current(struct server *server, const char *name)
{
    struct generation *uppercase = model_find_uppercase(server, name);
    char path[MODEL_PATH_SIZE];

    assert(strlen(name) <= MODEL_NAME_MAX);
    for (unsigned rank = 0; model_file_path(name, rank, path); rank++) {
        struct generation *current;

        current = catalog_update(server->catalog, path);
        if (current != NULL && !generation_is_not_a_model(current)) {
            generation_release(uppercase);
            return current;
        }
        generation_release(current);
        if (is_of_rank(uppercase, rank))
            return uppercase;
    }
    generation_release(uppercase);
    return catalog_update_split(server->catalog, zt_text_from(name));
}

bool model_reads_succeeded(uint64_t failed_before, struct failure *failure)
{
    struct zt_error error;

    if (failed_lookups_count() == failed_before)
        return true;
    zt_fail(&error, ZT_IO, NULL, ZT_NO_OFFSET, "the files of the model cannot be opened now");
    return failure_of_store(failure, &error);
}

/* Returns true if the store has exactly this version at a path, or no file if identity is NULL. */
static bool is_there(const struct publish_lock *lock, const char *path,
                     const struct file_identity *identity, struct failure *failure)
{
    struct store_expected found;

    assert(lock->claim != NULL);
    if (!publish_lock_find(lock, path, &found, failure))
        return false;
    if (identity == NULL ? found.what == STORE_EXPECTS_NOTHING
                         : found.what == STORE_EXPECTS_VERSION &&
                               store_identity_equal(identity, &found.identity))
        return true;
    return failure_refuse(failure, PROBLEM_STORE_UNAVAILABLE,
                          "the current model cannot be read from the object store");
}

bool model_is_current(const struct publish_lock *lock, const struct generation *current,
                      struct failure *failure)
{
    if (lock->claim == NULL)
        return true;
    /* The files of a split GGUF have other names, and so other claims. */
    if (current != NULL && generation_is_split(current))
        return true;
    if (current != NULL)
        return is_there(lock, current->path, &current->identity, failure);
    for (unsigned rank = 0;; rank++) {
        char path[MODEL_PATH_SIZE];

        if (!model_file_path(lock->name, rank, path))
            return true;
        if (!is_there(lock, path, NULL, failure))
            return false;
    }
}

bool model_check_preconditions(struct server *server, const struct publish_lock *lock,
                               const char *name, const struct preconditions *preconditions,
                               bool *out_exists, struct failure *failure)
{
    const uint64_t failed_before = failed_lookups_count();
    struct generation *current;
    bool is_sure;
    bool is_met;

    *out_exists = false;
    if (!preconditions_are_given(preconditions))
        return true;
    current = model_find_current(server, name);
    is_sure = (lock == NULL || model_is_current(lock, current, failure)) &&
              model_reads_succeeded(failed_before, failure);
    is_met = model_preconditions_hold(preconditions, current);
    *out_exists = current != NULL;
    generation_release(current);
    if (!is_sure)
        return false;
    return is_met || failure_refuse(failure, PROBLEM_PRECONDITION_FAILED,
                                    "the current model does not meet the request's preconditions");
}

/* --- parts of a joined model --- */

struct generation *model_parts_of(struct server *server, const char *name)
{
    struct generation *known = catalog_peek(server->catalog, zt_text_from(name));
    struct generation *current = NULL;

    if (known != NULL && known->is_joined)
        current = catalog_update(server->catalog, known->path);
    generation_release(known);
    return current;
}

static bool take_path(struct generation *behind, char out_path[MODEL_PATH_SIZE])
{
    if (behind == NULL)
        return false;
    snprintf(out_path, MODEL_PATH_SIZE, "%s",
             generation_is_split(behind) && behind->own_path != NULL ? behind->own_path
                                                                     : behind->path);
    generation_release(behind);
    return true;
}

bool model_find_shadowed(struct server *server, const char *name, char out_path[MODEL_PATH_SIZE])
{
    return take_path(catalog_update_shadowed(server->catalog, zt_text_from(name)), out_path);
}

bool model_find_known_shadowed(struct server *server, struct zt_text name,
                               char out_path[MODEL_PATH_SIZE])
{
    return take_path(catalog_peek_in_way(server->catalog, name), out_path);
}

/* --- the file at a path --- */

/* Finds the generation of a model's file, whose ETag is the generation's. Returns NULL if the
 * catalog does not have it. */
static struct generation *find_generation(struct server *server, const char *path)
{
    size_t length;
    unsigned rank;
    struct generation *generation =
        model_path_split(path, &length, &rank) ? catalog_update(server->catalog, path) : NULL;

    if (generation != NULL && generation->source != NULL)
        return generation;
    generation_release(generation);
    return NULL;
}

static void describe_generation(const struct generation *generation, struct current_file *found)
{
    assert(generation->source != NULL);
    found->exists = true;
    found->identity = generation->identity;
    found->modified = generation_modified(generation);
    generation_etag(generation, "file", found->etag, sizeof(found->etag));
}

static void describe_file(const char *path, const struct stored_file *file,
                          struct current_file *found)
{
    found->exists = true;
    found->identity = file->identity;
    found->modified = (time_t)(file->identity.modified_ns / 1000000000);
    stored_file_etag(path, &file->identity, found->etag);
    found->has_sha256 = file->has_sha256;
    memcpy(found->sha256, file->sha256, sizeof(found->sha256));
}

static bool find_file(struct server *server, const char *path, struct current_file *out_found,
                      struct failure *failure)
{
    const uint64_t failed_before = failed_lookups_count();
    struct generation *generation = find_generation(server, path);
    struct stored_file *file;
    struct zt_error error;
    enum zt_status status;

    *out_found = (struct current_file){.path = path, .exists = false};
    if (!model_reads_succeeded(failed_before, failure)) {
        generation_release(generation);
        return false;
    }
    if (generation != NULL) {
        describe_generation(generation, out_found);
        generation_release(generation);
        out_found->has_sha256 =
            file_hashes_find(server->hashes, path, &out_found->identity, out_found->sha256);
        return true;
    }
    status = stored_file_open(server, zt_text_from(path), &file, &error);
    if (status == ZT_OK) {
        describe_file(path, file, out_found);
        stored_file_close(file);
    }
    return status == ZT_OK || status == ZT_NOT_FOUND || failure_of_store(failure, &error);
}

bool file_find_current(struct server *server, const char *path, struct current_file *out_found,
                       struct failure *failure)
{
    bool is_found;

    store_here_begin();
    is_found = find_file(server, path, out_found, failure);
    store_here_end();
    return is_found;
}

bool file_preconditions_hold(const struct preconditions *preconditions,
                             const struct current_file *found)
{
    char etag[CONDITIONAL_ETAG_SIZE];

    assert(!found->exists || found->etag[0] != '\0');
    if (!found->exists || preconditions->write_etag == NULL)
        snprintf(etag, sizeof(etag), "%s", found->etag);
    else
        preconditions->write_etag(found->path, &found->identity, etag);
    return precondition_check(preconditions, found->exists ? etag : NULL, found->modified, false) ==
           PRECONDITION_PASS;
}

bool file_check_preconditions(const struct preconditions *preconditions,
                              const struct current_file *found, struct failure *failure)
{
    return file_preconditions_hold(preconditions, found) ||
           failure_refuse(failure, PROBLEM_PRECONDITION_FAILED,
                          "the current file does not meet the request's preconditions");
}

void file_note_changed(struct server *server)
{
    atomic_fetch_add(&server->files_changed, 1);
    changes_note();
}
