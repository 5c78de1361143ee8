/* POST /{repo}.git/info/lfs/objects/batch: which objects to send, and to which addresses.
 * (https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/json_reply.h"
#include "base/hex.h"
#include "base/server.h"
#include "http/exchange/base_url.h"
#include "http/exchange/json_body.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/lfs_parts.h"
#include "hub/write/lfs_permit.h"
#include "hub/write/repo_current.h"
#include "hub/write/staged_objects.h"
#include "input/json_read.h"
#include "upload/shared/write_checks.h"

#define OBJECTS_MAX 1000
/* Maximum number of parts of all objects in a batch, because each part is an address. Further
 * objects are sent whole. */
#define PARTS_MAX 4000

struct wanted {
    uint8_t sha256[32];
    uint64_t length;
    bool is_there;
    uint64_t there_length; /* length of the existing file */
};

struct batch {
    char repo[HUB_REPO_SIZE];
    char client[CLIENT_SIZE];
    uint64_t line; /* the client's (access_line_of) */
    bool was_run;
    struct wanted *objects; /* sorted by SHA-256 during the lookup */
    size_t count;
    bool takes_parts;
    bool is_known;
    struct zt_error error;
    /* The response, held by the request. The worker that looks up existing objects writes it. */
    struct json *json;
    const char *base;
    const char *verify; /* the address */
    uint64_t expires;
    size_t part_count; /* of all objects */
    bool is_broken;    /* an address could not be made */
};

static void free_all(void *thing)
{
    struct batch *batch = thing;

    free(batch->objects);
}

void lfs_batch_begin(struct request *request)
{
    struct batch *batch;

    if (write_refuse_read_only(request) || hub_refuse_repo(request, request->names[0]) ||
        json_body_refuse(request))
        return;
    batch = request_new_context(request, sizeof(*batch));
    if (batch == NULL)
        return;
    snprintf(batch->repo, sizeof(batch->repo), "%.*s", (int)request->names[0].length,
             request->names[0].bytes);
    registry_client(request, batch->client);
    batch->line = access_line_of(request->access, batch->client);
    request_hold(request, batch, free_all);
}

/* --- the request --- */

/* Always returns false. */
static bool refuse(struct request *request, const char *why)
{
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", why);
    return false;
}

static bool read_object(const struct json_t *object, struct wanted *out_wanted)
{
    struct zt_text oid;

    if (object == NULL || json_member_text(object, "oid", &oid) != JSON_FOUND ||
        !zt_hex_read_lower(oid, out_wanted->sha256, 32))
        return false;
    return json_member_whole(object, "size", &out_wanted->length) == JSON_FOUND;
}

static bool read_objects(struct request *request, struct batch *batch, const struct json_t *list)
{
    const size_t count = list != NULL ? json_list_length(list) : 0;

    if (list == NULL || count > OBJECTS_MAX) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "a batch needs a list of at most %d objects", OBJECTS_MAX);
        return false;
    }
    batch->objects = calloc(count + 1, sizeof(*batch->objects));
    if (batch->objects == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    for (batch->count = 0; batch->count < count; batch->count++) {
        if (read_object(json_list_object(list, batch->count), &batch->objects[batch->count]))
            continue;
        problem_reply(
            request, PROBLEM_INVALID_REQUEST,
            "object %zu needs an oid of 64 lower-case hex digits and a whole number as size",
            batch->count);
        return false;
    }
    return true;
}

static bool offers(const struct json_t *object, const char *transfer)
{
    const struct json_t *list = json_member_list(object, "transfers");
    struct zt_text text;

    for (size_t i = 0; list != NULL && i < json_list_length(list); i++)
        if (json_list_text(list, i, &text) && zt_text_is(text, transfer))
            return true;
    return false;
}

