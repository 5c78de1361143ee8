/* GET of an upload: the received components, in the form of the manifest's JSON, as far as it is
 * known before a commit. */
#include "upload/writer/writer.h"

#include <string.h>

#include "api/json_reply.h"
#include "derived/manifest_json.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/writer_session.h"
#include "zt/attributes.h"

/* --- attributes: collected as a text first, because a raw value is written as a whole --- */

static void emit(void *context, const char *text, size_t length)
{
    struct json *gathered = context;

    gathered->after_value = false;
    json_raw(gathered, text, length);
}

static void put_attributes(struct json *json, struct zt_text attributes)
{
    struct json gathered;
    struct zt_error error;

    json_init(&gathered, false);
    json_key_string(json, "attributes");
    if (zt_attributes_write_json(attributes, emit, &gathered, &error) == ZT_OK && !gathered.failed)
        json_raw(json, gathered.text, gathered.length);
    else
        json_put_null(json);
    json_free(&gathered);
}

/* --- objects --- */

static void put_shape(struct json *json, const uint64_t *extents, unsigned rank)
{
    json_array_member(json, "shape");
    for (unsigned i = 0; i < rank; i++)
        json_uint(json, extents[i]);
    json_array_end(json);
}

static void put_digest(struct json *json, const uint8_t sha256[32])
{
    struct zt_digest digest = {.algorithm = ZT_DIGEST_SHA256, .length_bytes = 32};
    char text[ZT_DIGEST_TEXT_SIZE];

    memcpy(digest.bytes, sha256, 32);
    zt_digest_format(&digest, text);
    json_string_member(json, "sha256", strchr(text, ':') + 1);
}

static void put_component(struct json *json, enum zt_target target,
                          const struct writer_component *component)
{
    const char *dtype = zt_dtype_name((enum zt_dtype)component->dtype);
    const char *type = zt_logical_name((enum zt_logical)component->logical);
    const char *compressed = target == ZT_TARGET_ZT1 ? "zstd" : "zt.zstd-seekable/1";

    json_key(json, writer_component_name(component));
    json_object_begin(json);
    json_string_member(json, "dtype", dtype);
    json_string_member(json, "type", type != NULL ? type : dtype);
    put_shape(json, component->extents, component->rank);
    json_string_member(json, "encoding", component->compressed ? compressed : "raw");
    json_uint_member(json, "length", component->length);
    json_uint_member(json, "uncompressed_length", component->decoded_length);
    put_digest(json, component->sha256);
    json_object_end(json);
}

struct writing_objects {
    struct json *json;
    enum zt_target target;
};

static bool put_object(void *context, const struct writer_object *object)
{
    const struct writing_objects *writing = context;
    const struct zt_declaration *declared = object->declared;
    struct json *json = writing->json;

    json_key(json, object->name);
    json_object_begin(json);
    if (declared != NULL) {
        if (declared->shape.stated)
            put_shape(json, declared->shape.extents, declared->shape.rank);
        json_key_string(json, "format");
        json_text(json, declared->format);
        put_attributes(json, declared->attributes);
    }
    json_object_member(json, "components");
    for (const struct writer_component *one = object->components; one != NULL; one = one->next)
        put_component(json, writing->target, one);
    json_object_end(json);
    json_object_end(json);
    return !json->failed;
}

/* --- the status --- */

static void put_head(struct writer_session *session, struct json *json)
{
    static const char *const states[] = {
        [WRITER_OPEN] = "open",
        [WRITER_COMMITTING] = "committing",
        [WRITER_COMMITTED] = "committed",
        [WRITER_DROPPED] = "ended",
    };
    uint64_t round;

    json_string_member(json, "id", session->kept.entry.id);
    json_string_member(json, "model", session->kept.entry.model);
    json_string_member(json, "version", session->target == ZT_TARGET_ZT1 ? "1.2.0" : "2");
    json_string_member(json, "state", states[writer_session_state(session, &round)]);
    manifest_write_seconds(json, "created", session->kept.entry.created);
    manifest_write_seconds(json, "expires", writer_session_expires(session));
    json_uint_member(json, "received", atomic_load(&session->kept.entry.received));
    put_attributes(json, session->attributes);
}

void writer_status_write(struct writer_session *session, struct json *json)
{
    struct writing_objects writing = {json, session->target};

    json_object_begin(json);
    put_head(session, json);
    json_object_member(json, "objects");
    pthread_rwlock_rdlock(&session->contents_lock);
    writer_contents_walk(&session->contents, put_object, &writing);
    pthread_rwlock_unlock(&session->contents_lock);
    json_object_end(json);
    json_object_end(json);
}

/* --- GET /v1/uploads/{id} --- */

struct status {
    struct writer_session *session;
    struct json *json;
    bool is_begun;
};

void writer_status_begin(struct request *request)
{
    struct writer_session *session = writer_resolve(request, false);
    struct status *status = session != NULL ? request_new_context(request, sizeof(*status)) : NULL;

    if (status == NULL)
        return;
    status->session = session;
    status->json = json_reply_new(request, false);
}

static void work_status(struct request *request)
{
    const struct status *status = request->context;

    writer_status_write(status->session, status->json);
}

enum outcome writer_status_handle(struct request *request)
{
    struct status *status = request->context;

    if (!status->is_begun) {
        status->is_begun = true;
        return request_work(request, work_status);
    }
    return json_reply_send_now(request, status->json, 200);
}
