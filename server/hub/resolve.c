/* Sends a file of a repository, from exactly the requested version: clients resume downloads
 * without checking that the file is the same, so a pinned address never returns other bytes. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/stored_reply.h"
#include "base/server.h"
#include "http/exchange/router.h"
#include "http/fields/uri.h"
#include "hub/handlers.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "hub/pointer.h"
#include "hub/version_views.h"
#include "tree/stored_file.h"
#include "views/view_reply.h"

struct resolve {
    struct hub_request hub; /* first */
    const struct hub_file *entry;
    bool was_opened;
    unsigned looks;        /* number of lookups of a version that has the file */
    enum zt_status status; /* result of opening it; ZT_STALE: it is not the version's any more */
    struct stored_file *file;
    struct zt_error error;
    struct view_reply view;
};

/* Python clients refuse to fetch more over plain HTTP, according to the length in the response to
 * HEAD. They ignore the length in the response to GET. */
#define TOLD_BYTES_MAX UINT64_C(50000000000)

/* A file that changes continuously may differ from each new list. After this many tries, that is
 * rare. */
#define LOOKS_MAX 4
/* For a commit: a file with another time may still have the same bytes. */
#define LOOKS_PINNED_MAX 2

static bool is_pinned(const struct resolve *resolve)
{
    return hub_revision_of(resolve->hub.target.revision) == HUB_REVISION_COMMIT;
}

/* Returns true if opening the file needs a request to the store. */
static bool is_remote(const struct request *request, const struct resolve *resolve)
{
    return !store_has_locally(request->server->store, resolve->hub.target.repo);
}

/* --- on a worker --- */

/* Opens the file if it still is the version's file. */
static void open_entry(struct request *request, struct resolve *resolve)
{
    const struct hub_version *version = resolve->hub.version;
    char path[MODEL_PATH_SIZE];
    struct zt_text text = {path, 0};

    assert(resolve->file == NULL && resolve->entry != NULL);
    text.length =
        (size_t)snprintf(path, sizeof(path), "%s/%s", version->folder, resolve->entry->path);
    resolve->status = text.length < sizeof(path)
                          ? stored_file_open(request->server, text, &resolve->file, &resolve->error)
                          : ZT_NOT_FOUND;
    if (resolve->status != ZT_OK ||
        store_identity_equal(&resolve->file->identity, &resolve->entry->identity))
        return;
    stored_file_close(resolve->file);
    resolve->file = NULL;
    resolve->status = ZT_STALE;
}

static void open_file(struct request *request)
{
    struct resolve *resolve = request->context;

    open_entry(request, resolve);
}

static bool is_gone(const struct resolve *resolve)
{
    return resolve->status == ZT_NOT_FOUND || resolve->status == ZT_STALE;
}

static enum outcome reply_not_open(struct request *request, struct resolve *resolve)
{
    if (is_gone(resolve)) {
        /* The current version is another one. */
        hub_repos_changed(request->server->hub);
        return hub_reply_no_revision(request);
    }
    return hub_reply_error(request, &resolve->error);
}

/* Looks up the current version again, a few times. */
static enum outcome find_again(struct request *request, struct resolve *resolve)
{
    if (!is_gone(resolve) ||
        ++resolve->looks >= (is_pinned(resolve) ? LOOKS_PINNED_MAX : LOOKS_MAX))
        return reply_not_open(request, resolve);
    resolve->was_opened = false;
    return hub_find_again(request, &resolve->hub);
}

/* --- the response --- */

static void add_commit(struct request *request, const struct resolve *resolve)
{
    const char *commit = hub_commit(request, &resolve->hub);

    if (commit != NULL)
        representation_field(&request->reply, "X-Repo-Commit", commit);
}

/* Clients that request the first byte of an empty file, or all bytes from the first, accept only a
 * partial response, although the file has no bytes. */
