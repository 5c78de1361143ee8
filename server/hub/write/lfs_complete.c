/* POST /{repo}.git/info/lfs/objects/{oid}: ends an object that was sent in parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/server.h"
#include "http/exchange/json_body.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/lfs_parts.h"
#include "hub/write/lfs_permit.h"
#include "hub/write/staged_objects.h"
#include "input/json_read.h"
#include "store/staging.h"
#include "upload/shared/write_checks.h"

struct completion {
    struct lfs_permit permit;
    uint8_t sha256[32];
    bool was_run;
    bool is_done;
    struct failure failure;
};

void lfs_complete_begin(struct request *request)
{
    struct lfs_permit permit;
    struct completion *self;

    if (write_refuse_read_only(request) || !lfs_permit_read(request, false, &permit) ||
        json_body_refuse(request))
        return;
    if (permit.part_length == 0) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "this object must be sent whole, by PUT to this address");
        return;
    }
    self = request_new_context(request, sizeof(*self));
    if (self == NULL)
        return;
    self->permit = permit;
}

/* --- the body --- */

/* Some clients remove the quotes, and some proxies make an ETag weak. */
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

/* Checks that the list has as many parts as the object. The server itself knows which parts have
 * arrived. */
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

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct completion *self)
{
    struct json_t *object;
    bool is_read;

    if (json_body_refuse_received(request))
        return false;
    object = json_object_read(json_body_text(request), NULL);
    is_read = is_right(self, object) &&
              zt_hex_read_lower(zt_text_from(self->permit.oid), self->sha256, 32);
    json_object_free(object);
    if (!is_read)
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "send {\"oid\", \"parts\": [{\"partNumber\", \"etag\"}]}, with all parts of "
                      "the object of this address, and the ETag that was returned for each");
    return is_read;
}

/* --- the end --- */

static bool check_whole(struct completion *self, struct staged_object *object)
{
    struct staged_file *file = staged_file(object);
    struct zt_digest digest;
    struct zt_error error;

    if (staged_file_digest(file, ZT_DIGEST_SHA256, NULL, &digest, &error) != ZT_OK)
        return failure_of_store(&self->failure, &error);
    return (staged_file_length(file) == self->permit.length &&
            memcmp(digest.bytes, self->sha256, sizeof(self->sha256)) == 0) ||
           failure_refuse(&self->failure, PROBLEM_DIGEST_MISMATCH,
                          "the parts do not match the SHA-256 in their address");
}

static bool has_arrived(const struct request *request, const struct completion *self,
                        const char *owner)
{
    struct staged_asker asker = {.sees_all = false};
    const struct staged_wanted wanted = {self->permit.repo, self->sha256, &asker};
    uint64_t length;

    snprintf(asker.owner, sizeof(asker.owner), "%s", owner);
    return staged_exists(request->server, &wanted, &length);
}

/* If the parts have the wrong hash all of them are dropped, because it is unknown which one is
 * wrong. */
static void work(struct request *request)
{
    struct completion *self = request->context;
    const struct staged_origin origin = lfs_permit_origin(request, &self->permit);
    const struct staged_whole whole = {self->sha256, self->permit.part_length};
    struct staged_object *object = staged_close(request->server, &origin, &whole, &self->failure);

    if (object != NULL) {
        self->is_done =
            check_whole(self, object) && staged_finish(object, self->sha256, &self->failure);
        if (!self->is_done)
            staged_abandon(object);
    } else if (self->failure.problem == PROBLEM_UPLOAD_NOT_FOUND) {
        /* The response to an earlier request may have been lost. */
        self->is_done = has_arrived(request, self, origin.owner);
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
