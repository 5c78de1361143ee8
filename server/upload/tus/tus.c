/* HEAD, PATCH and DELETE of one resumable upload, and OPTIONS. */
#include "upload/tus/tus.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "http/exchange/authorize.h"
#include "input/date.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/tus_body.h"
#include "upload/tus/tus_fields.h"

#define EXTENSIONS                                                                           \
    "creation,creation-with-upload,creation-defer-length,checksum,concatenation,expiration," \
    "termination"

/* --- replies --- */

/* A final upload has no offset before it is whole. */
void tus_reply_progress(struct request *request, struct resumable *resumable, uint64_t offset)
{
    struct representation *reply = &request->reply;
    char *expires = request_allocate(request, 30);

    assert(offset <= atomic_load(&resumable->kept.entry.received));
    reply->cache_control = "no-store";
    if (resumable->role != RESUMABLE_FINAL || resumable_state(resumable) == RESUMABLE_PUBLISHED)
        representation_field(reply, "Upload-Offset",
                             request_print(request, "%llu", (unsigned long long)offset));
    if (expires != NULL && resumable_state(resumable) == RESUMABLE_RECEIVING) {
        http_date_format(resumable_expires(resumable), expires);
        representation_field(reply, "Upload-Expires", expires);
    }
}

void tus_reply_published(struct request *request, const struct resumable *resumable)
{
    assert(resumable->is_hashed);
    if (resumable->role != RESUMABLE_PART)
        published_reply_digest(request, &resumable->published);
}

enum outcome tus_reply_busy(struct request *request)
{
    struct failure failure = {.is_passing = true};

    failure_refuse(&failure, PROBLEM_LOCKED, "another request is using this upload");
    return failure_reply(request, &failure);
}

void tus_reply_unreadable(struct request *request)
{
    problem_reply(request, PROBLEM_OVERLOADED, "the upload cannot be read at this moment");
}

static void reply_location(struct request *request, const struct resumable *resumable)
{
    if (resumable->role != RESUMABLE_PART)
        published_reply_location(request,
                                 (struct published_name){zt_text_from(resumable->kept.entry.model),
                                                         resumable->kept.entry.is_file});
}

bool tus_sees(const struct request *request, const struct resumable *resumable)
{
    const char *owner = resumable->texts[RESUMABLE_OWNER];
    const struct zt_text name = zt_text_from(resumable->kept.entry.model);

    if (resumable->role != RESUMABLE_PART)
        return resumable->kept.entry.is_file ? authorize_sees_file(request, name)
                                             : authorize_sees(request, name);
    return authorize_filter(request).passes == NULL ||
           (owner != NULL && request->client != NULL && strcmp(owner, request->client) == 0);
}

/* A client that receives 404 would start from the beginning. */
static void reply_absent(struct request *request, bool is_unreadable)
{
    if (!is_unreadable)
        problem_reply(request, PROBLEM_UPLOAD_NOT_FOUND,
                      "there is no such upload, or it has ended");
    else if (kept_uploads_is_of_other_process(request->server->kept, request->names[0]))
        tus_reply_busy(request);
    else
        tus_reply_unreadable(request);
}

/* Finds and holds the upload in the path. Returns NULL, having replied, if it does not exist. */
static struct resumable *find(struct request *request)
{
    bool is_unreadable;
    struct resumable *resumable = (struct resumable *)kept_uploads_find_or_adopt(
        request->server->kept, UPLOAD_KIND_RESUMABLE, request->names[0], &is_unreadable);

    if (resumable != NULL && resumable_state(resumable) != RESUMABLE_GONE &&
        tus_sees(request, resumable))
        return resumable;
    reply_absent(request, resumable == NULL && is_unreadable);
    kept_upload_release(resumable);
    return NULL;
}

/* --- OPTIONS --- */

void tus_options(struct request *request)
{
    struct representation *reply = &request->reply;

    representation_field(reply, "Tus-Version", TUS_VERSION);
    representation_field(reply, "Tus-Extension", EXTENSIONS);
    representation_field(reply, "Tus-Max-Size",
                         request_print(request, "%llu",
                                       (unsigned long long)config_number(
                                           &request->server->config->upload.max_bytes)));
    representation_field(reply, "Tus-Checksum-Algorithm", "sha1,sha256");
}

/* --- HEAD: what was received is made durable first, since the answer states only durable bytes
 * --- */

/* A request that uses an upload without sending bytes. */
struct visit {
    struct resumable *resumable; /* held */
    uint64_t claim;              /* 0: none */
    struct failure failure;
};

static void release_visit(void *thing)
{
    struct visit *visit = thing;

    assert(visit->resumable != NULL);
    resumable_end_claim(visit->resumable, &visit->claim);
    kept_upload_release(visit->resumable);
}

static struct visit *new_visit(struct request *request)
{
    struct resumable *resumable = find(request);
    struct visit *visit;