static void reply_empty_part(struct request *request)
{
    struct representation *reply = &request->reply;

    reply->status = 206;
    reply->ranges = false;
    representation_field(reply, "Accept-Ranges", "bytes");
    representation_field(reply, "Content-Range", "bytes 0-0/0");
}

static bool wants_first_byte(struct request *request)
{
    const char *range = request_header(request, "Range");

    return request->method == METHOD_GET && range != NULL &&
           (strcmp(range, "bytes=0-0") == 0 || strcmp(range, "bytes=0-") == 0);
}

/* Finishes the response for stored files and views. */
static enum outcome finish_file(struct request *request, const struct resolve *resolve)
{
    struct representation *reply = &request->reply;
    const struct hub_file *entry = resolve->entry;

    reply->etag = request_print(request, "\"%s\"", entry->etag);
    reply->cache_control = "no-cache";
    reply->hides_length = entry->identity.size_bytes > TOLD_BYTES_MAX;
    /* A hash that only comes from a file's name is good enough for an ETag, but not for a
     * digest. */
    if (entry->has_sha256 && !entry->is_stated) {
        reply->has_sha256 = true;
        memcpy(reply->sha256, entry->sha256, sizeof(reply->sha256));
    }
    add_commit(request, resolve);
    return OUTCOME_READY;
}

static bool is_raw(const struct request *request)
{
    return strstr(request->route->pattern, "/raw/") != NULL;
}

/* Returns true if the response should be the pointer that git has. Clients that request ranges want
 * the file itself. */
static bool wants_pointer(struct request *request, const struct resolve *resolve)
{
    return is_raw(request) && request_header(request, "Range") == NULL &&
           hub_pointer_is_for(resolve->entry);
}

/* Returns the pointer's own hash; NULL if out of memory. */
static const char *pointer_etag(struct request *request, const struct resolve *resolve)
{
    char oid[HUB_COMMIT_SIZE];
    size_t length;

    hub_file_oid(resolve->entry, oid, &length);
    return request_print(request, "\"%s\"", oid);
}

static enum outcome reply_pointer(struct request *request, const struct resolve *resolve)
{
    struct representation *reply = &request->reply;
    char text[HUB_POINTER_SIZE];
    const size_t length = hub_pointer_print(resolve->entry, text);
    const char *copy = request_copy(request, text, length);

    if (copy == NULL)
        return problem_reply_no_memory(request);
    representation_memory(reply, copy, length);
    reply->media_type = "text/plain; charset=utf-8";
    reply->etag = pointer_etag(request, resolve);
    reply->cache_control = "no-cache";
    add_commit(request, resolve);
    return OUTCOME_READY;
}

static enum outcome reply_file(struct request *request, struct resolve *resolve)
{
    if (wants_pointer(request, resolve))
        return reply_pointer(request, resolve);
    stored_file_reply(request, resolve->file);
    finish_file(request, resolve);
    if (resolve->entry->identity.size_bytes == 0 && wants_first_byte(request))
        reply_empty_part(request);
    return OUTCOME_READY;
}

/* --- views --- */

/* Holds the version of the model from which a view is made. Returns false if the handler should
 * return *out_outcome. */
static bool find_model(struct request *request, struct resolve *resolve, enum outcome *out_outcome)
{
    *out_outcome = OUTCOME_READY;
    switch (view_find_model(request, resolve->entry->view)) {
    case VIEW_MODEL_FOUND:
        return true;
    case VIEW_MODEL_PENDING:
        *out_outcome = OUTCOME_WAITING;
        break;
    case VIEW_MODEL_STALE:
        resolve->status = ZT_STALE;
        *out_outcome = find_again(request, resolve);
        break;
    case VIEW_MODEL_UNAVAILABLE:
        resolve->status = zt_fail(&resolve->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                                  "the object store does not respond");
        reply_not_open(request, resolve);
        break;
    }
    return false;
}

static void write_index(struct request *request)
{
    view_reply_write_index(request, &((const struct resolve *)request->context)->view);
}

