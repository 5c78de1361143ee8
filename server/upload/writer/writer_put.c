/* PUT of a component: reads the request, and refuses it before the body if possible. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "http/exchange/authorize.h"
#include "upload/shared/write_checks.h"
#include "upload/writer/writer.h"
#include "upload/writer/writer_arrival.h"

/* Higher levels take hundreds of megabytes for each arriving component. */
#define LEVEL_MAX 19

/* --- reading the request; each false when it replied --- */

static bool invalid(struct request *request, const char *message)
{
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", message);
    return false;
}

static bool read_level(struct request *request, struct arrival_terms *terms)
{
    struct zt_text text;
    uint64_t level;

    if (!request_query(request, "level", 0, &text))
        return true;
    if (!zt_decimal_read(text, LEVEL_MAX, &level) || level < 1)
        return invalid(request, "level must be a number from 1 to 19");
    terms->level = (int)level;
    return true;
}

static bool read_encoding(struct request *request, struct arrival_terms *terms,
                          bool *out_states_raw)
{
    struct zt_text text;

    *out_states_raw = false;
    if (!request_query(request, "encoding", 0, &text))
        return true;
    *out_states_raw = zt_text_is(text, "raw");
    terms->compress = zt_text_is(text, "zstd");
    return *out_states_raw || terms->compress || invalid(request, "encoding must be raw or zstd");
}

static bool read_digest(struct request *request, struct arrival_terms *terms)
{
    const struct zt_text prefix = zt_text_from("sha256:");
    struct zt_text text;
    bool fits;

    if (!request_query(request, "digest", 0, &text))
        return true;
    fits =
        zt_text_starts_with(text, prefix) &&
        zt_hex_read_lower((struct zt_text){text.bytes + prefix.length, text.length - prefix.length},
                          terms->wanted_sha256, sizeof(terms->wanted_sha256));
    terms->has_wanted = true;
    return fits || invalid(request, "digest must be sha256: and 64 lower-case hex digits");
}

static bool read_shape(struct request *request, struct arrival_terms *terms)
{
    struct zt_error error;
    struct zt_text text;

    if (!request_query(request, "shape", 0, &text))
        return true;
    return zt_declare_shape(text, &terms->shape, &error) == ZT_OK ||
           invalid(request, error.message);
}

/* --- checking it against the session; each false when it replied --- */

static bool check_names(struct request *request, const struct writer_session *session,
                        const struct arrival_terms *terms)
{
    if (session->target == ZT_TARGET_ZT1 || (terms->object.length <= WRITER_ZT2_NAME_MAX_BYTES &&
                                             terms->component.length <= WRITER_ZT2_NAME_MAX_BYTES))
        return true;
    problem_reply(request, PROBLEM_INVALID_NAME, "a name has at most %d bytes in zTensor 2",
                  WRITER_ZT2_NAME_MAX_BYTES);
    return false;
}

/* The declared shape of a dense object must equal the shape of its data. */
static bool resolve_shape(struct request *request, struct writer_session *session,
                          struct arrival_terms *terms)
{
    struct zt_shape declared = {.stated = false};
    const struct writer_object *object;

    pthread_rwlock_rdlock(&session->contents_lock);
    object = writer_contents_find(&session->contents, terms->object);
    if (object != NULL && object->declared != NULL &&
        zt_text_is(object->declared->format, "dense") && zt_text_is(terms->component, "data"))
        declared = object->declared->shape;
    pthread_rwlock_unlock(&session->contents_lock);
    if (!terms->shape.stated)
        terms->shape = declared;
    if (!terms->shape.stated)
        return invalid(request, "shape is missing: shape=768,768");
    if (!declared.stated ||
        (declared.rank == terms->shape.rank &&
         memcmp(declared.extents, terms->shape.extents, declared.rank * sizeof(uint64_t)) == 0))
        return true;
    problem_reply(request, PROBLEM_SIZE_MISMATCH, "the object was declared with another shape");
    return false;
}

/* Checks what can be checked before the other components have arrived. */
static bool check_layout(struct request *request, struct writer_session *session,
                         const struct arrival_terms *terms)
{
    const struct zt_assembly_component component = {.name = terms->component,
                                                    .dtype = terms->dtype,
                                                    .logical = terms->logical,
                                                    .decoded_length = terms->decoded_length};
    enum zt_status status = ZT_OK;
    struct zt_error error;
    const struct writer_object *object;
    const struct zt_declaration *declared;

    assert(terms->shape.stated);
    pthread_rwlock_rdlock(&session->contents_lock);
    object = writer_contents_find(&session->contents, terms->object);
    declared = object != NULL ? object->declared : NULL;
    if (declared != NULL && declared->shape.stated) {
        const struct zt_assembly_object outline = {
            .name = object->name, .format = declared->format, .shape = &declared->shape};

        status = zt_assembly_check_component(session->target, &outline, &component, &error);
    }
    pthread_rwlock_unlock(&session->contents_lock);
    if (status == ZT_OK)
        return true;
    problem_reply_error_as(
        request, status == ZT_NO_MEMORY ? PROBLEM_INTERNAL : PROBLEM_INVALID_MODEL, &error);
    return false;
}

static bool resolve_coding(struct request *request, const struct writer_session *session,
                           struct arrival_terms *terms, bool states_raw)
{
    const char *coding = request_header(request, "Content-Encoding");
    bool is_zstd = coding != NULL && strcasecmp(coding, "zstd") == 0;

    if (coding != NULL && !is_zstd && strcasecmp(coding, "identity") != 0) {
        problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                      "Content-Encoding must be zstd or absent");
        return false;
    }
    terms->body_is_zstd = is_zstd && !terms->without_body;
    terms->as_sent = terms->body_is_zstd && !states_raw && session->target == ZT_TARGET_ZT1;
    terms->compress = (terms->compress || (terms->body_is_zstd && !states_raw)) && !terms->as_sent;
    return true;
}