    if (resumable == NULL)
        return NULL;
    visit = request_new_context(request, sizeof(*visit));
    if (visit == NULL) {
        kept_upload_release(resumable);
        return NULL;
    }
    visit->resumable = resumable;
    request_hold(request, visit, release_visit);
    return visit;
}

/* Returns true if all bytes have arrived but were not published: publication failed, or a restart
 * interrupted it. The client would take the offset for success, so publication is retried first,
 * unless the client may only read. */
static bool awaits_publication(const struct request *request, struct resumable *resumable)
{
    return authorize_writes(request) && resumable_state(resumable) == RESUMABLE_RECEIVING &&
           resumable->role == RESUMABLE_WHOLE && resumable_is_whole(resumable);
}

/* Does nothing while a body is arriving, whose end will notice the same error. */
static void put_down(struct visit *visit)
{
    if (visit->claim == 0)
        visit->claim = claim_take(&visit->resumable->claim);
    if (visit->claim != 0 && resumable_state(visit->resumable) == RESUMABLE_RECEIVING)
        resumable_put_down(visit->resumable);
}

/* Leaves an upload unchanged if its files cannot be opened now. */
static bool make_durable(struct visit *visit)
{
    struct resumable *resumable = visit->resumable;
    struct zt_error error;
    enum zt_status status;

    if (!resumable_enter(resumable, &visit->failure))
        return false;
    status = resumable_make_durable(resumable, &error);
    if (status != ZT_OK && atomic_load(&resumable->has_failed_write))
        put_down(visit);
    resumable_leave(resumable);
    return status == ZT_OK || failure_of_store(&visit->failure, &error);
}

static void work_head(struct request *request)
{
    struct visit *visit = request->context;
    struct resumable *resumable = visit->resumable;

    if (resumable_state(resumable) == RESUMABLE_PUBLISHED && !authorize_writes(request))
        (void)resumable_settle(resumable, &visit->failure);
    else if (resumable_state(resumable) == RESUMABLE_PUBLISHED)
        (void)resumable_complete(resumable, &visit->failure);
    else if (make_durable(visit) && visit->claim != 0 && awaits_publication(request, resumable))
        (void)(resumable_publish(resumable, request, &visit->failure) &&
               resumable_report(resumable, &visit->failure));
    resumable_end_claim(resumable, &visit->claim);
}

static enum outcome begin_head(struct request *request)
{
    struct visit *visit = new_visit(request);
    struct resumable *resumable;

    if (visit == NULL)
        return OUTCOME_READY;
    resumable = visit->resumable;
    resumable_touch(resumable);
    claim_end_silent(&resumable->claim);
    if (awaits_publication(request, resumable)) {
        visit->claim = claim_take(&resumable->claim);
        if (visit->claim == 0)
            return tus_reply_busy(request);
    }
    return request_work(request, work_head);
}

static void reply_text(struct request *request, const char *field, const char *text)
{
    if (text != NULL)
        representation_field(&request->reply, field, request_print(request, "%s", text));
}

static enum outcome reply_head(struct request *request, struct resumable *resumable)
{
    const uint64_t length = atomic_load(&resumable->length);

    reply_empty(request, 200);
    tus_reply_progress(request, resumable, atomic_load(&resumable->durable));
    if (length == RESUMABLE_UNKNOWN)
        representation_field(&request->reply, "Upload-Defer-Length", "1");
    else
        representation_field(&request->reply, "Upload-Length",
                             request_print(request, "%llu", (unsigned long long)length));
    reply_text(request, "Upload-Metadata", resumable->texts[RESUMABLE_METADATA]);
    reply_text(request, "Upload-Concat", resumable->texts[RESUMABLE_CONCAT]);
    if (resumable_state(resumable) == RESUMABLE_PUBLISHED)
        reply_location(request, resumable);
    return OUTCOME_READY;
}

enum outcome tus_head_handle(struct request *request)
{
    struct visit *visit = request->context;

    if (visit == NULL)
        return tus_refuse_version(request) ? OUTCOME_READY : begin_head(request);
    return visit->failure.is_set ? failure_reply(request, &visit->failure)
                                 : reply_head(request, visit->resumable);
}

/* --- PATCH --- */

static bool refuse_offset(struct request *request, struct resumable *resumable)
{
    const char *text = request_header(request, "Upload-Offset");
    uint64_t offset;

    if (text == NULL || !tus_number_parse(text, &offset)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "Upload-Offset is required: a number of bytes");
        return true;
    }
    if (offset != atomic_load(&resumable->kept.entry.received)) {
        problem_reply(request, PROBLEM_CONFLICT,
                      "Upload-Offset is not the upload's offset, which HEAD returns");
        return true;
    }
    return false;
}

/* Checks the length of an upload that was created without one. The client may repeat a known
 * length. */
