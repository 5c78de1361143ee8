#include "client/repository.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "client/json_answer.h"
#include "http/fields/uri.h"
#include "hub/hub_names.h"
#include "input/json_read.h"

/* Bounds for a server that makes up files without end. */
#define FILES_MOST   100000
#define FOLDERS_MOST 10000
#define PAGES_MOST   20000

enum repository_stage repository_stage_of(const char *path)
{
    size_t length;
    unsigned rank;

    if (model_path_is_index(zt_text_from(path)))
        return STAGE_INDEXES;
    return model_path_split(path, &length, &rank) ? STAGE_TENSORS : STAGE_OTHERS;
}

bool repository_unfinished_name(const char *path, char out_name[MODEL_PATH_SIZE])
{
    static const char *const ends[] = {".part", ".part.json"};
    const size_t length = strlen(path);

    assert(length < MODEL_PATH_SIZE);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const size_t size = strlen(ends[i]);

        if (length > size && strcmp(path + length - size, ends[i]) == 0) {
            snprintf(out_name, MODEL_PATH_SIZE, "%.*s", (int)(length - size), path);
            return true;
        }
    }
    return false;
}

/* --- names that the server chooses --- */

/* Returns true if every part of a path could be the name of a file or folder, and one of them is
 * hidden. */
static bool is_hidden(const char *path)
{
    bool has_hidden = false;

    while (true) {
        const size_t length = strcspn(path, "/");
        const bool is_dots = length > 0 && length <= 2 && strspn(path, ".") >= length;

        if (length == 0 || is_dots)
            return false;
        has_hidden = has_hidden || path[0] == '.';
        if (path[length] == '\0')
            return has_hidden;
        path += length + 1;
    }
}

/* Returns ZT_OK with *out_is_wanted false for a hidden file. */
static enum zt_status check_path(const char *path, bool *out_is_wanted, struct zt_error *error)
{
    *out_is_wanted = store_path_is_served(zt_text_from(path));
    if (*out_is_wanted || is_hidden(path))
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                   "the server names a file that cannot be in the repository's folder: \"%s\"",
                   path);
}

/* --- the list --- */

void repository_free(struct repository *repository)
{
    for (size_t i = 0; i < repository->count; i++)
        free(repository->files[i].path);
    free(repository->files);
    free(repository->commit);
    repository->files = NULL;
    repository->commit = NULL;
    repository->count = 0;
    repository->capacity = 0;
}

/* Adds a file and takes over its path, also on failure. */
static enum zt_status add(struct repository *repository, struct repository_file file,
                          struct zt_error *error)
{
    enum zt_status status =
        zt_array_reserve(&repository->files, &repository->capacity, repository->count + 1,
                         sizeof(*repository->files), FILES_MOST);

    if (status == ZT_OK) {
        repository->files[repository->count++] = file;
        return ZT_OK;
    }
    free(file.path);
    return status == ZT_LIMIT ? zt_fail(error, status, NULL, ZT_NO_OFFSET,
                                        "the repository has more than %d files", FILES_MOST)
                              : zt_fail_memory(error, "a list of files");
}

static int compare(const void *a, const void *b)
{
    const struct repository_file *one = a;
    const struct repository_file *other = b;
    const int order = (int)repository_stage_of(one->path) - (int)repository_stage_of(other->path);

    return order != 0 ? order : strcmp(one->path, other->path);
}

static bool is_unfinished(const struct repository *repository, const char *path)
{
    char name[MODEL_PATH_SIZE];
    const struct repository_file key = {.path = name};

    return repository_unfinished_name(path, name) &&
           bsearch(&key, repository->files, repository->count, sizeof(key), compare) != NULL;
}

static void leave_out_unfinished(struct repository *repository)
{
    size_t kept = 0;

    for (size_t i = 0; i < repository->count; i++)
        repository->files[i].is_unfinished = is_unfinished(repository, repository->files[i].path);
    for (size_t i = 0; i < repository->count; i++)
        if (repository->files[i].is_unfinished)
            free(repository->files[i].path);
        else
            repository->files[kept++] = repository->files[i];
    repository->unfinished = repository->count - kept;
    repository->count = kept;
}

bool repository_is_same(const struct repository *a, const struct repository *b)
{
    bool is_same = a->count == b->count;

    for (size_t i = 0; is_same && i < a->count; i++) {
        const struct repository_file *one = &a->files[i];
        const struct repository_file *other = &b->files[i];

        is_same = strcmp(one->path, other->path) == 0 && one->size == other->size &&
                  strcmp(one->modified, other->modified) == 0 &&
                  (!one->has_sha256 || !other->has_sha256 ||
                   memcmp(one->sha256, other->sha256, sizeof(one->sha256)) == 0);
    }
    return is_same;
}

static void read_sha256(const struct json_t *object, const char *name, struct repository_file *file)
{
    struct zt_text text;

    file->has_sha256 = object != NULL && json_member_text(object, name, &text) == JSON_FOUND &&
                       text.length == 2 * sizeof(file->sha256) &&
                       zt_hex_read_lower(text, file->sha256, sizeof(file->sha256));
}

