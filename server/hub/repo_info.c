/* What is told of a repository: itself with its files' names, its one branch, its one commit. */
#include "api/json_reply.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_request.h"
#include "hub/repo_index.h"

/* A JSON answer about a version. NULL: the handler returns *out_outcome. */
static struct json *begin(struct request *request, struct hub_request **out_hub,
                          enum outcome *out_outcome)
{
    *out_hub = hub_find(request, out_outcome);
    return *out_hub != NULL ? json_reply_new(request, false) : NULL;
}

static enum outcome finish(struct request *request, struct json *json)
{
    json_reply_send(request, json);
    if (!request->replied)
        request->reply.cache_control = "no-cache";
    return OUTCOME_READY;
}

/* --- the repository --- */

static void write_sibling(struct json *json, const struct hub_file *file, bool with_blobs)
{
    char oid[HUB_COMMIT_SIZE];
    size_t pointer_length;

    json_object_begin(json);
    hub_json_string(json, "rfilename", file->path);
    if (with_blobs) {
        hub_file_oid(file, oid, &pointer_length);
        json_key_string(json, "size");
        json_uint(json, file->identity.size_bytes);
        hub_json_string(json, "blobId", oid);
        hub_json_lfs(json, file);
    }
    json_object_end(json);
}

static void write_siblings(struct json *json, const struct request *request,
                           const struct hub_request *hub, bool with_blobs)
{
    json_key_string(json, "siblings");
    json_array_begin(json);
    for (size_t i = 0; i < hub->version->count; i++)
        if (hub_sees_file(request, hub->target.repo, hub->version->files[i].path))
            write_sibling(json, &hub->version->files[i], with_blobs);
    json_array_end(json);
}

static unsigned tags_of(const struct hub_version *version)
{
    unsigned tags = 0;
    unsigned tag;

    for (size_t i = 0; i < version->count; i++)
        if (hub_tag_of(version->files[i].path, &tag))
            tags |= 1U << tag;
    return tags;
}

enum outcome hub_repo_get(struct request *request)
{
    enum outcome outcome;
    struct hub_request *hub;
    struct json *json = begin(request, &hub, &outcome);

    if (json == NULL)
        return outcome;
    json_object_begin(json);
    hub_json_repo(json, hub->target.repo, hub->version->modified_ns);
    hub_json_string(json, "sha", hub_commit(request, hub));
    hub_json_tags(json, tags_of(hub->version));
    json_key_string(json, "usedStorage");
    json_uint(json, hub->version->size_bytes);
    write_siblings(json, request, hub, hub_switch(request, "blobs"));
    json_object_end(json);
    return finish(request, json);
}

/* --- branches, commits --- */

enum outcome hub_refs_get(struct request *request)
{
    enum outcome outcome;
    struct hub_request *hub;
    struct json *json = begin(request, &hub, &outcome);

    if (json == NULL)
        return outcome;
    json_object_begin(json);
    json_key_string(json, "branches");
    json_array_begin(json);
    json_object_begin(json);
    hub_json_string(json, "name", "main");
    hub_json_string(json, "ref", "refs/heads/main");
    hub_json_string(json, "targetCommit", hub->version->commit);
    json_object_end(json);
    json_array_end(json);
    json_key_string(json, "tags");
    json_raw(json, "[]", 2);
    json_key_string(json, "converts");
    json_raw(json, "[]", 2);
    json_object_end(json);
    return finish(request, json);
}

enum outcome hub_commits_get(struct request *request)
{
    enum outcome outcome;
    struct hub_request *hub;
    struct json *json = begin(request, &hub, &outcome);
    char date[HUB_DATE_SIZE];

    if (json == NULL)
        return outcome;
    hub_date(hub->version->modified_ns, date);
    json_array_begin(json);
    json_object_begin(json);
    hub_json_string(json, "id", hub_commit(request, hub));
    hub_json_string(json, "title", HUB_COMMIT_TITLE);
    hub_json_string(json, "message", "");
    json_key_string(json, "authors");
    json_raw(json, "[{\"user\":\"ztserve\"}]", 20);
    hub_json_string(json, "date", date);
    json_object_end(json);
    json_array_end(json);
    return finish(request, json);
}
