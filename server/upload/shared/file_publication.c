/* Files at paths of their own: checked by what their names say, and published like models, but
 * beside whatever else has the name of the same model. */
#include "upload/shared/file_publication.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/server.h"
#include "tree/file_hashes.h"
#include "tree/stored_file.h"
#include "upload/shared/model_hold.h"
#include "zt/json_text.h"

bool file_path_is_writable(struct zt_text path)
{
    return store_path_is_served(path);
}

/* --- what a path says of its file --- */

enum file_kind {
    FILE_ANY,   /* nothing */
    FILE_MODEL, /* a tensor file, or an index: of the format that the extension names */
    FILE_VAGUE, /* perhaps a tensor file: its content says */
    FILE_JSON
};

#define JSON ".json"

static bool is_json(const char *path)
{
    const size_t length = strlen(path);

    return length >= strlen(JSON) && strcasecmp(path + length - strlen(JSON), JSON) == 0;
}

/* out_model: the name of the model that the file would be; empty if none. */
static enum file_kind kind_of(const char *path, char out_model[MODEL_NAME_MAX + 1])
{
    size_t length;
    unsigned rank;

    out_model[0] = '\0';
    if (!model_path_split(path, &length, &rank))
        return is_json(path) ? FILE_JSON : FILE_ANY;
    snprintf(out_model, MODEL_NAME_MAX + 1, "%.*s", (int)length, path);
    return model_path_is_vague(path) ? FILE_VAGUE : FILE_MODEL;
}

/* --- the check --- */

/* What the check of a model says the file is called must be what it is called here. */
static bool check_extension(const struct file_publication *file, struct failure *failure)
{
    const char *path = file->publication.name;
    const char *extension = path + strlen(file->model);

    if (strcasecmp(extension, file->findings.extension) == 0 || model_path_is_vague(path))
        return true;
    return failure_refuse(failure, PROBLEM_INVALID_MODEL,
                          "the content is that of a %s file, the name is that of a %s file",
                          file->findings.extension + 1, extension + 1);
}

static bool check_model(struct file_publication *file, struct failure *failure)
{
    struct publication model = file->publication;

    model.name = file->model;
    return publication_check(&model, &file->findings, failure) && check_extension(file, failure);
}

/* True with *out_source, which the store closes; false: failure is set. */
static bool read_back(struct file_publication *file, struct zt_source **out_source,
                      struct failure *failure)
{
    struct publication *publication = &file->publication;
    struct zt_error error;

    return publication->server->store->ops->read_back(publication->stored, out_source, &error) ==
               ZT_OK ||
           failure_of_store(failure, &error);
}

/* A file under an extension that PyTorch shares with much else is a model if it is of a known
 * format, be it a damaged one. */
static bool check_vague(struct file_publication *file, struct failure *failure)
{
    struct zt_source *source;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status;

    if (!read_back(file, &source, failure))
        return false;
    status = zt_model_open(source, &model, &error);
    zt_model_free(model);
    if (status != ZT_OK && generation_error_is_foreign(file->publication.name, &error)) {
        file->model[0] = '\0';
        return true;
    }
    return check_model(file, failure);
}

static bool check_json(struct file_publication *file, struct failure *failure)
{
    struct zt_source *source;
    struct zt_error error;
    enum zt_status status;

    if (!read_back(file, &source, failure))
        return false;
    status = zt_json_check(source, &error);
    if (status == ZT_OK)
        return true;
    if (status == ZT_INVALID || status == ZT_LIMIT)
        return failure_set(failure, PROBLEM_INVALID_MODEL, &error);
    return failure_of_store(failure, &error);
}

static bool check_content(struct file_publication *file, struct failure *failure)
{
    switch (kind_of(file->publication.name, file->model)) {
    case FILE_ANY:
        break;
    case FILE_MODEL:
        return check_model(file, failure);
    case FILE_VAGUE:
        return check_vague(file, failure);
    case FILE_JSON:
        return check_json(file, failure);
    }
    return true;
}

/* What the check of a model does as well. */
static bool identify(struct file_publication *file, struct failure *failure)
{
    struct store *store = file->publication.server->store;
    struct zt_source *source;

    if (!read_back(file, &source, failure))
        return false;
    file->findings.has_identity = store->ops->identity_of(store, source, &file->findings.identity);
    return true;
}

bool file_publication_check(struct file_publication *file, struct failure *failure)
{
    file->findings = (struct findings){0};
    return check_content(file, failure) && (file->findings.has_identity || identify(file, failure));
}

void file_publication_clear(struct file_publication *file)
{
    free(file->findings.verdicts);
    file->findings = (struct findings){0};
}

/* --- what is at a path --- */

/* A model's file has the tag of its generation, as its other answers do. NULL: the catalog does not
 * have it. */
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

static void describe_generation(const struct generation *generation, struct file_found *found)
{
    found->exists = true;
    found->identity = generation->identity;
    found->modified = generation_modified(generation);
    generation_etag(generation, "file", found->etag, sizeof(found->etag));
    found->has_sha256 = atomic_load(&generation->has_file_sha256);
    if (found->has_sha256)
        memcpy(found->sha256, generation->file_sha256, sizeof(found->sha256));
}

