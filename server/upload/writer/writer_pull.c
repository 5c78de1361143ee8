/* Decodes bytes from a stored component: a zstd body that is stored decoded, or a component that
 * the server already has, in this upload or in a model. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/staging.h"
#include "upload/writer/writer_arrival.h"
#include "verify/held_component.h"
#include "zt/decode.h"

#define PIECE_BYTES ((size_t)256 << 10)

static bool put(struct arrival *arrival, uint64_t at, const void *bytes, size_t length)
{
    struct zt_error error;

    assert(arrival->terms.as_sent || arrival->encoder != NULL || arrival->has_place);
    byte_digests_update(&arrival->decoded, bytes, length);
    if (arrival->terms.as_sent)
        return true;
    if (arrival->encoder == NULL)
        return arrival_write_in_place(arrival, at, bytes, length);
    return zt_encoder_append(arrival->encoder, bytes, length, &error) == ZT_OK ||
           failure_of_store(&arrival->failure, &error);
}

/* For a zstd body: too many or too few bytes are a size mismatch. */
static bool fail_decoding(struct arrival *arrival, const struct zt_error *error)
{
    bool is_size = error->rule != NULL && (strstr(error->rule, "ZstdLength") != NULL ||
                                           strstr(error->rule, "ZstdRatio") != NULL);

    assert(error->status != ZT_OK);
    if (error->status == ZT_IO || error->status == ZT_NO_MEMORY)
        return failure_set(&arrival->failure, PROBLEM_INTERNAL, error);
    return failure_set(&arrival->failure, is_size ? PROBLEM_SIZE_MISMATCH : PROBLEM_INVALID_MODEL,
                       error);
}

static bool pull_pieces(struct arrival *arrival, struct zt_decoder *decoder, uint8_t *buffer)
{
    uint64_t at = 0;

    for (;;) {
        struct zt_error error;
        size_t length;

        if (writer_round_is_over(arrival->session, arrival->round))
            return writer_round_fail(&arrival->failure);
        if (zt_decoder_read(decoder, buffer, PIECE_BYTES, &length, &error) != ZT_OK)
            return fail_decoding(arrival, &error);
        if (length == 0)
            return true;
        if (!put(arrival, at, buffer, length))
            return false;
        at += length;
        kept_upload_touch(&arrival->session->kept);
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

    assert(!arrival->failure.is_set);
    if (!terms->as_sent && !terms->compress && !arrival_take_place(arrival, terms->decoded_length))
        return false;
    buffer = malloc(PIECE_BYTES);
    if (buffer == NULL)
        return failure_no_memory(&arrival->failure, "decoding");
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

/* --- by digest, in this upload --- */

struct wanted {
    struct arrival *arrival;
    struct zt_component found;
    bool is_found;
};

static bool look_in_object(void *context, const struct writer_object *object)
{
    struct wanted *wanted = context;
    const struct writer_session *session = wanted->arrival->session;

    assert(wanted->arrival->terms.has_wanted);
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

/* Another body may replace the component while it is read; the digest then differs. */
static bool find_own(struct arrival *arrival, struct zt_component *out_component,
                     struct zt_source **out_source)
{
    struct writer_session *session = arrival->session;
    struct wanted wanted = {.arrival = arrival};
    struct zt_error error;

    assert(arrival->data != NULL);
    pthread_rwlock_rdlock(&session->contents_lock);
    writer_contents_walk(&session->contents, look_in_object, &wanted);
    pthread_rwlock_unlock(&session->contents_lock);
    if (!wanted.is_found || staged_file_read_back(arrival->data, out_source, &error) != ZT_OK)
        return false;
    *out_component = wanted.found;
    return true;
}

/* --- the bytes named by the request's digest --- */

static bool pull_checked(struct arrival *arrival, const struct zt_component *component,
                         struct zt_source *source)
{
    if (component->decoded_length != arrival->terms.decoded_length)
        return failure_refuse(
            &arrival->failure, PROBLEM_SIZE_MISMATCH,
            "the bytes with that digest do not have the length that shape and type require");
    if (!arrival_pull(arrival, component, source)) {
        /* A component that does not decode counts as missing. */
        if (arrival->failure.error.status != ZT_CORRUPT)
            return false;
        arrival->failure.is_set = false;
        return failure_refuse(&arrival->failure, PROBLEM_COMPONENT_NOT_FOUND,
                              "the server has no component with these bytes");
    }
    return true;
}

/* Returns true for the digest of zero bytes, which need not be stored anywhere. */
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
    assert(!arrival->has_place);
    if (arrival->terms.decoded_length > 0)
        return failure_refuse(
            &arrival->failure, PROBLEM_SIZE_MISMATCH,
            "the bytes with that digest do not have the length that shape and type require");
    return arrival->terms.compress || arrival_take_place(arrival, 0);
}

bool arrival_pull_held(struct arrival *arrival)
{
    struct held_component held;
    struct zt_component own;
    struct zt_source *source;
    bool pulled;

    assert(arrival->terms.without_body && arrival->terms.has_wanted);
    if (wants_nothing(arrival))
        return pull_nothing(arrival);
    if (find_own(arrival, &own, &source))
        return pull_checked(arrival, &own, source);
    /* Only in models that the client may see. */
    if (!held_component_find(arrival->session->kept.server, arrival->terms.wanted_sha256,
                             arrival->terms.filter, false, &held))
        return failure_refuse(&arrival->failure, PROBLEM_COMPONENT_NOT_FOUND,
                              "the server has no component with these bytes");
    pulled = pull_checked(arrival, held.component, held.source);
    generation_release(held.generation);
    return pulled;
}
