/* POST /{repo}.git/info/lfs/objects/{oid}: the end of an object that came in parts. */
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/lfs_parts.h"
#include "hub/write/lfs_permit.h"
#include "hub/write/staged_objects.h"
#include "input/json_read.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/json_body.h"
#include "zt/digest.h"

#define BUFFER_BYTES ((size_t)256 << 10)

struct completion {
    struct json_body body;
    struct lfs_permit permit;
    uint8_t sha256[32];
    bool was_run;
    bool is_done;
    struct failure failure;
};

static void free_body(void *thing)
{
    json_body_free(&((struct completion *)thing)->body);
}

void lfs_complete_begin(struct request *request)
{
    struct lfs_permit permit;
    struct completion *self;

    if (write_refuse_read_only(request) || !lfs_permit_read(request, false, &permit) ||
        json_body_refuse(request))
        return;
    if (permit.part_length == 0) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "this object comes as a whole, by PUT to this address");
        return;
    }
    self = write_context(request, sizeof(*self));
    if (self == NULL)
        return;
    self->permit = permit;
    request_hold(request, self, free_body);
}

void lfs_complete_receive(struct request *request, const void *bytes, size_t length)
{
    json_body_receive(&((struct completion *)request->context)->body, bytes, length);
}

/* --- what the body says --- */

/* Some clients take the quotes off, and some proxies make a tag a weak one. */
static bool is_tag_of(struct zt_text etag, uint64_t part)
{
    char tag[LFS_PART_TAG_SIZE];
    size_t length;

    lfs_part_tag(part, tag);
    length = strlen(tag);
    if (zt_text_starts_with(etag, zt_text_from("W/")))
        etag = (struct zt_text){etag.bytes + 2, etag.length - 2};
    return zt_text_is(etag, tag) || zt_text_equal(etag, (struct zt_text){tag + 1, length - 2});
}

/* As many parts as there are. Which of them have arrived is known here. */
static bool names_parts(const struct json_t *list, uint64_t count)
{
    if (list == NULL || json_list_length(list) != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct json_t *part = json_list_object(list, i);
        struct zt_text etag;
        int64_t number;

        if (part == NULL || json_member_text(part, "etag", &etag) != JSON_FOUND ||
            json_member_number(part, "partNumber", &number) != JSON_FOUND || number < 1 ||
            (uint64_t)number > count || !is_tag_of(etag, (uint64_t)number))
            return false;
    }
    return true;
}

static bool is_right(const struct completion *self, const struct json_t *object)
{
    const uint64_t count = lfs_part_count(self->permit.length, self->permit.part_length);
    struct zt_text oid;

    return object != NULL && json_member_text(object, "oid", &oid) == JSON_FOUND &&
           zt_text_is(oid, self->permit.oid) &&
           names_parts(json_member_list(object, "parts"), count);
}

/* False: replied. */
static bool read_body(struct request *request, struct completion *self)
{
    struct json_t *object;
    bool is_read;

    if (json_body_refuse_received(request, &self->body))
        return false;
    object = json_object_read(json_body_text(&self->body), NULL);
    is_read = is_right(self, object) && lfs_oid_parse(zt_text_from(self->permit.oid), self->sha256);
    json_object_free(object);
    if (!is_read)
        problem_reply(
            request, PROBLEM_INVALID_REQUEST,
            "send {\"oid\", \"parts\": [{\"partNumber\", \"etag\"}]}, with all parts of the "
            "object of this address, and the ETag that each was answered with");
    return is_read;
}

/* --- the end --- */

static enum zt_status hash_source(struct zt_source *source, struct zt_hasher *hasher,
                                  struct zt_error *error)
{
    const uint64_t size = zt_source_size(source);
    uint8_t *buffer = malloc(BUFFER_BYTES);
    enum zt_status status = buffer != NULL ? ZT_OK : zt_fail_memory(error, "hashing");

    for (uint64_t at = 0; status == ZT_OK && at < size;) {
        const size_t length = size - at < BUFFER_BYTES ? (size_t)(size - at) : BUFFER_BYTES;

        status = zt_source_read_at(source, at, buffer, length, error);
        if (status == ZT_OK)
            zt_hasher_update(hasher, buffer, length);
        at += length;
    }
    free(buffer);
    return status;
}

static enum zt_status hash_file(struct stored_upload *file, struct zt_digest *out_digest,
                                struct zt_error *error)
{
    struct zt_source *source;
    struct zt_hasher *hasher;
    enum zt_status status = file->store->ops->read_back(file, &source, error);

    if (status != ZT_OK)
        return status;
    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return zt_fail_memory(error, "hashing");
    status = hash_source(source, hasher, error);
    zt_hasher_finish(hasher, out_digest);
    zt_hasher_free(hasher);
    return status;
}

static bool check_whole(struct completion *self, struct staged_object *object)
{
    struct stored_upload *file = staged_file(object);
    struct zt_digest digest;
    struct zt_error error;

    if (hash_file(file, &digest, &error) != ZT_OK)
        return failure_of_store(&self->failure, &error);
    return (file->store->ops->length(file) == self->permit.length &&
            memcmp(digest.bytes, self->sha256, sizeof(self->sha256)) == 0) ||
           failure_refuse(&self->failure, PROBLEM_DIGEST_MISMATCH,
                          "the parts do not have the SHA-256 that their address names");
}

/* Parts whose sum is wrong are of no use: nobody knows which of them is. */
static void work(struct request *request)
{
    struct completion *self = request->context;
    const struct staged_origin origin = {self->permit.repo, self->permit.client,
                                         self->permit.length};
    const struct staged_whole whole = {self->sha256, self->permit.part_length};
    struct staged_object *object = staged_close(request->server, &origin, &whole, &self->failure);
    uint64_t length;

    if (object != NULL) {
        self->is_done =
            check_whole(self, object) && staged_finish(object, self->sha256, &self->failure);
        if (!self->is_done)
            staged_abandon(object);
    } else if (self->failure.problem == PROBLEM_UPLOAD_NOT_FOUND) {
        /* The answer to an earlier request may have been lost. */
        self->is_done = staged_exists(request->server, self->permit.repo, self->sha256, &length);
    }
}

enum outcome lfs_complete_handle(struct request *request)
{
    struct completion *self = request->context;

    if (!self->was_run) {
        self->was_run = true;
        return read_body(request, self) ? request_work_long(request, work) : OUTCOME_READY;
    }
    if (!self->is_done)
        return hub_refuse_failure(request, &self->failure, 0);
    reply_json(request, 200, "{}\n", 3);
    return OUTCOME_READY;
}
