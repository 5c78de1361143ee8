/* Describes a repository: its commit and the names of its files. */
#include "hub/repo_info.h"

#include "base/server.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_request.h"
#include "hub/repo_index.h"

static enum outcome reply(struct request *request,
                          void (*write)(struct request *request, struct hub_request *hub))
{
    enum outcome outcome;
    struct hub_request *hub = hub_find_and_write(request, write, &outcome);

    return hub != NULL ? hub_reply_json(request, hub) : outcome;
}

/* --- the repository --- */

static void write_sibling(struct json *json, const struct hub_file *file, bool with_blobs)
{
    char oid[HUB_COMMIT_SIZE];
    size_t pointer_length;

    json_object_begin(json);
    json_string_member(json, "rfilename", file->path);
    if (with_blobs) {
        hub_file_oid(file, oid, &pointer_length);
        json_key_string(json, "size");
        json_uint(json, file->identity.size_bytes);
        json_string_member(json, "blobId", oid);
        hub_json_lfs(json, file);
    }
    json_object_end(json);
}

void repo_info_siblings(struct json *json, const struct request *request, struct zt_text repo,
                        const struct hub_version *version, bool with_blobs)
{
    json_key_string(json, "siblings");
    json_array_begin(json);
    for (size_t i = 0; i < version->count; i++)
        if (hub_sees_file(request, repo, &version->files[i]))
            write_sibling(json, &version->files[i], with_blobs);
    json_array_end(json);
}

/* A summary of the files that the client may see. */
struct summary {
    unsigned tags;
    uint64_t size_bytes;
    int64_t modified_ns;
};

static struct summary summarize(const struct request *request, const struct hub_request *hub)
{
    const struct hub_version *version = hub->version;
    const bool has_views = request->server->config->hub.views && !version->is_stated;
    struct summary summary = {.tags = 0};

    for (size_t i = 0; i < version->count; i++) {
        const struct hub_file *file = &version->files[i];

        if (!hub_sees_file(request, hub->target.repo, file))
            continue;
        if (file->view == NULL)
            summary.tags |= hub_tags_of(file->path, has_views);
        summary.size_bytes += file->identity.size_bytes;
        if (file->identity.modified_ns > summary.modified_ns)
            summary.modified_ns = file->identity.modified_ns;
    }
    return summary;
}

static void write_repo(struct request *request, struct hub_request *hub)
{
    const struct summary summary = summarize(request, hub);
    struct json *json = hub->json;

    json_object_begin(json);
    hub_json_repo(json, hub->target.repo, summary.modified_ns);
    json_string_member(json, "sha", hub_commit(request, hub));
    hub_json_tags(json, summary.tags);
    json_key_string(json, "usedStorage");
    json_uint(json, summary.size_bytes);
    repo_info_siblings(json, request, hub->target.repo, hub->version, hub_switch(request, "blobs"));
    json_object_end(json);
}

enum outcome hub_repo_get(struct request *request)
{
    return reply(request, write_repo);
}

/* --- whether a client may read it --- */

static void write_nothing(struct request *request, struct hub_request *hub)
{
    (void)request;
    json_object_begin(hub->json);
    json_object_end(hub->json);
}

enum outcome hub_auth_get(struct request *request)
{
    return reply(request, write_nothing);
}
