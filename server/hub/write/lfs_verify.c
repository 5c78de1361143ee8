/* POST /{repo}.git/info/lfs/verify: checks whether an object has arrived. */
#include <stdio.h>

#include "base/hex.h"
#include "base/server.h"
#include "http/exchange/json_body.h"
#include "hub/hub_problem.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/repo_current.h"
#include "hub/write/staged_objects.h"
#include "input/json_read.h"
#include "upload/shared/write_checks.h"
#include "zt/digest.h"

struct verification {
    char repo[HUB_REPO_SIZE];
    uint8_t sha256[32];
    uint64_t length;
    bool was_run;
    bool is_known;
    bool is_there;
    uint64_t there_length;
    struct zt_error error;
};

void lfs_verify_begin(struct request *request)
{
    struct verification *self;

    if (write_refuse_read_only(request) || hub_refuse_repo(request, request->names[0]) ||
        json_body_refuse(request))
        return;
    self = request_new_context(request, sizeof(*self));
    if (self == NULL)
        return;
    snprintf(self->repo, sizeof(self->repo), "%.*s", (int)request->names[0].length,
             request->names[0].bytes);
}

static bool read_object(const struct json_t *object, struct verification *self)
{
    struct zt_text oid;

    if (object == NULL || json_member_text(object, "oid", &oid) != JSON_FOUND ||
        !zt_hex_read_lower(oid, self->sha256, 32))
        return false;
    return json_member_whole(object, "size", &self->length) == JSON_FOUND;
}

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct verification *self)
{
    struct json_t *object;
    bool is_read;

    if (json_body_refuse_received(request))
        return false;
    object = json_object_read(json_body_text(request), NULL);
    is_read = read_object(object, self);
    json_object_free(object);
    if (!is_read)
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "send {\"oid\", \"size\"}, the oid in 64 lower-case hex digits");
    return is_read;
}

/* A commit may already have used it. */
static void look(struct request *request)
{
    struct verification *self = request->context;
    struct hub_version *version;
    struct staged_asker asker;
    const struct staged_wanted wanted = {self->repo, self->sha256, &asker};

    staged_asker_of(request, &asker);
    self->is_known = true;
    self->is_there = staged_exists(request->server, &wanted, &self->there_length);
    if (self->is_there)
        return;
    self->is_known =
        repo_current_find(request->server, zt_text_from(self->repo), &version, &self->error);
    for (size_t i = 0; version != NULL && i < version->count && !self->is_there; i++) {
        const struct hub_file *file = &version->files[i];

        self->is_there = repo_current_may_read_bytes(request, self->repo, file) &&
                         memcmp(file->sha256, self->sha256, sizeof(self->sha256)) == 0;
        self->there_length = file->identity.size_bytes;
    }
    hub_version_release(version);
}

static enum outcome reply_absent(struct request *request)
{
    problem_reply(request, PROBLEM_NOT_FOUND,
                  "no object with this oid was sent for this repository");
    representation_field(&request->reply, "X-Error-Code", "EntryNotFound");
    return OUTCOME_READY;
}

enum outcome lfs_verify_handle(struct request *request)
{
    struct verification *self = request->context;

    if (!self->was_run) {
        self->was_run = true;
        return read_body(request, self) ? request_work_long(request, look) : OUTCOME_READY;
    }
    if (!self->is_known)
        return hub_reply_error(request, &self->error);
    if (!self->is_there)
        return reply_absent(request);
    if (self->there_length != self->length)
        return problem_reply(
            request, PROBLEM_SIZE_MISMATCH, "the object with this oid has %llu bytes, not %llu",
            (unsigned long long)self->there_length, (unsigned long long)self->length);
    reply_json(request, 200, "{}\n", 3);
    return OUTCOME_READY;
}
