/* Finishes an arrival on a worker, from the last byte to the acknowledgement. The first step that
 * fails ends it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/staging.h"
#include "upload/writer/writer_arrival.h"
#include "upload/writer/writer_journal.h"
#include "zt/coding.h"

/* --- the received body --- */

static bool check_length(struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;

    return terms->without_body || terms->body_is_zstd ||
           body_follower_received(&arrival->follower) == terms->decoded_length ||
           failure_refuse(&arrival->failure, PROBLEM_SIZE_MISMATCH,
                          "the body has fewer bytes than shape and type require");
}

static bool follow_to_end(struct arrival *arrival)
{
    struct zt_error error;

    return body_follower_finish(&arrival->follower, &error) == ZT_OK ||
           failure_of_store(&arrival->failure, &error);
}

/* RFC 9659 bounds the window of the content coding zstd; with larger windows, many clients at once
 * could occupy too much memory. */
static bool check_windows(struct arrival *arrival, const struct zt_component *body,
                          struct zt_source *source)
{
    struct zt_error error;
    bool fit;

    if (zt_zstd_windows_fit(source, body, &fit, &error) != ZT_OK)
        return failure_of_store(&arrival->failure, &error);
    return fit || failure_refuse(&arrival->failure, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                                 "Content-Encoding zstd: a frame has a window above 8 MiB");
}

/* Done only now, because only the end of a zstd stream shows whether it is valid. */
static bool decode_body(struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;
    struct staged_file *from = arrival->spool != NULL ? arrival->spool : arrival->data;
    const struct zt_component body = {
        .name = "",
        .encoding_name = "zstd",
        .encoding = ZT_ENCODING_ZSTD,
        .offset = arrival->follower.base,
        .length = body_follower_received(&arrival->follower),
        .decoded_length = terms->decoded_length,
    };
    struct zt_source *source;
    struct zt_error error;

    assert(!terms->without_body);
    if (!terms->body_is_zstd)
        return true;
    if (staged_file_read_back(from, &source, &error) != ZT_OK)
        return failure_of_store(&arrival->failure, &error);
    return check_windows(arrival, &body, source) && arrival_pull(arrival, &body, source);
}

static bool read_bytes(struct arrival *arrival)
{
    if (arrival->terms.without_body)
        return arrival_pull_held(arrival);
    return check_length(arrival) && follow_to_end(arrival) && decode_body(arrival);
}

static bool end_encoding(struct arrival *arrival)
{
    struct zt_error error;

    assert((arrival->encoder != NULL) == arrival->terms.compress);
    if (arrival->encoder != NULL && zt_encoder_finish(arrival->encoder, &error) != ZT_OK)
        return failure_of_store(&arrival->failure, &error);
    byte_digests_finish(&arrival->decoded);
    byte_digests_finish(&arrival->body);
    byte_digests_finish(&arrival->stored);
    return true;
}

/* --- digests --- */

static bool check_stated(struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;
    const struct byte_digests *sent = terms->body_is_zstd ? &arrival->body : &arrival->decoded;

    if (!terms->without_body && !byte_digests_agree(sent, &terms->content_digest))
        return failure_refuse(&arrival->failure, PROBLEM_DIGEST_MISMATCH,
                              "the body does not match the digest in Content-Digest");
    /* In RFC 9530 this is the digest of the coded bytes; our responses contain the digest of the
     * decoded bytes. Either one proves that the bytes are right. */
    if (!byte_digests_agree(sent, &terms->repr_digest) &&
        !byte_digests_agree(&arrival->decoded, &terms->repr_digest))
        return failure_refuse(&arrival->failure, PROBLEM_DIGEST_MISMATCH,
                              "the bytes do not match the digest in Repr-Digest");
    return true;
}

/* The bytes that the server found by a digest may have changed since. */
static bool check_wanted(struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;

    if (!terms->has_wanted || memcmp(arrival->decoded.sha256.bytes, terms->wanted_sha256,
                                     sizeof(terms->wanted_sha256)) == 0)
        return true;
    return terms->without_body ? failure_refuse(&arrival->failure, PROBLEM_COMPONENT_NOT_FOUND,
                                                "the server has no component with these bytes")
                               : failure_refuse(&arrival->failure, PROBLEM_DIGEST_MISMATCH,
                                                "the bytes do not have the stated digest");
}

