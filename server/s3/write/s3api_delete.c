/* DeleteObject and DeleteObjects. A key that does not exist is deleted. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/json_body.h"
#include "http/exchange/s3api_error.h"
#include "http/exchange/s3api_fields.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_request.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_body.h"
#include "s3/write/s3api_delete_xml.h"
#include "s3/write/s3api_write_checks.h"
#include "upload/shared/recorded.h"
#include "upload/shared/removal.h"
#include "upload/shared/write_checks.h"

/* Removes a file, and reports failed durability. Returns true if it was removed. On a worker. */
static bool remove_file(struct server *server, const char *path,
                        const struct preconditions *preconditions, struct failure *failure)
{
    struct remains remains = {.is_unsynced = false};
    bool removed;

    assert(path[0] != '\0' && !failure->is_set);
    removed = removal_of_file(server, path, preconditions, &remains, failure);
    if (removed) {
        s3api_meta_forget(server->s3_meta, path);
        (void)remains_fail(&remains, "removed", failure);
    }
    /* Only a condition needs the object to exist. */
    if (failure->is_set && failure->problem == PROBLEM_NOT_FOUND && preconditions->if_match == NULL)
        *failure = (struct failure){.is_set = false};
    return removed;
}

/* --- one object --- */

struct deletion {
    char path[MODEL_NAME_MAX + 1];
    struct preconditions preconditions; /* the texts belong to the request, which waits */
    bool was_run;
    char commit[HISTORY_COMMIT_SIZE];
    struct failure failure;
};

void s3api_delete_object_begin(struct request *request)
{
    struct zt_text key;
    bool is_folder;
    struct deletion *deletion;

    if (s3api_refuse_unsupported(request) || s3api_refuse_key(request, &key, &is_folder) ||
        !s3api_finds_version(request) || is_folder)
        return;
    deletion = request_new_context(request, sizeof(*deletion));
    if (deletion == NULL)
        return;
    assert(key.length < sizeof(deletion->path));
    memcpy(deletion->path, key.bytes, key.length);
    deletion->preconditions = s3api_preconditions(request);
    (void)write_refuse_tags(request, deletion->preconditions.if_none_match);
}

static void work_on_one(struct request *request)
{
    struct deletion *deletion = request->context;
    struct recorded recorded;
    bool removed;

    if (!recorded_begin(&recorded, request->server, deletion->path, true, &deletion->failure))
        return;
    removed =
        remove_file(request->server, deletion->path, &deletion->preconditions, &deletion->failure);
    recorded_end(&recorded, removed, request->client, "Delete", deletion->path, deletion->commit);
}

static enum outcome run(struct request *request, void (*work)(struct request *request))
{
    return recorded_is_long(request->server) ? request_work_long(request, work)
                                             : request_work(request, work);
}

enum outcome s3api_delete_object(struct request *request)
{
    struct deletion *deletion = request->context;

    if (deletion != NULL && !deletion->was_run) {
        deletion->was_run = true;
        return run(request, work_on_one);
    }
    if (deletion != NULL && deletion->failure.is_set)
        return failure_reply(request, &deletion->failure);
    reply_empty(request, 204);
    if (deletion != NULL)
        recorded_reply(request, deletion->commit);
    return OUTCOME_READY;
}

/* --- several objects --- */

struct deletions {
    struct s3api_document document; /* first (s3api_body.h) */
    struct s3api_delete_list list;
    struct xml_writer *xml;   /* the answer */
    struct recorded recorded; /* of the repository of the last removed keys */
    const char *removed;      /* one of these; NULL: none */
    size_t removed_count;
    bool was_run;
};

static void free_deletions(void *thing)
{
    struct deletions *deletions = thing;

    s3api_body_free(&deletions->document.body);
    s3api_delete_list_free(&deletions->list);
}

