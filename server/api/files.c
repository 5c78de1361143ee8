/* GET /files/{path}: sends a stored file of any kind, by its path below the root, for tools that
 * read files. Files with a model's extension come from the catalog, even if they cannot be read as
 * models; all others are opened for each request. */
#include <assert.h>
#include <string.h>

#include "api/file_access.h"
#include "api/handlers.h"
#include "api/resolve.h"
#include "api/stored_reply.h"
#include "catalog/catalog.h"
#include "http/exchange/authorize.h"
#include "http/exchange/problem.h"
#include "http/fields/uri.h"

/* "file" and NUL, with room. */
#define TAG_SUFFIX_SIZE 8

/* A file that a worker opens. */
struct opening {
    const char *path; /* copy of names[0], with NUL */
    bool is_seen;
    bool is_folder;
    enum zt_status status;
    struct zt_error error;
    struct stored_file *file; /* NULL: not open */
};

static enum outcome reply_no_file(struct request *request)
{
    return problem_reply(request, PROBLEM_NOT_FOUND, "there is no stored file at this path");
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
static enum outcome reply_generation(struct request *request, struct generation *generation)
{
    struct representation *reply = &request->reply;
    char etag[GENERATION_ETAG_SIZE + TAG_SUFFIX_SIZE];

    request->generation = generation;
    request->is_unwritten = generation_is_unwritten;
    request_hold(request, generation, generation_release);
    if (!sees_generation(request, generation) || generation_is_split(generation))
        return reply_no_file(request);
    if (generation->source == NULL)
        return problem_reply_error(request, generation->error);
    generation_etag(generation, "file", etag, sizeof(etag));
    reply->etag = request_copy(request, etag, strlen(etag));
    reply->last_modified = generation_modified(generation);
    reply->cache_control = "no-cache";
    reply->media_type = "application/octet-stream";
    reply->ranges = true;
    reply->lasting = true;
    add_sha256(request, generation);
    representation_source(reply, generation->source, 0, zt_source_size(generation->source));
    return OUTCOME_READY;
}

/* --- other files --- */

static void release_opening(void *thing)
{
    struct opening *opening = thing;

    stored_file_close(opening->file);
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
    struct opening *opening = request->context;
    struct server *server = request->server;

    assert(opening->file == NULL);
    opening->status = ZT_NOT_FOUND;
    if (opening->is_seen)
        opening->status =
            stored_file_open(server, request->names[0], &opening->file, &opening->error);
    if (opening->status == ZT_NOT_FOUND && authorize_sees_folder(request, request->names[0]))
        opening->is_folder = server->store->ops->walk(server->store, opening->path, false,
                                                      stop_at_once, NULL, NULL) == ZT_OK;
}

/* The location is relative, so that it is also correct if a proxy puts a prefix before the path.
 * "./" keeps a name with a colon from being a scheme. */
static enum outcome reply_to_folder(struct request *request, struct zt_text name)
{
    struct href href;
    const char *location;

    href_init(&href);
    href_plain(&href, "./");
    href_segment(&href, name);
    href_plain(&href, "/");
    location = href.failed ? NULL : request_copy(request, href.text, href.length);
    href_free(&href);
    if (location == NULL)
        return problem_reply_no_memory(request);
    reply_empty(request, 308);
    representation_field(&request->reply, "Location", location);
    request->reply.cache_control = "no-cache";
    return OUTCOME_READY;
}

static struct zt_text last_part(struct zt_text path)
{
    const char *slash = memrchr(path.bytes, '/', path.length);
    const size_t before = slash != NULL ? (size_t)(slash + 1 - path.bytes) : 0;

    return (struct zt_text){path.bytes + before, path.length - before};
}

static enum outcome reply_opened(struct request *request, struct opening *opening)
{
    struct representation *reply = &request->reply;
    const struct stored_file *file = opening->file;
    char etag[STORED_FILE_ETAG_SIZE];

    if (opening->is_folder)
        return reply_to_folder(request, last_part(request->names[0]));
    if (opening->status == ZT_NOT_FOUND)
        return reply_no_file(request);
    if (opening->status == ZT_UNAVAILABLE || opening->status == ZT_STALE)
        return problem_reply(request, PROBLEM_STORE_UNAVAILABLE, STORE_UNAVAILABLE_DETAIL);
    if (opening->status != ZT_OK)
        return problem_reply_error(request, &opening->error);
    assert(file != NULL);
    stored_file_etag(file->path, &file->identity, etag);
    stored_file_reply(request, file);
    reply->etag = request_copy(request, etag, strlen(etag));
    reply->media_type = stored_media_type(request->names[0]);
    stored_reply_fields(request);
    return OUTCOME_READY;
}

static enum outcome open_file(struct request *request)
{
    struct opening *opening;

    if (!store_path_is_served(request->names[0]))
        return reply_no_file(request);
    opening = request_allocate(request, sizeof(*opening));
    if (opening == NULL)
        return problem_reply_no_memory(request);
    *opening = (struct opening){
        .path = request_copy(request, request->names[0].bytes, request->names[0].length)};
    if (opening->path == NULL)
        return problem_reply_no_memory(request);
    opening->is_seen =
        client_may_read_file(request, (struct zt_text){opening->path, request->names[0].length});
    request->context = opening;
    request_hold(request, opening, release_opening);
    return request_work(request, open_on_worker);
}

static bool is_of_model(const struct request *request)
{
    char path[MODEL_PATH_SIZE];
    size_t name_length;
    unsigned rank;

    if (request->names[0].length >= sizeof(path))
        return false;
    memcpy(path, request->names[0].bytes, request->names[0].length);
    path[request->names[0].length] = '\0';
    return model_path_split(path, &name_length, &rank);
}

enum outcome files_get(struct request *request)
{
    struct generation *generation;

    if (request->context != NULL)
        return reply_opened(request, request->context);
    if (!is_of_model(request))
        return open_file(request);
    switch (catalog_find_path(request->server->catalog, request->names[0], request_waiter(request),
                              &generation)) {
    case CATALOG_PENDING:
        return OUTCOME_WAITING;
    case CATALOG_NOT_FOUND:
        return open_file(request);
    case CATALOG_UNAVAILABLE:
        return problem_reply(request, PROBLEM_STORE_UNAVAILABLE, STORE_UNAVAILABLE_DETAIL);
    case CATALOG_FOUND:
        break;
    }
    return reply_generation(request, generation);
}

enum outcome files_redirect(struct request *request)
{
    return reply_to_folder(request, zt_text_from("files"));
}