static bool read_batch(struct request *request, struct batch *batch, const struct json_t *object)
{
    struct zt_text text;

    if (json_member_text(object, "operation", &text) != JSON_FOUND)
        return refuse(request, "a batch needs an operation");
    if (!zt_text_is(text, "upload")) {
        problem_reply(
            request, PROBLEM_NOT_IMPLEMENTED,
            "this server uses LFS only for uploads: download files from /%s/resolve/main/",
            batch->repo);
        return false;
    }
    if (json_member_exists(object, "hash_algo") && !json_member_is_null(object, "hash_algo") &&
        (json_member_text(object, "hash_algo", &text) != JSON_FOUND || !lfs_is_sha256(text)))
        return refuse(request, "objects must be named by their SHA-256");
    batch->takes_parts = offers(object, "multipart");
    return read_objects(request, batch, json_member_list(object, "objects"));
}

static bool read_body(struct request *request, struct batch *batch)
{
    struct json_t *object;
    bool is_read;

    if (json_body_refuse_received(request))
        return false;
    object = json_object_read(json_body_text(request), NULL);
    is_read = object != NULL ? read_batch(request, batch, object)
                             : refuse(request, "a batch must be a JSON object");
    json_object_free(object);
    return is_read;
}

/* --- existing objects --- */

static int compare_objects(const void *a, const void *b)
{
    const struct wanted *one = a;
    const struct wanted *other = b;

    return memcmp(one->sha256, other->sha256, sizeof(one->sha256));
}

/* Marks all objects with a file's bytes: an object may be listed twice. */
static void mark(struct batch *batch, const struct hub_file *file)
{
    struct wanted key;
    struct wanted *found;

    memcpy(key.sha256, file->sha256, sizeof(key.sha256));
    found = bsearch(&key, batch->objects, batch->count, sizeof(key), compare_objects);
    if (found == NULL)
        return;
    while (found > batch->objects && compare_objects(found - 1, &key) == 0)
        found--;
    for (; found < batch->objects + batch->count && compare_objects(found, &key) == 0; found++) {
        found->is_there = true;
        found->there_length = file->identity.size_bytes;
    }
}

static void look(struct request *request, struct batch *batch)
{
    struct hub_version *version;
    struct staged_asker asker;

    batch->is_known =
        repo_current_find(request->server, zt_text_from(batch->repo), &version, &batch->error);
    qsort(batch->objects, batch->count, sizeof(*batch->objects), compare_objects);
    for (size_t i = 0; version != NULL && i < version->count; i++)
        if (repo_current_may_read_bytes(request, batch->repo, &version->files[i]))
            mark(batch, &version->files[i]);
    hub_version_release(version);
    staged_asker_of(request, &asker);
    for (size_t i = 0; i < batch->count; i++) {
        const struct staged_wanted wanted = {batch->repo, batch->objects[i].sha256, &asker};

        if (staged_exists(request->server, &wanted, &batch->objects[i].there_length))
            batch->objects[i].is_there = true;
    }
}

/* --- the response --- */

static void put_href(const struct request *request, struct batch *batch, const char *key,
                     const struct lfs_permit *permit)
{
    char href[LFS_HREF_SIZE];

    if (lfs_permit_print(request->server->lfs_key, batch->base, permit, href))
        json_string_member(batch->json, key, href);
    else
        batch->is_broken = true;
}

static void put_part(struct request *request, struct batch *batch, struct lfs_permit *permit,
                     uint64_t part)
{
    char key[LFS_PART_KEY_SIZE];

    permit->part = part;
    lfs_part_key(part, key);
    put_href(request, batch, key, permit);
}

/* Clients read the length of the parts from one header field, and treat the other fields as
 * addresses. */
static void put_header(struct request *request, struct batch *batch, struct lfs_permit permit)
{
    char text[24];

    json_object_member(batch->json, "header");
    if (permit.part_length > 0) {
        const uint64_t count = lfs_part_count(permit.length, permit.part_length);

        snprintf(text, sizeof(text), "%llu", (unsigned long long)permit.part_length);
        json_string_member(batch->json, "chunk_size", text);
        for (uint64_t part = 1; part <= count; part++)
            put_part(request, batch, &permit, part);
    }
    json_object_end(batch->json);
}

