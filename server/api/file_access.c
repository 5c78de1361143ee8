/* Files with a model's extension come from the catalog; workers open all others. */
#include "api/file_access.h"

#include <assert.h>
#include <string.h>

#include "api/resolve.h"
#include "api/stored_reply.h"
#include "catalog/catalog.h"
#include "http/exchange/authorize.h"
#include "http/exchange/problem.h"

bool client_may_read_file(const struct request *request, struct zt_text path)
{
    char name[MODEL_NAME_MAX + 1];

    if (request->grant == NULL)
        return true;
    if (!model_path_name(path.bytes, name))
        return authorize_sees_file(request, path);
    return authorize_sees(request, zt_text_from(name)) ||
           catalog_has_shard_of(request->server->catalog, path, authorize_filter(request));
}

static struct zt_text path_of(const struct file_search *search)
{
    assert(search->path != NULL && search->path[search->length] == '\0');
    return (struct zt_text){search->path, search->length};
}

/* --- models' files --- */

/* A client may see a shard if it may see its model, and any other file if it may see a model of its
 * name. */
static bool sees_generation(const struct request *request, const struct generation *generation)
{
    return authorize_sees(request, generation_name(generation)) ||
           catalog_has_shard_of(request->server->catalog, zt_text_from(generation->path),
                                authorize_filter(request));
}

/* A request for a range of a large file does not justify reading the whole file. */
static void add_sha256(struct request *request, const struct generation *generation)
{
    struct representation *reply = &request->reply;
    struct file_hashes *hashes = request->server->hashes;

    reply->has_sha256 =
        file_hashes_find(hashes, generation->path, &generation->identity, reply->sha256);
    if (!reply->has_sha256 && request_header(request, "Range") == NULL)
        file_hashes_want(hashes, generation->path, &generation->identity);
}

/* Takes over the reference. */
static enum file_found take_generation(struct request *request, struct file_search *search,
                                       struct generation *generation)
{
    struct representation *reply = &request->reply;

    assert(search->identity == NULL && request->generation == NULL);
    request_hold(request, generation, generation_release);
    if (!sees_generation(request, generation) || generation_is_split(generation))
        return FILE_FOUND_NONE;
    request->generation = generation;
    request->is_unwritten = generation_is_unwritten;
    if (generation->source == NULL) {
        problem_reply_error(request, generation->error);
        return FILE_FOUND_FAILED;
    }
    search->identity = &generation->identity;
    reply->last_modified = generation_modified(generation);
    reply->cache_control = "no-cache";
    reply->media_type = "application/octet-stream";
    reply->ranges = true;
    reply->lasting = true;
    add_sha256(request, generation);
    representation_source(reply, generation->source, 0, zt_source_size(generation->source));
    return FILE_FOUND;
}

/* --- other files --- */

static void release_search(void *thing)
{
    const struct file_search *search = thing;

    stored_file_close(search->file);
}

static bool stop_at_once(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    return false;
}

static void open_on_worker(struct request *request)
{
    struct file_search *search = request->context;
    struct server *server = request->server;

    assert(search->file == NULL);
    search->status = ZT_NOT_FOUND;
    if (search->is_seen)
        search->status = stored_file_open(server, path_of(search), &search->file, &search->error);
    if (search->status == ZT_NOT_FOUND && search->wants_folder &&
        authorize_sees_folder(request, path_of(search)))
        search->is_folder = server->store->ops->walk(server->store, search->path, false,
                                                     stop_at_once, NULL, NULL) == ZT_OK;
}

static enum file_found take_opened(struct request *request, struct file_search *search)
{
    assert(search->was_opened && request->file == NULL);
    if (search->is_folder)
        return FILE_FOUND_FOLDER;
    if (search->status == ZT_NOT_FOUND)
        return FILE_FOUND_NONE;
    if (search->status != ZT_OK) {
        problem_reply_error(request, &search->error);
        return FILE_FOUND_FAILED;
    }
    assert(search->file != NULL);
    search->identity = &search->file->identity;
    stored_file_reply(request, search->file);
    return FILE_FOUND;
}

static enum file_found open_file(struct request *request, struct file_search *search)
{
    assert(!search->was_opened);
    if (!store_path_is_served(path_of(search)))
        return FILE_FOUND_NONE;
    search->was_opened = true;
    search->is_seen = client_may_read_file(request, path_of(search));
    request_hold(request, search, release_search);
    (void)request_work(request, open_on_worker);
    return FILE_FOUND_PENDING;
}

/* --- both --- */

bool file_search_init(struct request *request, struct file_search *search, struct zt_text path)
{
    *search = (struct file_search){.path = request_copy(request, path.bytes, path.length),
                                   .length = path.length};
    if (search->path == NULL)
        problem_reply_no_memory(request);
    return search->path != NULL;
}

static bool is_of_model(const struct file_search *search)
{
    size_t name_length;
    unsigned rank;

    return search->length < MODEL_PATH_SIZE && model_path_split(search->path, &name_length, &rank);
}

enum file_found file_search_run(struct request *request)
{
    struct file_search *search = request->context;
    struct generation *generation;

    if (search->was_opened)
        return take_opened(request, search);
    if (!is_of_model(search))
        return open_file(request, search);
    switch (catalog_find_path(request->server->catalog, path_of(search), request_waiter(request),
                              &generation)) {
    case CATALOG_PENDING:
        return FILE_FOUND_PENDING;
    case CATALOG_NOT_FOUND:
        return open_file(request, search);
    case CATALOG_UNAVAILABLE:
        problem_reply_unavailable(request, path_of(search));
        return FILE_FOUND_FAILED;
    case CATALOG_FOUND:
        break;
    }
    return take_generation(request, search, generation);
}
