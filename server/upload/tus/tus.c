/* HEAD, PATCH and DELETE of one resumable upload, and OPTIONS. */
#include "upload/tus/tus.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/fields/href.h"
#include "http/fields/conditional.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/tus_body.h"
#include "upload/tus/tus_fields.h"

#define EXTENSIONS "creation,creation-with-upload,checksum,expiration,termination"
/* Said to a client that finds another request at work. */
#define RETRY_AFTER_S "1"

/* --- replies --- */

void tus_reply_progress(struct request *request, struct resumable *resumable, uint64_t offset)
{
    struct representation *reply = &request->reply;
    char *expires = request_allocate(request, 30);

    reply->cache_control = "no-store";
    representation_field(reply, "Upload-Offset",
                         request_print(request, "%llu", (unsigned long long)offset));
    if (expires != NULL && !atomic_load(&resumable->is_published)) {
        http_date_format(resumable_expires(resumable), expires);
        representation_field(reply, "Upload-Expires", expires);
    }
}

void tus_reply_published(struct request *request, struct resumable *resumable)
{
    char digest[DIGEST_FIELD_SIZE];

    digest_field_format(resumable->sha256, digest);
    representation_field(&request->reply, "Repr-Digest", request_print(request, "%s", digest));
    request->reply.etag =
        resumable->etag[0] != '\0' ? request_print(request, "%s", resumable->etag) : NULL;
}

static enum outcome reply_busy(struct request *request)
{
    problem_reply(request, PROBLEM_LOCKED, "another request is at work on this upload");
    representation_field(&request->reply, "Retry-After", RETRY_AFTER_S);
    return OUTCOME_READY;
}

static void add_model_location(struct request *request, const struct resumable *resumable)
{
    struct href href;

    href_init(&href);
    href_model(&href, (struct zt_text){resumable->entry.model, strlen(resumable->entry.model)});
    representation_field(&request->reply, "Location",
                         href.failed ? NULL : request_print(request, "%s", href.text));
    href_free(&href);
}

/* The upload that the path means, held; NULL, and replied, when there is none. */
static struct resumable *find(struct request *request)
{
    struct resumable *resumable = resumables_find(request->server->resumables, request->names[0]);

    if (resumable == NULL)
        problem_reply(request, PROBLEM_UPLOAD_NOT_FOUND, "there is no such upload, or no longer");
    return resumable;
}

/* --- OPTIONS --- */

void tus_options(struct request *request)
{
    struct representation *reply = &request->reply;

    representation_field(reply, "Tus-Version", TUS_VERSION);
    representation_field(reply, "Tus-Extension", EXTENSIONS);
    representation_field(
        reply, "Tus-Max-Size",
        request_print(request, "%llu",
                      (unsigned long long)request->server->config->upload.max_bytes));
    representation_field(reply, "Tus-Checksum-Algorithm", "sha1,sha256");
}

/* --- HEAD: tells only what is durable, after making durable what is there --- */

struct look {
    struct resumable *resumable;
    uint64_t claim; /* 0: none */
    bool has_failed;
    struct resumable_failure failure;
};

static void end_claim(struct look *look)
{
    if (look->claim != 0) {
        resumable_unclaim(look->resumable, look->claim);
        look->claim = 0;
    }
}

static void release_look(void *thing)
{
    struct look *look = thing;

    end_claim(look);
    resumable_release(look->resumable);
}

/* A whole file that is not published yet: its publication failed, or was cut short by a restart.
 * Its offset would be taken for success, so it is tried once more before that is told. */
static bool is_whole(struct resumable *resumable)
{
    return !atomic_load(&resumable->is_published) &&
           atomic_load(&resumable->entry.received) == resumable->length;
}

static void work_look(struct request *request)
{
    struct look *look = request->context;
    struct zt_error error;

    if (resumable_settle(look->resumable, &error) != ZT_OK) {
        look->has_failed = true;
        look->failure = (struct resumable_failure){problem_of_write(&error), error};
    } else if (look->claim != 0) {
        look->has_failed = !resumable_publish(look->resumable, &look->failure);
    }
    end_claim(look);
}

static struct look *new_look(struct request *request)
{
    struct resumable *resumable = find(request);
    struct look *look;

    if (resumable == NULL)
        return NULL;
    look = request_allocate(request, sizeof(*look));
    if (look == NULL) {
        resumable_release(resumable);
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    memset(look, 0, sizeof(*look));
    look->resumable = resumable;
    request->context = look;
    request_hold(request, look, release_look);
    return look;
}

static enum outcome reply_look(struct request *request, struct resumable *resumable)
{
    reply_empty(request, 200);
    tus_reply_progress(request, resumable, atomic_load(&resumable->durable));
    representation_field(&request->reply, "Upload-Length",
                         request_print(request, "%llu", (unsigned long long)resumable->length));
    representation_field(&request->reply, "Upload-Metadata",
                         request_print(request, "%s", resumable->texts[RESUMABLE_METADATA]));
    if (atomic_load(&resumable->is_published))
        add_model_location(request, resumable);
    return OUTCOME_READY;
}

enum outcome tus_head_handle(struct request *request)
{
    struct look *look = request->context;