static void describe_file(const char *path, const struct stored_file *file,
                          struct file_found *found)
{
    found->exists = true;
    found->identity = file->identity;
    found->modified = (time_t)(file->identity.modified_ns / 1000000000);
    stored_file_etag(path, &file->identity, found->etag);
    found->has_sha256 = file->has_sha256;
    memcpy(found->sha256, file->sha256, sizeof(found->sha256));
}

bool file_look(struct server *server, const char *path, struct file_found *out_found,
               struct failure *failure)
{
    struct generation *generation = find_generation(server, path);
    struct stored_file *file;
    struct zt_error error;
    enum zt_status status;

    *out_found = (struct file_found){.exists = false};
    if (generation != NULL) {
        describe_generation(generation, out_found);
        generation_release(generation);
        if (!out_found->has_sha256)
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

bool file_preconditions_hold(const struct preconditions *preconditions,
                             const struct file_found *found)
{
    return precondition_check(preconditions, found->exists ? found->etag : NULL, found->modified,
                              false) == PRECONDITION_PASS;
}

static bool check_preconditions(struct server *server, const char *path,
                                const struct preconditions *preconditions,
                                struct file_found *out_found, struct failure *failure)
{
    return file_look(server, path, out_found, failure) &&
           (file_preconditions_hold(preconditions, out_found) ||
            failure_refuse(failure, PROBLEM_PRECONDITION_FAILED,
                           "the current file does not meet the request's preconditions"));
}

/* --- publication --- */

/* Replicas of a bucket claim models by their names, so the files of one model wait for each other;
 * as does what only could be one, by its name. */
static const char *hold_name(const struct file_publication *file,
                             char out_model[MODEL_NAME_MAX + 1])
{
    (void)kind_of(file->publication.name, out_model);
    return out_model[0] != '\0' ? out_model : file->publication.name;
}

/* Answers from now on have what was published. */
static void note(struct server *server)
{
    atomic_fetch_add(&server->files_changed, 1);
    changes_note();
}

static void show(struct file_publication *file, const struct model_hold *hold)
{
    struct publication *publication = &file->publication;
    struct server *server = publication->server;
    struct file_found found;
    struct failure ignored = {.is_set = false};

    if (file->model[0] != '\0')
        publication_show(publication, &file->findings, hold, publication->name);
    note(server);
    publication->published.etag[0] = '\0';
    if (!file_look(server, publication->name, &found, &ignored) || !found.exists)
        return;
    /* Somebody else may have put another file in its place. */
    if (!publication_is_shown(&file->findings, hold->claim, &found.identity))
        return;
    snprintf(publication->published.etag, sizeof(publication->published.etag), "%s", found.etag);
    file_hashes_keep(server->hashes, publication->name, &found.identity,
                     publication->published.sha256);
}

bool file_publication_publish(struct file_publication *file, struct failure *failure)
{
    struct publication *publication = &file->publication;
    struct server *server = publication->server;
    const char *path = publication->name;
    struct file_found found;
    char name[MODEL_NAME_MAX + 1];
    struct model_hold hold;
    bool published;

    assert(publication->stored != NULL);
    publication->published.replaced = false;
    if (!publication_prepare(publication, path, failure) ||
        !model_hold_take(&hold, server, hold_name(file, name), failure))
        return false;
    published = check_preconditions(server, path, &publication->preconditions, &found, failure) &&
                publication_give_name(publication, &hold, path, found.exists, failure);
    if (published)
        show(file, &hold);
    model_hold_release(&hold);
    return published;
}

/* --- removal --- */

static bool remove_held(struct server *server, const char *path,
                        const struct preconditions *preconditions, struct failure *failure)
{
    struct store_expected expected = {.what = STORE_EXPECTS_VERSION};
    struct file_found found;
    struct zt_error error;
    enum zt_status status;

    if (!file_look(server, path, &found, failure))
        return false;
    if (!found.exists)
        return failure_refuse(failure, PROBLEM_NOT_FOUND, "there is no stored file at this path");
    if (!check_preconditions(server, path, preconditions, &found, failure))
        return false;
    expected.identity = found.identity;
    status = server->store->ops->remove(server->store, path, &expected, &error);
    if (status == ZT_ARGUMENT)
        return failure_refuse(failure,
                              preconditions_are_given(preconditions) ? PROBLEM_PRECONDITION_FAILED
                                                                     : PROBLEM_CONFLICT,
                              "the file was changed meanwhile");
    return status == ZT_OK || status == ZT_NOT_FOUND || failure_of_store(failure, &error);
}

bool file_remove(struct server *server, const char *path, const struct preconditions *preconditions,
                 struct failure *failure)
{
    struct file_publication file = {.publication = {.name = path}};
    char name[MODEL_NAME_MAX + 1];
    struct model_hold hold;
    bool removed;

    (void)kind_of(path, file.model);
    if (!model_hold_take(&hold, server, hold_name(&file, name), failure))
        return false;
    removed = remove_held(server, path, preconditions, failure);
    if (removed && file.model[0] != '\0')
        generation_release(catalog_update(server->catalog, path));
    if (removed)
        note(server);
    model_hold_release(&hold);
    return removed;
}