/* Returns 0 if the object is sent whole. */
static uint64_t choose_part(const struct request *request, struct batch *batch, uint64_t length)
{
    const uint64_t wanted = (uint64_t)config_number(&request->server->config->hub.part_bytes);
    const uint64_t part = batch->takes_parts ? lfs_part_length(length, wanted) : 0;

    if (part == 0 || lfs_part_count(length, part) > PARTS_MAX - batch->part_count)
        return 0;
    batch->part_count += (size_t)lfs_part_count(length, part);
    return part;
}

static void put_actions(struct request *request, struct batch *batch, const struct wanted *object)
{
    struct lfs_permit permit = {
        .length = object->length, .expires = batch->expires, .line = batch->line};

    snprintf(permit.repo, sizeof(permit.repo), "%s", batch->repo);
    snprintf(permit.client, sizeof(permit.client), "%s", batch->client);
    zt_hex_write(permit.oid, object->sha256, 32);
    permit.part_length = choose_part(request, batch, object->length);
    json_object_member(batch->json, "actions");
    json_object_member(batch->json, "upload");
    put_href(request, batch, "href", &permit);
    put_header(request, batch, permit);
    json_object_end(batch->json);
    json_object_member(batch->json, "verify");
    json_string_member(batch->json, "href", batch->verify);
    json_object_end(batch->json);
    json_object_end(batch->json);
}

static void put_error(struct json *json, unsigned code, const char *message)
{
    json_object_member(json, "error");
    json_uint_member(json, "code", code);
    json_string_member(json, "message", message);
    json_object_end(json);
}

static void put_object(struct request *request, struct batch *batch, const struct wanted *object)
{
    char oid[LFS_OID_SIZE];

    zt_hex_write(oid, object->sha256, 32);
    json_object_begin(batch->json);
    json_string_member(batch->json, "oid", oid);
    json_uint_member(batch->json, "size", object->length);
    if (object->length > (uint64_t)config_number(&request->server->config->upload.max_bytes))
        put_error(batch->json, 413, "the file is larger than this server accepts");
    else if (object->is_there && object->there_length != object->length)
        put_error(batch->json, 422, "the object with this oid has another size");
    else if (!object->is_there)
        put_actions(request, batch, object);
    json_object_end(batch->json);
}

static void work(struct request *request)
{
    struct batch *batch = request->context;

    look(request, batch);
    if (!batch->is_known)
        return;
    json_object_begin(batch->json);
    json_array_member(batch->json, "objects");
    for (size_t i = 0; i < batch->count; i++)
        put_object(request, batch, &batch->objects[i]);
    json_array_end(batch->json);
    json_string_member(batch->json, "transfer", batch->part_count > 0 ? "multipart" : "basic");
    json_string_member(batch->json, "hash_algo", "sha256");
    json_object_end(batch->json);
}

static uint64_t permit_s(const struct request *request)
{
    const uint64_t expire_s = (uint64_t)config_number(&request->server->config->upload.expire_s);

    return expire_s < LFS_PERMIT_S ? expire_s : LFS_PERMIT_S;
}

/* Returns false if it has replied. */
static bool prepare(struct request *request, struct batch *batch)
{
    batch->expires = (uint64_t)time(NULL) + permit_s(request);
    batch->base = request_base_url(request);
    if (batch->base == NULL) {
        refuse(request, "the request has no Host that can be used in an address");
        return false;
    }
    batch->verify = request_print(request, "%s/%s.git/info/lfs/verify", batch->base, batch->repo);
    if (batch->verify == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    batch->json = json_reply_new(request, false);
    return batch->json != NULL;
}

enum outcome lfs_batch_handle(struct request *request)
{
    struct batch *batch = request->context;

    if (!batch->was_run) {
        batch->was_run = true;
        return read_body(request, batch) && prepare(request, batch)
                   ? request_work_long(request, work)
                   : OUTCOME_READY;
    }
    if (!batch->is_known)
        return hub_reply_error(request, &batch->error);
    if (batch->is_broken)
        return problem_reply_no_memory(request);
    return json_reply_send_now(request, batch->json, 200);
}