/* --- its place --- */

static bool copy_to_place(struct arrival *arrival, struct staged_file *from, uint64_t length)
{
    struct zt_error error;
    enum zt_status status;

    assert(from != NULL && from != arrival->data);
    if (!arrival_take_place(arrival, length))
        return false;
    if (!writer_write_begin(arrival->session, arrival->round))
        return writer_round_fail(&arrival->failure);
    status = staged_file_copy(from, 0, arrival->data, arrival->place.offset, length, &error);
    writer_write_end(arrival->session);
    return status == ZT_OK || failure_of_store(&arrival->failure, &error);
}

static bool put_in_place(struct arrival *arrival)
{
    assert(arrival->has_place !=
           (arrival->packed != NULL || (arrival->terms.as_sent && arrival->spool != NULL)));
    if (arrival->packed != NULL)
        return copy_to_place(arrival, arrival->packed, arrival->packed_length);
    if (arrival->terms.as_sent && arrival->spool != NULL)
        return copy_to_place(arrival, arrival->spool, body_follower_received(&arrival->follower));
    return true;
}

static bool sync_data(struct arrival *arrival)
{
    struct zt_error error;

    return staged_file_sync(arrival->data, &error) == ZT_OK ||
           failure_of_store(&arrival->failure, &error);
}

/* --- the acknowledgement --- */

static const uint8_t *stated_digest(const struct arrival *arrival)
{
    if (arrival->session->target == ZT_TARGET_ZT2)
        return arrival->decoded.xxh3.bytes;
    if (arrival->terms.compress)
        return arrival->stored.sha256.bytes;
    return arrival->terms.as_sent ? arrival->body.sha256.bytes : arrival->decoded.sha256.bytes;
}

static struct writer_component *describe(const struct arrival *arrival)
{
    const struct arrival_terms *terms = &arrival->terms;
    struct writer_component *component = writer_component_new(terms->component, &terms->shape);

    if (component == NULL)
        return NULL;
    assert(arrival->has_place || arrival->place.length == 0);
    component->dtype = (uint8_t)terms->dtype;
    component->logical = (uint8_t)terms->logical;
    component->compressed = terms->compress || terms->as_sent;
    component->offset = arrival->place.offset;
    component->length = arrival->place.length;
    component->decoded_length = terms->decoded_length;
    memcpy(component->sha256, arrival->decoded.sha256.bytes, sizeof(component->sha256));
    memcpy(component->stated, stated_digest(arrival), sizeof(component->stated));
    return component;
}

static void return_replaced(struct arrival *arrival, struct writer_component *replaced)
{
    struct writer_place place;

    if (replaced == NULL)
        return;
    place = (struct writer_place){replaced->offset, replaced->length};
    writer_place_return(arrival->session, arrival->round, arrival->data, &place);
    free(replaced);
}

static bool acknowledge(struct arrival *arrival)
{
    struct writer_exchange exchange = {.object = arrival->terms.object,
                                       .component = describe(arrival)};

    assert(arrival->has_place);
    if (exchange.component == NULL)
        return failure_no_memory(&arrival->failure, "a component");
    if (!writer_session_put(arrival->session, arrival->round, &exchange, &arrival->failure)) {
        free(exchange.component);
        return false;
    }
    /* From now on the position belongs to the component. */
    arrival->has_place = false;
    return_replaced(arrival, exchange.replaced);
    return true;
}

static bool run_steps(struct arrival *arrival)
{
    return !arrival->failure.is_set && read_bytes(arrival) && end_encoding(arrival) &&
           check_stated(arrival) && check_wanted(arrival) && put_in_place(arrival) &&
           sync_data(arrival) && acknowledge(arrival);
}

void arrival_finish(struct arrival *arrival)
{
    bool done;

    assert(arrival->state == ARRIVAL_FINISHING);
    done = run_steps(arrival);
    assert(done == !arrival->failure.is_set);
    /* Once its round has ended, a commit may have cut and completed the file, so the bytes read
     * back may not be the body's. */
    if (!done && writer_round_is_over(arrival->session, arrival->round)) {
        arrival->failure.is_set = false;
        (void)writer_round_fail(&arrival->failure);
    }
    arrival->state = ARRIVAL_DONE;
}