static enum outcome reply_view(struct request *request, struct resolve *resolve)
{
    enum outcome outcome;

    if (request->generation == NULL && !find_model(request, resolve, &outcome))
        return outcome;
    if (wants_pointer(request, resolve))
        return reply_pointer(request, resolve);
    resolve->view.view = resolve->entry->view;
    resolve->view.part = resolve->entry->part;
    resolve->view.write_index = write_index;
    outcome = view_reply(request, &resolve->view);
    return outcome == OUTCOME_READY && !request->replied ? finish_file(request, resolve) : outcome;
}

/* --- the current version --- */

/* Redirects to the same file of the commit, so that later range requests get the same version. The
 * response already has the file's metadata, which some clients look for here. */
static enum outcome reply_pinned(struct request *request, const struct resolve *resolve)
{
    const struct hub_file *entry = resolve->entry;
    const char *commit = hub_commit(request, &resolve->hub);
    struct representation *reply = &request->reply;
    struct href href;

    assert(!is_pinned(resolve));
    href_init(&href);
    href_plain(&href, request->server->config->base_path);
    href_plain(&href, "/");
    href_path(&href, resolve->hub.target.repo);
    href_plain(&href, is_raw(request) ? "/raw/" : "/resolve/");
    href_plain(&href, commit != NULL ? commit : "");
    href_plain(&href, "/");
    href_path(&href, zt_text_from(entry->path));
    reply_empty(request, 307);
    representation_field(reply, "Location",
                         href.failed ? NULL : request_print(request, "%s", href.text));
    href_free(&href);
    reply->cache_control = "no-cache";
    add_commit(request, resolve);
    if (wants_pointer(request, resolve)) {
        reply->etag = pointer_etag(request, resolve);
        return OUTCOME_READY;
    }
    reply->etag = request_print(request, "\"%s\"", entry->etag);
    if (entry->identity.size_bytes <= TOLD_BYTES_MAX)
        representation_field(reply, "X-Linked-Size",
                             request_print(request, "%" PRIu64, entry->identity.size_bytes));
    representation_field(reply, "X-Linked-Etag", reply->etag);
    return OUTCOME_READY;
}

/* --- the handler --- */

static enum outcome reply_opened(struct request *request, struct resolve *resolve)
{
    if (resolve->status != ZT_OK)
        return find_again(request, resolve);
    return is_pinned(resolve) ? reply_file(request, resolve) : reply_pinned(request, resolve);
}

static void release_file(void *thing)
{
    stored_file_close(((struct resolve *)thing)->file);
}

/* Returns false if it has replied. */
static bool begin(struct request *request)
{
    struct resolve *resolve;

    if (request->context != NULL)
        return true;
    resolve = request_new_context(request, sizeof(*resolve));
    if (resolve == NULL)
        return false;
    request_hold(request, resolve, release_file);
    return true;
}

enum outcome hub_resolve_get(struct request *request)
{
    enum outcome outcome = OUTCOME_READY;
    struct resolve *resolve;

    if (!begin(request))
        return OUTCOME_READY;
    resolve = request->context;
    if (resolve->was_opened)
        return reply_opened(request, resolve);
    if (hub_find(request, &outcome) == NULL)
        return outcome;
    resolve->entry = hub_version_find(resolve->hub.version, resolve->hub.target.path);
    if (resolve->entry == NULL)
        resolve->entry = version_views_second(resolve->hub.version, resolve->hub.target.path);
    if (resolve->entry == NULL || !hub_sees_file(request, resolve->hub.target.repo, resolve->entry))
        return hub_reply_no_entry(request, hub_commit(request, &resolve->hub));
    if (!is_pinned(resolve) && (resolve->entry->view != NULL || is_remote(request, resolve)))
        return reply_pinned(request, resolve);
    if (resolve->entry->view != NULL)
        return reply_view(request, resolve);
    resolve->was_opened = true;
    return request_work(request, open_file);
}
