/* Bytes that come from a stored component, decoded: a zstd body that is not stored as it was sent,
 * or a component that the server holds already. */
#include <stdlib.h>
#include <string.h>

#include "upload/writer/held_component.h"
#include "upload/writer/writer_arrival.h"
#include "zt/decode.h"

#define PIECE_BYTES ((size_t)256 << 10)

static bool refuse(struct arrival *arrival, enum problem problem, const char *message)
{
    struct zt_error error;

    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return arrival_fail(arrival, problem, &error);
}

static bool put_in_place(struct arrival *arrival, uint64_t at, const void *bytes, size_t length)
{
    const struct store_ops *ops = arrival->session->server->store->ops;
    struct zt_error error;
    enum zt_status status;

    if (!writer_write_begin(arrival->session, arrival->round))
        return refuse(arrival, PROBLEM_CONFLICT, "the upload was committed, or ended, meanwhile");
    status = ops->write_at(arrival->data, arrival->place.offset + at, bytes, length, &error);
    writer_write_end(arrival->session);
    return status == ZT_OK || arrival_fail_store(arrival, &error);
}

static bool put(struct arrival *arrival, uint64_t at, const void *bytes, size_t length)
{
    struct zt_error error;

    byte_digests_update(&arrival->decoded, bytes, length);
    if (arrival->terms.as_sent)
        return true;
    if (arrival->encoder == NULL)
        return put_in_place(arrival, at, bytes, length);
    return zt_encoder_append(arrival->encoder, bytes, length, &error) == ZT_OK ||
           arrival_fail_store(arrival, &error);
}

/* Of a body that says it is zstd: too many bytes, or too few, are a matter of size. */
static bool fail_decoding(struct arrival *arrival, const struct zt_error *error)
{
    bool is_size = error->rule != NULL && (strstr(error->rule, "ZstdLength") != NULL ||
                                           strstr(error->rule, "ZstdRatio") != NULL);

    if (error->status == ZT_IO || error->status == ZT_NO_MEMORY)
        return arrival_fail(arrival, PROBLEM_INTERNAL, error);
    return arrival_fail(arrival, is_size ? PROBLEM_SIZE_MISMATCH : PROBLEM_INVALID_MODEL, error);
}

static bool pull_pieces(struct arrival *arrival, struct zt_decoder *decoder, uint8_t *buffer)
{
    uint64_t at = 0;

    for (;;) {
        struct zt_error error;
        size_t length;

        if (writer_round_is_over(arrival->session, arrival->round))
            return refuse(arrival, PROBLEM_CONFLICT,
                          "the upload was committed, or ended, meanwhile");
        if (zt_decoder_read(decoder, buffer, PIECE_BYTES, &length, &error) != ZT_OK)
            return fail_decoding(arrival, &error);
        if (length == 0)
            return true;
        if (!put(arrival, at, buffer, length))
            return false;
        at += length;
        writer_session_touch(arrival->session);
    }
}

bool arrival_pull(struct arrival *arrival, const struct zt_component *component,
                  struct zt_source *source)
{
    const struct arrival_terms *terms = &arrival->terms;
    struct zt_decoder *decoder;
    struct zt_error error;
    uint8_t *buffer;
    bool pulled;

    if (!terms->as_sent && !terms->compress && !arrival_take_place(arrival, terms->decoded_length))
        return false;
    buffer = malloc(PIECE_BYTES);
    if (buffer == NULL) {
        zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to decode with");
        return arrival_fail(arrival, PROBLEM_INTERNAL, &error);
    }
    pulled = zt_decoder_open(component, source, &decoder, &error) == ZT_OK;
    if (pulled) {
        pulled = pull_pieces(arrival, decoder, buffer);
        zt_decoder_close(decoder);
    } else {
        fail_decoding(arrival, &error);
    }
    free(buffer);
    return pulled;
}

/* --- by digest --- */

struct wanted {
    struct arrival *arrival;
    struct zt_component found;
    bool is_found;
};

static bool look_in_object(void *context, const struct writer_object *object)
{
    struct wanted *wanted = context;
    const struct writer_session *session = wanted->arrival->session;

    for (const struct writer_component *one = object->components; one != NULL; one = one->next) {
        enum zt_encoding encoding;

        if (memcmp(one->sha256, wanted->arrival->terms.wanted_sha256, sizeof(one->sha256)) != 0)
            continue;
        encoding = session->target == ZT_TARGET_ZT1 ? ZT_ENCODING_ZSTD : ZT_ENCODING_ZSTD_SEEKABLE;
        wanted->found = (struct zt_component){
            .name = "",
            .encoding_name = "",
            .offset = one->offset,
            .length = one->length,
            .decoded_length = one->decoded_length,
            .encoding = (uint8_t)(one->compressed ? encoding : ZT_ENCODING_RAW),
        };
        wanted->is_found = true;
        return false;
    }
    return true;
}

/* Of this very upload. Another body may take its place while it is read: then the digest tells. */
static bool find_own(struct arrival *arrival, struct zt_component *out_component,
                     struct zt_source **out_source)
{
    struct writer_session *session = arrival->session;
    struct wanted wanted = {.arrival = arrival};
    struct zt_error error;

    pthread_rwlock_rdlock(&session->contents_lock);
    writer_contents_walk(&session->contents, look_in_object, &wanted);
    pthread_rwlock_unlock(&session->contents_lock);
    if (!wanted.is_found ||
        session->server->store->ops->read_back(arrival->data, out_source, &error) != ZT_OK)
        return false;
    *out_component = wanted.found;
    return true;
}

static bool pull_checked(struct arrival *arrival, const struct zt_component *component,
                         struct zt_source *source)
{
    if (component->decoded_length != arrival->terms.decoded_length)
        return refuse(arrival, PROBLEM_SIZE_MISMATCH,
                      "the bytes of that digest are not as many as shape and type want");
    if (!arrival_pull(arrival, component, source)) {
        /* What does not decode is not held. */
        if (arrival->failure.error.status != ZT_CORRUPT)
            return false;
        arrival->has_failed = false;
        return refuse(arrival, PROBLEM_COMPONENT_NOT_FOUND,
                      "no component with these bytes is here");
    }
    return true;
}

/* Nobody needs to hold nothing. */
static bool wants_nothing(const struct arrival *arrival)
{
    static const uint8_t nothing[32] = {
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4,
        0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b,
        0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    };

    return memcmp(nothing, arrival->terms.wanted_sha256, sizeof(nothing)) == 0;
}

static bool pull_nothing(struct arrival *arrival)
{
    if (arrival->terms.decoded_length > 0)
        return refuse(arrival, PROBLEM_SIZE_MISMATCH,
                      "the bytes of that digest are not as many as shape and type want");
    return arrival->terms.compress || arrival_take_place(arrival, 0);
}

bool arrival_pull_held(struct arrival *arrival)
{
    struct held_component held;
    struct zt_component own;
    struct zt_source *source;
    bool pulled;

    if (wants_nothing(arrival))
        return pull_nothing(arrival);
    if (find_own(arrival, &own, &source))
        return pull_checked(arrival, &own, source);
    if (!held_component_find(arrival->session->server, arrival->terms.wanted_sha256, &held))
        return refuse(arrival, PROBLEM_COMPONENT_NOT_FOUND,
                      "no component with these bytes is here");
    pulled = pull_checked(arrival, held.component, held.source);
    held_component_release(&held);
    return pulled;
}