static bool refuse_length(struct request *request, struct tus_body *body)
{
    const char *text = request_header(request, "Upload-Length");
    const uint64_t known = atomic_load(&body->resumable->length);
    const uint64_t received = atomic_load(&body->resumable->kept.entry.received);
    uint64_t length;

    assert(known == RESUMABLE_UNKNOWN || received <= known);
    if (text == NULL)
        return false;
    if (!tus_number_parse(text, &length)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "Upload-Length is not a number of bytes");
        return true;
    }
    if (known != RESUMABLE_UNKNOWN ? length != known : length < received) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "Upload-Length cannot be %llu: the upload %s %llu bytes",
                      (unsigned long long)length,
                      known != RESUMABLE_UNKNOWN ? "was created with" : "already has",
                      (unsigned long long)(known != RESUMABLE_UNKNOWN ? known : received));
        return true;
    }
    if (known == RESUMABLE_UNKNOWN)
        body->stated_length = length;
    return known == RESUMABLE_UNKNOWN &&
           (write_refuse_large(request, length) || write_refuse_full(request, length - received));
}

static bool refuse_final(struct request *request, const struct resumable *resumable)
{
    if (resumable->role != RESUMABLE_FINAL)
        return false;
    problem_reply(request, PROBLEM_FORBIDDEN,
                  "a final upload consists of its parts and takes no bytes");
    return true;
}

void tus_patch_begin(struct request *request)
{
    struct tus_body *body;
    struct resumable *resumable;

    if (write_refuse_read_only(request) || tus_refuse_version(request))
        return;
    body = tus_body_new(request);
    if (body == NULL)
        return;
    resumable = find(request);
    body->resumable = resumable;
    if (resumable == NULL || refuse_final(request, resumable) ||
        tus_body_refuse_fields(request, body))
        return;
    claim_end_silent(&resumable->claim);
    body->claim = claim_take_for_body(&resumable->claim);
    if (body->claim == 0) {
        tus_reply_busy(request);
        return;
    }
    resumable_touch(resumable);
    /* The claim ends before the response, after which the client may try again. */
    if (refuse_offset(request, resumable) || refuse_length(request, body) ||
        tus_body_refuse_start(request, body))
        resumable_end_claim(resumable, &body->claim);
}

enum outcome tus_patch_handle(struct request *request)
{
    struct tus_body *body = request->context;

    if (!body->is_finished)
        return request_work(request, tus_body_work);
    if (body->failure.is_set)
        return failure_reply(request, &body->failure);
    reply_empty(request, 204);
    tus_reply_progress(request, body->resumable, body->offset);
    if (resumable_state(body->resumable) == RESUMABLE_PUBLISHED) {
        tus_reply_published(request, body->resumable);
        reply_location(request, body->resumable);
    }
    return OUTCOME_READY;
}

/* --- DELETE --- */

void tus_delete_begin(struct request *request)
{
    (void)(write_refuse_read_only(request) || tus_refuse_version(request));
}

static void work_delete(struct request *request)
{
    assert(((struct visit *)request->context)->claim != 0);
    resumable_drop(((struct visit *)request->context)->resumable);
}

enum outcome tus_delete_handle(struct request *request)
{
    struct visit *visit = request->context;

    if (visit != NULL) {
        reply_empty(request, 204);
        return OUTCOME_READY;
    }
    visit = new_visit(request);
    if (visit == NULL)
        return OUTCOME_READY;
    if (resumable_state(visit->resumable) == RESUMABLE_PUBLISHED)
        return problem_reply(request, PROBLEM_UPLOAD_NOT_FOUND,
                             "the upload is complete and published");
    /* A client that is still sending learns about it at the end of its body. */
    visit->claim = claim_seize(&visit->resumable->claim);
    return visit->claim != 0 ? request_work(request, work_delete) : tus_reply_busy(request);
}

/* --- POST instead of PATCH or DELETE --- */

static enum method override_of(struct request *request)
{
    const char *method = request_header(request, "X-HTTP-Method-Override");

    if (method != NULL && strcasecmp(method, "PATCH") == 0)
        return METHOD_PATCH;
    return method != NULL && strcasecmp(method, "DELETE") == 0 ? METHOD_DELETE : METHOD_POST;
}

/* The body of a DELETE is ignored. */
static void discard(struct request *request, const struct body_piece *piece)
{
    (void)request;
    (void)piece;
}

static const struct body_receiver discarding = {.receive = discard, .on_workers = true};

void tus_override_begin(struct request *request)
{
    switch (override_of(request)) {
    case METHOD_PATCH:
        tus_patch_begin(request);
        break;
    case METHOD_DELETE:
        tus_delete_begin(request);
        request->receiver = &discarding;
        break;
    default:
        problem_reply(request, PROBLEM_METHOD_NOT_ALLOWED,
                      "POST is for X-HTTP-Method-Override: PATCH or DELETE here");
        representation_field(&request->reply, "Allow", "GET, HEAD, DELETE, PATCH, OPTIONS");
        break;
    }
}

enum outcome tus_override_handle(struct request *request)
{
    return override_of(request) == METHOD_PATCH ? tus_patch_handle(request)
                                                : tus_delete_handle(request);
}