    if (look == NULL) {
        if (tus_refuse_version(request) || (look = new_look(request)) == NULL)
            return OUTCOME_READY;
        resumable_touch(look->resumable);
        claim_end_silent(&look->resumable->claim);
        look->claim = is_whole(look->resumable) ? claim_take(&look->resumable->claim) : 0;
        if (is_whole(look->resumable) && look->claim == 0)
            return reply_busy(request);
        return request_work(request, work_look);
    }
    return look->has_failed
               ? problem_reply_error_as(request, look->failure.problem, &look->failure.error)
               : reply_look(request, look->resumable);
}

/* --- PATCH --- */

static bool refuse_offset(struct request *request, struct resumable *resumable)
{
    const char *text = request_header(request, "Upload-Offset");
    uint64_t offset;

    if (text == NULL || !tus_number_parse(text, &offset)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "Upload-Offset is wanted, a number of bytes");
        return true;
    }
    if (offset != atomic_load(&resumable->entry.received)) {
        problem_reply(request, PROBLEM_CONFLICT,
                      "Upload-Offset is not where this upload goes on; HEAD tells");
        return true;
    }
    return false;
}

void tus_patch_begin(struct request *request)
{
    struct tus_body *body;
    struct resumable *resumable;

    if (refuse_read_only(request) || tus_refuse_version(request))
        return;
    body = tus_body_new(request);
    resumable = body != NULL ? find(request) : NULL;
    if (resumable == NULL)
        return;
    if (tus_body_refuse_fields(request, body)) {
        resumable_release(resumable);
        return;
    }
    claim_end_silent(&resumable->claim);
    body->claim = claim_take_for_body(&resumable->claim);
    if (body->claim == 0) {
        resumable_release(resumable);
        reply_busy(request);
        return;
    }
    body->resumable = resumable;
    resumable_touch(resumable);
    if (!refuse_offset(request, resumable))
        tus_body_refuse_start(request, body);
}

void tus_patch_receive(struct request *request, const void *bytes, size_t length)
{
    tus_body_receive(request->context, bytes, length);
}

static void work_finish(struct request *request)
{
    (void)tus_body_finish(request->context);
}

enum outcome tus_patch_handle(struct request *request)
{
    struct tus_body *body = request->context;

    if (!body->is_answerable)
        return request_work(request, work_finish);
    if (body->has_failed)
        return problem_reply_error_as(request, body->failure.problem, &body->failure.error);
    reply_empty(request, 204);
    tus_reply_progress(request, body->resumable, body->offset);
    if (atomic_load(&body->resumable->is_published)) {
        tus_reply_published(request, body->resumable);
        add_model_location(request, body->resumable);
    }
    return OUTCOME_READY;
}

/* --- DELETE --- */

void tus_delete_begin(struct request *request)
{
    (void)(refuse_read_only(request) || tus_refuse_version(request));
}

static void work_drop(struct request *request)
{
    struct look *look = request->context;

    resumables_drop(request->server->resumables, look->resumable);
}

enum outcome tus_delete_handle(struct request *request)
{
    struct look *look = request->context;

    if (look != NULL) {
        reply_empty(request, 204);
        return OUTCOME_READY;
    }
    look = new_look(request);
    if (look == NULL)
        return OUTCOME_READY;
    if (atomic_load(&look->resumable->is_published)) {
        return problem_reply(request, PROBLEM_UPLOAD_NOT_FOUND,
                             "the upload is done: the model is there");
    }
    /* Whoever still sends to it is told at the end of its body. */
    look->claim = claim_seize(&look->resumable->claim);
    return look->claim != 0 ? request_work(request, work_drop) : reply_busy(request);
}

/* --- POST in the place of the other two --- */

static enum method override_of(struct request *request)
{
    const char *method = request_header(request, "X-HTTP-Method-Override");

    if (method != NULL && strcasecmp(method, "PATCH") == 0)
        return METHOD_PATCH;
    return method != NULL && strcasecmp(method, "DELETE") == 0 ? METHOD_DELETE : METHOD_POST;
}

void tus_override_begin(struct request *request)
{
    switch (override_of(request)) {
    case METHOD_PATCH:
        tus_patch_begin(request);
        break;
    case METHOD_DELETE:
        tus_delete_begin(request);
        break;
    default:
        problem_reply(request, PROBLEM_METHOD_NOT_ALLOWED,
                      "POST is for X-HTTP-Method-Override: PATCH or DELETE here");
        representation_field(&request->reply, "Allow", "GET, HEAD, DELETE, PATCH, OPTIONS");
        break;
    }
}

void tus_override_receive(struct request *request, const void *bytes, size_t length)
{
    if (override_of(request) == METHOD_PATCH)
        tus_patch_receive(request, bytes, length);
}

enum outcome tus_override_handle(struct request *request)
{
    return override_of(request) == METHOD_PATCH ? tus_patch_handle(request)
                                                : tus_delete_handle(request);
}