static bool resolve_type(struct request *request, const struct writer_session *session,
                         struct arrival_terms *terms)
{
    struct zt_text dtype;
    struct zt_text type;
    struct zt_error error;

    if (!request_query(request, "dtype", 0, &dtype))
        return invalid(request, "dtype is missing: dtype=f32");
    if (!request_query(request, "type", 0, &type))
        type = (struct zt_text){"", 0};
    if (zt_declare_type(session->target, dtype, type, &terms->dtype, &terms->logical, &error) ==
        ZT_OK)
        return true;
    problem_reply(request, PROBLEM_UNKNOWN_DTYPE, "%s", error.message);
    return false;
}

static bool resolve_size(struct request *request, struct arrival_terms *terms)
{
    struct zt_error error;

    assert(terms->shape.stated);
    if (zt_declared_bytes(&terms->shape, terms->dtype, terms->logical, &terms->decoded_length,
                          &error) != ZT_OK) {
        problem_reply(request, PROBLEM_SIZE_MISMATCH, "%s", error.message);
        return false;
    }
    if (terms->without_body || terms->body_is_zstd || terms->body_length == UINT64_MAX ||
        terms->body_length == terms->decoded_length)
        return true;
    problem_reply(
        request, PROBLEM_SIZE_MISMATCH, "the body has %llu bytes where shape and type require %llu",
        (unsigned long long)terms->body_length, (unsigned long long)terms->decoded_length);
    return false;
}

static bool check_limits(struct request *request, const struct arrival_terms *terms)
{
    return !write_refuse_large(request, terms->body_length) &&
           !write_refuse_large(request, terms->decoded_length);
}

static bool resolve_body(struct request *request, struct arrival_terms *terms)
{
    terms->body_length = request_body_length(request);
    terms->without_body = terms->has_wanted && terms->body_length == 0;
    return terms->without_body || !write_refuse_absent_body(request);
}

/* The body belongs to the current round. */
static bool check_open(struct request *request, struct writer_session *session, uint64_t *out_round)
{
    enum writer_state state = writer_session_state(session, out_round);

    if (state == WRITER_OPEN)
        return true;
    problem_reply(request, PROBLEM_CONFLICT, "the upload is %s",
                  state == WRITER_COMMITTING ? "being committed" : "committed, or ended");
    return false;
}

static bool resolve_terms(struct request *request, struct writer_session *session,
                          struct arrival_terms *terms, bool states_raw)
{
    return check_names(request, session, terms) && resolve_body(request, terms) &&
           resolve_coding(request, session, terms, states_raw) &&
           resolve_type(request, session, terms) && resolve_shape(request, session, terms) &&
           resolve_size(request, terms) && check_layout(request, session, terms) &&
           check_limits(request, terms);
}

/* Refuses a parameter that occurs twice, since it is unclear which one counts. */
static bool check_once(struct request *request)
{
    static const char *const names[] = {"dtype", "shape", "type", "encoding", "level", "digest"};
    struct zt_text text;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!request_query(request, names[i], 1, &text))
            continue;
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s occurs twice", names[i]);
        return false;
    }
    return true;
}

static bool check_level(struct request *request, const struct arrival_terms *terms, bool states_raw)
{
    return !states_raw || terms->level == 0 || invalid(request, "level is for encoding=zstd only");
}

static bool read_terms(struct request *request, struct arrival_terms *terms, bool *out_states_raw)
{
    if (request_header(request, "Content-Range") != NULL)
        return invalid(request, "send a component whole: Content-Range is not supported");
    return check_once(request) && read_shape(request, terms) &&
           read_encoding(request, terms, out_states_raw) && read_level(request, terms) &&
           check_level(request, terms, *out_states_raw) && read_digest(request, terms) &&
           !write_refuse_digests(request, &terms->content_digest, &terms->repr_digest);
}

static void receive(struct request *request, const struct body_piece *piece)
{
    arrival_receive(request->context, piece);
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};

void writer_put_begin(struct request *request)
{
    struct arrival_terms terms = {.object = request->names[1],
                                  .component = request->names[2],
                                  .client = request_client_key(request),
                                  .filter = authorize_filter(request)};
    struct writer_session *session = writer_resolve(request, true);
    struct failure failure = {.is_set = false};
    uint64_t round;
    bool states_raw;
    struct arrival *arrival;

    if (session == NULL || !read_terms(request, &terms, &states_raw) ||
        !check_open(request, session, &round) ||
        !resolve_terms(request, session, &terms, states_raw))
        return;
    arrival = arrival_begin(session, round, &terms, &failure);
    if (arrival == NULL) {
        failure_reply(request, &failure);
        return;
    }
    request->context = arrival;
    request->receiver = &receiver;
    request_hold(request, arrival, arrival_release);
}

/* --- answer --- */

static void work_finish(struct request *request)
{
    arrival_finish(request->context);
}

enum outcome writer_put_handle(struct request *request)
{
    struct arrival *arrival = request->context;
    char digest[DIGEST_FIELD_SIZE];

    if (arrival->state == ARRIVAL_RECEIVING && !arrival->failure.is_set) {
        arrival_end_body(arrival);
        return request_work(request, work_finish);
    }
    if (arrival->failure.is_set)
        return failure_reply(request, &arrival->failure);
    assert(arrival->state == ARRIVAL_DONE);
    digest_field_format(arrival->decoded.sha256.bytes, digest);
    reply_empty(request, 201);
    representation_field(&request->reply, "Repr-Digest", request_print(request, "%s", digest));
    return OUTCOME_READY;
}