static void read_size(const struct json_t *object, struct repository_file *file)
{
    if (json_member_whole(object, "size", &file->size) != JSON_FOUND)
        file->size = UINT64_MAX;
}

/* --- this program's server: an index for each folder --- */

struct index_walk {
    struct client *client;
    struct repository *repository;
    char **folders; /* relative to the repository, each with a '/' at the end unless empty */
    size_t count;
    size_t capacity;
    unsigned pages;           /* that were asked for, of all folders */
    bool is_index;            /* the server has answered with one */
    struct client_place next; /* of the next page */
};

/* Takes over the folder, also on failure. */
static enum zt_status add_folder(struct index_walk *walk, char *folder, struct zt_error *error)
{
    enum zt_status status = ZT_NO_MEMORY;

    if (folder != NULL)
        status = zt_array_reserve(&walk->folders, &walk->capacity, walk->count + 1,
                                  sizeof(*walk->folders), FOLDERS_MOST);
    if (status == ZT_OK) {
        walk->folders[walk->count++] = folder;
        return ZT_OK;
    }
    free(folder);
    return status == ZT_LIMIT ? zt_fail(error, status, NULL, ZT_NO_OFFSET,
                                        "the repository has more than %d folders", FOLDERS_MOST)
                              : zt_fail_memory(error, "a list of folders");
}

static enum zt_status add_file(struct index_walk *walk, const char *path,
                               const struct json_t *entry, struct zt_error *error)
{
    struct repository_file file = {.path = strdup(path)};
    struct zt_text modified;

    if (file.path == NULL)
        return zt_fail_memory(error, "a path");
    read_size(entry, &file);
    read_sha256(entry, "sha256", &file);
    if (json_member_text(entry, "modified", &modified) == JSON_FOUND)
        snprintf(file.modified, sizeof(file.modified), "%s", modified.bytes);
    return add(walk->repository, file, error);
}

/* The name is of an entry in that folder, not of one below it. */
static enum zt_status add_entry(struct index_walk *walk, const char *folder,
                                const struct json_t *entry, struct zt_error *error)
{
    struct zt_text name = {"", 0};
    struct zt_text kind = {"", 0};
    enum zt_status status;
    bool is_wanted;
    char *path = NULL;
    char *below = NULL;

    (void)json_member_text(entry, "name", &name);
    (void)json_member_text(entry, "type", &kind);
    if (asprintf(&path, "%s%s", folder, strchr(name.bytes, '/') == NULL ? name.bytes : "") < 0)
        return zt_fail_memory(error, "a path");
    status = check_path(path, &is_wanted, error);
    if (status == ZT_OK && is_wanted && zt_text_is(kind, "folder"))
        status = asprintf(&below, "%s/", path) < 0 ? zt_fail_memory(error, "a path")
                                                   : add_folder(walk, below, error);
    else if (status == ZT_OK && is_wanted)
        status = add_file(walk, path, entry, error);
    free(path);
    return status;
}

/* Lists a page of a folder. */
static enum zt_status add_page(struct index_walk *walk, const char *folder, bool *out_has_next,
                               struct zt_error *error)
{
    struct client_place place = walk->next;
    struct json_t *page = NULL;
    enum zt_status status = json_answer_ask(walk->client, &place, &page, NULL, error);
    const struct json_t *entries = json_member_list(page, "entries");
    struct zt_text next;

    if (status == ZT_OK && entries == NULL)
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "the server's response is not a folder's index");
    walk->is_index = walk->is_index || entries != NULL;
    for (size_t i = 0; status == ZT_OK && i < json_list_length(entries); i++)
        status = add_entry(walk, folder, json_list_object(entries, i), error);
    *out_has_next = status == ZT_OK && json_member_text(page, "next", &next) == JSON_FOUND;
    if (*out_has_next && (!web_address_follow(&place.address, next.bytes, &walk->next.address) ||
                          strcmp(walk->next.address.origin, place.address.origin) != 0))
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "the server returned an invalid location");
    /* A redirect may have led to another server, which has the further pages. */
    walk->next.is_trusted = place.is_trusted;
    json_object_free(page);
    return status;
}

static enum zt_status add_pages(struct index_walk *walk, const char *folder, struct zt_error *error)
{
    bool has_next = true;
    enum zt_status status = repository_address_beside(&walk->repository->address, folder,
                                                      "?limit=1000", &walk->next, error);

    while (status == ZT_OK && has_next) {
        if (walk->pages++ >= PAGES_MOST)
            return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                           "the repository's index has more than %d pages", PAGES_MOST);
        status = add_page(walk, folder, &has_next, error);
    }
    return status;
}

