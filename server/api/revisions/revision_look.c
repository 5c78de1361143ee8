#include "api/revisions/revision_look.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_reply.h"
#include "api/revisions/revision_entry.h"
#include "store/versions/versions_store.h"

enum { NAME_MODEL, NAME_REVISION };

static void clear(struct revision_look *look)
{
    free(look->commit);
    free(look->refs);
    look->commit = NULL;
    look->refs = NULL;
    look->ref_count = 0;
    look->is_mirrored = false;
}

static void release(void *thing)
{
    clear(thing);
}

void *revision_look_new(struct request *request, size_t size)
{
    struct revision_look *look = request_allocate(request, size);

    assert(size >= sizeof(*look));
    if (look == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    memset(look, 0, size);
    look->server = request->server;
    look->history = store_history(request->server->store);
    look->model = request->names[NAME_MODEL];
    look->name = request->names[NAME_REVISION];
    if (!model_name_is_valid(look->model)) {
        problem_reply(request, PROBLEM_INVALID_NAME, "this cannot be the name of a model");
        return NULL;
    }
    request->context = look;
    request_hold(request, look, release);
    return look;
}

/* --- on a worker --- */

static enum zt_status read_kept(struct revision_look *look)
{
    enum zt_status status;
    size_t count = 0;

    history_repo_of_model(look->history, look->model, &look->repo);
    status = history_find(look->history, &look->repo, look->name, &look->found, &look->error);
    if (status == ZT_OK)
        status = history_list(look->history, &look->repo,
                              &(struct history_range){look->name, UINT64_MAX, 1}, &look->commit,
                              &count, &look->error);
    if (status == ZT_OK)
        status =
            history_refs(look->history, &look->repo, &look->refs, &look->ref_count, &look->error);
    if (status == ZT_OK && count == 0)
        status = zt_fail(&look->error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the commit is gone");
    look->ref = (struct history_ref){.is_tag = false};
    for (size_t i = 0; status == ZT_OK && i < look->ref_count; i++)
        if (look->refs[i].is_tag == look->found.is_tag &&
            strcmp(look->refs[i].name, look->found.ref) == 0)
            look->ref = look->refs[i];
    return status;
}

void revision_look_read(struct revision_look *look)
{
    clear(look);
    look->status = ZT_NOT_FOUND;
    if (look->history != NULL)
        look->status = read_kept(look);
    if (look->status != ZT_NOT_FOUND)
        return;
    look->status = revision_look_up(look->server, look->model, REVISION_OF_MODEL, look->name,
                                    &look->mirrored, &look->error);
    look->is_mirrored = look->status == ZT_OK;
}

/* --- the answer --- */

static const char *kind_of(const struct revision_look *look)
{
    if (look->found.is_branch)
        return "branch";
    return look->found.is_tag ? "tag" : "commit";
}

static void write_kept(struct json *json, const struct request *request,
                       const struct revision_look *look)
{
    const struct revision_entry entry = {.base_path = request->server->config->base_path,
                                         .repo = &look->repo,
                                         .model = look->model,
                                         .refs = look->refs,
                                         .ref_count = look->ref_count,
                                         .shows_notes = revision_shows_notes(request, &look->repo)};

    revision_write_text(json, "kind", kind_of(look));
    revision_write_text(json, "commit", look->found.commit);
    revision_write_text(json, "message", look->ref.message);
    json_key_string(json, "revision");
    revision_entry_write(json, &entry, look->commit);
}

static void write_mirrored(struct json *json, const struct request *request,
                           const struct revision_look *look)
{
    struct store_revision revision = {.is_current = zt_text_is(look->name, HISTORY_MAIN)};

    memcpy(revision.commit, look->mirrored.commit, sizeof(revision.commit));
    revision_write_text(json, "kind",
                        zt_text_is(look->name, revision.commit) ? "commit" : "branch");
    revision_write_text(json, "commit", revision.commit);
    revision_write_text(json, "message", NULL);
    json_key_string(json, "revision");
    revision_entry_write_mirrored(json, request->server->config->base_path, &revision,
                                  zt_text_from(look->mirrored.name), look->name);
}

enum outcome revision_look_reply(struct request *request, struct revision_look *look,
                                 unsigned status)
{
    const char *commit = look->is_mirrored ? look->mirrored.commit : look->found.commit;
    struct json *json = json_reply_new(request, false);

    assert(look->status == ZT_OK);
    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_key_string(json, "name");
    json_text(json, look->name);
    if (look->is_mirrored)
        write_mirrored(json, request, look);
    else
        write_kept(json, request, look);
    json_object_end(json);
    json_reply_send(request, json);
    if (json->failed)
        return OUTCOME_READY;
    request->reply.status = status;
    request->reply.etag = request_print(request, "\"%s\"", commit);
    request->reply.cache_control = "no-cache";
    request->commit = commit;
    return OUTCOME_READY;
}