void s3api_delete_objects_begin(struct request *request)
{
    struct deletions *deletions;

    if (write_refuse_read_only(request) || !s3api_finds_bucket(request) ||
        json_body_refuse(request))
        return;
    deletions = request_new_context(request, sizeof(*deletions));
    if (deletions == NULL)
        return;
    request_hold(request, deletions, free_deletions);
    (void)s3api_document_begin(request);
}

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct deletions *deletions)
{
    struct zt_error error;
    enum zt_status status;

    if (!s3api_document_finish(request))
        return false;
    status = s3api_delete_xml_read(json_body_text(request), &deletions->list, &error);
    if (status == ZT_NO_MEMORY)
        problem_reply_no_memory(request);
    else if (status != ZT_OK)
        s3api_problem(request, S3API_MALFORMED_XML, "%s", error.message);
    return status == ZT_OK;
}

static void put_error(struct xml_writer *xml, const char *key, enum s3api_error error,
                      const char *message)
{
    xml_write_open(xml, "Error", NULL);
    xml_write_string(xml, "Key", key);
    xml_write_string(xml, "Code", s3api_error_code(error));
    xml_write_string(xml, "Message", message);
    xml_write_close(xml, "Error");
}

static void put_deleted(const struct deletions *deletions, const char *key)
{
    if (deletions->list.is_quiet)
        return;
    xml_write_open(deletions->xml, "Deleted", NULL);
    xml_write_string(deletions->xml, "Key", key);
    xml_write_close(deletions->xml, "Deleted");
}

/* Ends the commit of the last keys, which are of one repository. */
static void end_commit(const struct request *request, struct deletions *deletions)
{
    char commit[HISTORY_COMMIT_SIZE];
    char several[32];

    snprintf(several, sizeof(several), "%zu files", deletions->removed_count);
    recorded_end(&deletions->recorded, deletions->removed_count > 0, request->client, "Delete",
                 deletions->removed_count == 1 ? deletions->removed : several, commit);
    deletions->removed_count = 0;
}

static bool delete_recorded(const struct request *request, struct deletions *deletions,
                            const char *path, const struct preconditions *preconditions,
                            struct failure *failure)
{
    if (!recorded_covers(&deletions->recorded, request->server, path)) {
        end_commit(request, deletions);
        if (!recorded_begin(&deletions->recorded, request->server, path, true, failure))
            return false;
    }
    if (!remove_file(request->server, path, preconditions, failure))
        return false;
    deletions->removed = path;
    deletions->removed_count++;
    return true;
}

static void delete_one(struct request *request, struct deletions *deletions,
                       const struct s3api_named_object *object)
{
    const struct zt_text key = zt_text_from(object->key);
    const struct preconditions preconditions = {
        .if_match = s3api_quoted(request, object->etag),
        .write_etag = s3api_etag,
    };
    struct failure failure = {.is_set = false};

    if (object->has_version) {
        put_error(deletions->xml, object->key, S3API_NO_SUCH_VERSION, "the bucket has no versions");
        return;
    }
    if (object->has_condition) {
        put_error(deletions->xml, object->key, S3API_NOT_IMPLEMENTED,
                  "the only condition that this server supports is ETag");
        return;
    }
    /* No file can have another key. */
    if (!file_path_is_writable(key)) {
        put_deleted(deletions, object->key);
        return;
    }
    if (!authorize_sees_file(request, key)) {
        put_error(deletions->xml, object->key, S3API_ACCESS_DENIED,
                  "this client may not use a key of this name");
        return;
    }
    (void)delete_recorded(request, deletions, object->key, &preconditions, &failure);
    if (failure.is_set)
        put_error(deletions->xml, object->key, s3api_error_of(failure.problem),
                  failure.error.message);
    else
        put_deleted(deletions, object->key);
}

static void work_on_all(struct request *request)
{
    struct deletions *deletions = request->context;

    for (size_t i = 0; i < deletions->list.count; i++)
        delete_one(request, deletions, &deletions->list.objects[i]);
    end_commit(request, deletions);
}

enum outcome s3api_delete_objects(struct request *request)
{
    static const char root[] = "DeleteResult";
    struct deletions *deletions = request->context;

    if (!deletions->was_run) {
        deletions->was_run = true;
        if (!read_body(request, deletions))
            return OUTCOME_READY;
        deletions->xml = s3api_xml_new(request);
        if (deletions->xml == NULL)
            return OUTCOME_READY;
        s3api_xml_begin(deletions->xml, root);
        return request_work_long(request, work_on_all);
    }
    xml_write_close(deletions->xml, root);
    return s3api_xml_reply(request, 200, deletions->xml);
}