/* *out_is_index: the server has an index, even if it cannot be used. */
static enum zt_status find_folder(struct client *client, struct repository *repository,
                                  bool *out_is_index, struct zt_error *error)
{
    struct index_walk walk = {.client = client, .repository = repository};
    enum zt_status status = add_folder(&walk, strdup(""), error);

    for (size_t i = 0; status == ZT_OK && i < walk.count; i++)
        status = add_pages(&walk, walk.folders[i], error);
    for (size_t i = 0; i < walk.count; i++)
        free(walk.folders[i]);
    free(walk.folders);
    *out_is_index = walk.is_index;
    return status;
}

/* --- other servers: the description of a repository at one commit --- */

enum zt_status repository_file_place(const struct repository *repository,
                                     const struct repository_file *file,
                                     struct client_place *out_place, struct zt_error *error)
{
    const struct repository_address *address = &repository->address;
    struct href href;
    enum zt_status status;

    if (repository->commit == NULL)
        return repository_address_beside(address, file->path, "", out_place, error);
    href_init(&href);
    href_plain(&href, address->base);
    href_plain(&href, "/");
    href_path(&href, zt_text_from(address->name));
    href_plain(&href, "/resolve/");
    href_segment(&href, zt_text_from(repository->commit));
    href_plain(&href, "/");
    href_path(&href, zt_text_from(file->path));
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : client_place_beside(&address->place, href.text, out_place, error);
    href_free(&href);
    return status;
}

static enum zt_status add_sibling(struct repository *repository, const struct json_t *sibling,
                                  struct zt_error *error)
{
    struct repository_file file = {.path = NULL};
    struct zt_text name = {"", 0};
    enum zt_status status;
    bool is_wanted;

    (void)json_member_text(sibling, "rfilename", &name);
    status = check_path(name.bytes, &is_wanted, error);
    if (status != ZT_OK || !is_wanted)
        return status;
    file.path = strdup(name.bytes);
    if (file.path == NULL)
        return zt_fail_memory(error, "a path");
    read_size(sibling, &file);
    read_sha256(json_member_object(sibling, "lfs"), "sha256", &file);
    return add(repository, file, error);
}

static enum zt_status ask_hub(struct client *client, const struct repository_address *address,
                              struct json_t **out_description, struct zt_error *error)
{
    struct client_place place;
    struct href href;
    enum zt_status status;

    href_init(&href);
    href_plain(&href, address->base);
    href_plain(&href, "/api/models/");
    href_path(&href, zt_text_from(address->name));
    href_plain(&href, "/revision/main?blobs=true");
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : client_place_beside(&address->place, href.text, &place, error);
    href_free(&href);
    return status == ZT_OK ? json_answer_ask(client, &place, out_description, NULL, error) : status;
}

static enum zt_status find_on_hub(struct client *client, struct repository *repository,
                                  struct zt_error *error)
{
    struct json_t *description = NULL;
    enum zt_status status = ask_hub(client, &repository->address, &description, error);
    const struct json_t *siblings = json_member_list(description, "siblings");
    struct zt_text commit = {"", 0};

    if (status == ZT_OK && (json_member_text(description, "sha", &commit) != JSON_FOUND ||
                            commit.length == 0 || siblings == NULL))
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "the server's response does not describe a repository");
    repository->commit = status == ZT_OK ? strdup(commit.bytes) : NULL;
    if (status == ZT_OK && repository->commit == NULL)
        status = zt_fail_memory(error, "a commit");
    for (size_t i = 0; status == ZT_OK && i < json_list_length(siblings); i++)
        status = add_sibling(repository, json_list_object(siblings, i), error);
    json_object_free(description);
    return status;
}

/* Returns true if the failure of find_on_hub means that there is no such repository or no Hub. */
static bool is_no_hub(const struct repository *repository, const struct zt_error *error)
{
    return (error->status == ZT_IO && error->os_error == ENOENT) ||
           (error->status == ZT_INVALID && repository->commit == NULL);
}

/* --- both --- */

enum zt_status repository_find(struct client *client, const struct repository_address *address,
                               struct repository *out_repository, struct zt_error *error)
{
    struct repository repository = {.address = *address};
    struct zt_error hub_error;
    bool is_index;
    enum zt_status status = find_folder(client, &repository, &is_index, error);

    assert(address->name[0] != '\0');
    /* Other servers may answer anything below /files. */
    if ((status == ZT_IO || status == ZT_INVALID) && !is_index &&
        hub_repo_is_valid(zt_text_from(address->name))) {
        const enum zt_status hub_status = find_on_hub(client, &repository, &hub_error);

        if (hub_status == ZT_OK) {
            status = ZT_OK;
        } else if (!is_no_hub(&repository, &hub_error)) {
            status = hub_status;
            *error = hub_error;
        }
    }
    if (status != ZT_OK) {
        repository_free(&repository);
        return status;
    }
    if (repository.count > 0)
        qsort(repository.files, repository.count, sizeof(*repository.files), compare);
    leave_out_unfinished(&repository);
    *out_repository = repository;
    return ZT_OK;
}
