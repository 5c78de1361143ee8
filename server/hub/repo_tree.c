/* Lists the files and folders of a repository: of one folder, or all below it. */
#include <assert.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/base_url.h"
#include "http/fields/uri.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"

/* Entries per response. Some clients never request the next page. */
#define PAGE_ENTRIES 5000

struct listing {
    struct hub_request hub; /* first */
    struct request *request;
    const char *folder; /* ends with a slash, or empty */
    size_t folder_length;
    bool is_deep;
    bool has_commit;
    const char *commit;   /* for each entry; or NULL */
    struct zt_text after; /* the last entry of the previous page; empty: from the start */
    const char *before;   /* the last file seen; "" at first */
    size_t limit;         /* of count */
    size_t count;
    struct zt_text last; /* the last entry written */
    bool has_more;
};

/* Counts an entry, and returns true if it belongs to this page. Folders end with a slash here, so
 * entries have the order of the files, with "a.txt" before "a/b". */
static bool is_on_page(struct listing *listing, struct zt_text path)
{
    assert(listing->count <= listing->limit);
    if (listing->after.length > 0 && zt_text_compare(path, listing->after) <= 0)
        return false;
    if (listing->count == listing->limit) {
        listing->has_more = true;
        return false;
    }
    listing->count++;
    listing->last = path;
    return true;
}

/* Writes the folders that contain this file and no earlier file that the client may see. */
static void write_folders(struct listing *listing, size_t at)
{
    const struct hub_version *version = listing->hub.version;
    const char *path;
    const char *slash;

    assert(at < version->count);
    path = version->files[at].path;
    slash = path + listing->folder_length;
    while ((slash = strchr(slash, '/')) != NULL) {
        const size_t length = (size_t)(slash - path);

        if (strncmp(listing->before, path, length + 1) != 0 &&
            is_on_page(listing, (struct zt_text){path, length + 1}))
            hub_json_folder(listing->hub.json, version, at, length, listing->commit);
        if (!listing->is_deep)
            break;
        slash++;
    }
    listing->before = path;
}

static void write_entries(struct listing *listing)
{
    const struct hub_version *version = listing->hub.version;
    const struct zt_text folder = {listing->folder, listing->folder_length};

    for (size_t i = hub_version_lower_bound(version, folder);
         i < version->count && !listing->has_more; i++) {
        const struct hub_file *file = &version->files[i];

        if (!zt_text_starts_with(zt_text_from(file->path), folder))
            break;
        if (!hub_sees_file(listing->request, listing->hub.target.repo, file))
            continue;
        write_folders(listing, i);
        if ((listing->is_deep || strchr(file->path + folder.length, '/') == NULL) &&
            is_on_page(listing, zt_text_from(file->path)))
            hub_json_file(listing->hub.json, file, listing->commit);
    }
}

/* The link is absolute: clients take a relative one for an error, or for the end. */
static void add_next(struct request *request, const struct listing *listing)
{
    const char *base = request_base_url(request);
    struct zt_text path;
    struct href cursor;

    if (base == NULL || target_path(request_target(request), &path) != TARGET_PATH)
        return;
    path = path_below(path, request->server->config->base_path);
    href_init(&cursor);
    href_segment(&cursor, listing->last);
    if (!cursor.failed)
        representation_field(
            &request->reply, "Link",
            request_print(request,
                          "<%s%.*s?recursive=%s&expand=%s&limit=%zu&cursor=%s>; rel=\"next\"", base,
                          (int)path.length, path.bytes, listing->is_deep ? "true" : "false",
                          listing->commit != NULL ? "true" : "false", listing->limit, cursor.text));
    href_free(&cursor);
    request->reply.vary = BASE_URL_VARY;
}

/* Returns the folder with its slash; empty for the whole repository. Returns NULL if it has
 * replied. */
static const char *read_folder(struct request *request, const struct hub_request *hub)
{
    struct zt_text path = hub->target.path;
    const char *folder;

    if (path.length > 0 && path.bytes[path.length - 1] == '/')
        path.length--;
    if (path.length == 0)
        return "";
    folder = request_print(request, "%.*s/", (int)path.length, path.bytes);
    if (folder == NULL)
        problem_reply_no_memory(request);
    return folder;
}

static void write_tree(struct request *request, struct hub_request *hub)
{
    struct listing *listing = request->context;

    if (listing->has_commit)
        listing->commit = hub_commit(request, hub);
    json_array_begin(hub->json);
    write_entries(listing);
    json_array_end(hub->json);
}

/* Returns NULL if it has replied. */
static struct listing *begin(struct request *request)
{
    struct listing *listing = request_allocate(request, sizeof(*listing));

    if (listing == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    *listing = (struct listing){.request = request, .before = ""};
    request->context = listing;
    if (!hub_target_read(request, &listing->hub.target))
        return NULL;
    listing->folder = read_folder(request, &listing->hub);
    if (listing->folder == NULL)
        return NULL;
    listing->folder_length = strlen(listing->folder);
    listing->is_deep = hub_switch(request, "recursive");
    listing->has_commit = hub_switch(request, "expand");
    listing->limit = hub_limit(request, PAGE_ENTRIES, PAGE_ENTRIES);
    (void)request_query(request, "cursor", 0, &listing->after);
    return listing;
}

enum outcome hub_tree_get(struct request *request)
{
    struct listing *listing = request->context != NULL ? request->context : begin(request);
    enum outcome outcome;

    if (listing == NULL)
        return OUTCOME_READY;
    if (hub_find_and_write(request, write_tree, &outcome) == NULL)
        return outcome;
    if (listing->count == 0 && listing->after.length == 0 && listing->folder_length > 0)
        return hub_reply_no_entry(request, hub_commit(request, &listing->hub));
    hub_reply_json(request, &listing->hub);
    if (!request->replied && listing->has_more)
        add_next(request, listing);
    return OUTCOME_READY;
}
