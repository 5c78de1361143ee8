/* Checking the digests of components.
 *
 * zTensor up to 1.2 states digests of stored bytes, zTensor 2 of decoded bytes, a ZIP archive of
 * its inflated entries. */
#include "zt/verify.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/hashing.h"
#include "coding/inflate_stream.h"

/* Fits into the second-level cache, so that hashing finds the bytes just copied there. */
#define CHUNK_SIZE ((size_t)256 << 10)
/* Room for an NPY header and a small array. */
#define CHUNK_MIN ((size_t)256)

/* --- hashing what the digest covers --- */

/* Chooses the smallest buffer that suffices, because models may have a million small components. */
static size_t chunk_size(const struct zt_component *component)
{
    if (zt_component_is_plain(component) && component->length < CHUNK_SIZE)
        return component->length > CHUNK_MIN ? (size_t)component->length : CHUNK_MIN;
    return CHUNK_SIZE;
}

static enum zt_status hash_stored(struct zt_hashing *hashing, const struct zt_component *component,
                                  struct zt_error *error)
{
    return zt_hashing_run(hashing, component->offset, component->length, error);
}

static enum zt_status hash_decoded(struct zt_hashing *hashing, const struct zt_component *component,
                                   struct zt_error *error)
{
    struct zt_decoder *decoder = NULL;
    size_t length = 1;
    enum zt_status status = zt_decoder_open(component, hashing->source, &decoder, error);

    while (status == ZT_OK && length > 0) {
        status = zt_decoder_read(decoder, hashing->chunk, hashing->chunk_size, &length, error);
        if (status == ZT_OK) {
            zt_hasher_update(hashing->hasher, hashing->chunk, length);
            status = zt_hashing_report(hashing, zt_decoder_consumed(decoder), error);
        }
    }
    zt_decoder_close(decoder);
    return status;
}

/* --- entries of ZIP archives --- */

/* Number of bytes before the tensor that the entry's digest also covers. */
static uint64_t lead_bytes(const struct zt_component *component)
{
    return component->arrangement != NULL ? component->arrangement->lead_bytes : 0;
}

static enum zt_status hash_inflated(struct zt_hashing *hashing,
                                    const struct zt_component *component, struct zt_error *error)
{
    struct zt_inflate_stream *stream = NULL;
    size_t length = 1;
    enum zt_status status = zt_inflate_stream_new(hashing->source, &stream, error);

    assert(component->encoding == ZT_ENCODING_DEFLATE);
    if (status == ZT_OK)
        status = zt_inflate_stream_start(stream, component->offset, component->length,
                                         lead_bytes(component) + component->decoded_length, false,
                                         error);
    while (status == ZT_OK && length > 0) {
        status =
            zt_inflate_stream_read(stream, hashing->chunk, hashing->chunk_size, &length, error);
        if (status == ZT_OK) {
            zt_hasher_update(hashing->hasher, hashing->chunk, length);
            status = zt_hashing_report(hashing, zt_inflate_stream_consumed(stream), error);
        }
    }
    zt_inflate_stream_free(stream);
    return status;
}

/* Hashes the lead, which in a stored entry is right before the component. Its bytes do not count as
 * stored bytes of the component. */
static enum zt_status hash_lead(const struct zt_hashing *hashing,
                                const struct zt_component *component, struct zt_error *error)
{
    struct zt_hashing uncounted = *hashing;
    uint64_t lead = lead_bytes(component);

    assert(component->offset >= lead);
    uncounted.progress = NULL;
    return zt_hashing_run(&uncounted, component->offset - lead, lead, error);
}

static enum zt_status hash_entry(struct zt_hashing *hashing, const struct zt_component *component,
                                 struct zt_error *error)
{
    enum zt_status status;

    if (component->encoding == ZT_ENCODING_DEFLATE)
        return hash_inflated(hashing, component, error);
    status = hash_lead(hashing, component, error);
    return status == ZT_OK ? hash_stored(hashing, component, error) : status;
}

static enum zt_status hash_covered(struct zt_hashing *hashing, const struct zt_model *model,
                                   const struct zt_component *component, struct zt_error *error)
{
    if (zt_digest_covers_entries(model))
        return hash_entry(hashing, component, error);
    if (zt_digest_covers_stored(model) || zt_component_is_plain(component))
        return hash_stored(hashing, component, error);
    return hash_decoded(hashing, component, error);
}

/* --- the verdict --- */

/* Copies the file's own text, truncated to fit, but never inside a character. */
static void copy_expected(const struct zt_component *component, char out_text[ZT_DIGEST_TEXT_SIZE])
{
    size_t length = component->digest_length;

    if (length >= ZT_DIGEST_TEXT_SIZE) {
        length = ZT_DIGEST_TEXT_SIZE - 1;
        while (length > 0 && ((unsigned char)component->digest[length] & 0xC0) == 0x80)
            length--;
    }
    assert(length < ZT_DIGEST_TEXT_SIZE);
    memcpy(out_text, component->digest, length);
    out_text[length] = '\0';
}

struct stated_digest {
    enum zt_digest_algorithm algorithm;
    bool is_possible; /* false: malformed, so no bytes have it */
    struct zt_digest digest;
};

/* Whether the stated digest can be checked at all; reads nothing. */
static bool is_judgeable(const struct zt_model *model, const struct zt_component *component,
                         struct stated_digest *out_stated)
{
    enum zt_status status = zt_component_digest(model, component, &out_stated->digest, NULL);

    if (!zt_digest_covers_stored(model) && component->encoding == ZT_ENCODING_UNKNOWN)
        return false;
    out_stated->is_possible = status == ZT_OK;
    if (status == ZT_CORRUPT)
        return zt_digest_algorithm((struct zt_text){component->digest, component->digest_length},
                                   &out_stated->algorithm);
    out_stated->algorithm = out_stated->digest.algorithm;
    return status == ZT_OK;
}

/* Sets verdict, hashed_bytes and actual once the bytes have been hashed, or could not be. */
static enum zt_status judge(const struct zt_hashing *hashing, enum zt_status status,
                            const struct stated_digest *stated, struct zt_component_check *check)
{
    struct zt_digest actual;

    check->hashed_bytes = hashing->reported_bytes;
    check->verdict = ZT_VERDICT_FAILED;
    if (status != ZT_OK)
        return status;
    zt_hasher_finish(hashing->hasher, &actual);
    assert(actual.algorithm == stated->algorithm);
    zt_digest_format(&actual, check->actual);
    if (stated->is_possible && zt_digest_equal(&stated->digest, &actual))
        check->verdict = ZT_VERDICT_VERIFIED;
    return ZT_OK;
}

static enum zt_status compare(struct zt_hashing *hashing, const struct zt_model *model,
                              const struct zt_component *component,
                              const struct stated_digest *stated, struct zt_component_check *check,
                              struct zt_error *error)
{
    enum zt_status status =
        zt_hashing_start(hashing, stated->algorithm, chunk_size(component), error);

    if (status == ZT_OK)
        status = hash_covered(hashing, model, component, error);
    assert(hashing->reported_bytes <= component->length);
    return judge(hashing, status, stated, check);
}

/* Bytes that do not decode give a verdict; bytes that cannot be read do not. */
static enum zt_status report(enum zt_status status, const struct zt_component_check *check,
                             struct zt_component_check *out_check)
{
    if (status != ZT_OK && status != ZT_CORRUPT)
        return status;
    assert(check->verdict != ZT_VERDICT_VERIFIED || check->actual[0] != '\0');
    *out_check = *check;
    return ZT_OK;
}

enum zt_status zt_component_check(const struct zt_model *model,
                                  const struct zt_component *component, struct zt_source *source,
                                  const struct zt_progress *progress,
                                  struct zt_component_check *out_check, struct zt_error *error)
{
    struct zt_hashing hashing = {.source = source, .progress = progress};
    struct zt_component_check check = {.verdict = ZT_VERDICT_UNDIGESTED};
    struct stated_digest stated;
    enum zt_status status = ZT_OK;

    if (component->digest != NULL) {
        copy_expected(component, check.expected);
        check.verdict = ZT_VERDICT_UNSUPPORTED;
        if (source != NULL && is_judgeable(model, component, &stated))
            status = compare(&hashing, model, component, &stated, &check, error);
    }
    zt_hashing_free(&hashing);
    return report(status, &check, out_check);
}

/* --- several components --- */

/* A component that is being hashed while the other lane hashes another one. */
struct lane {
    struct zt_component_to_check *item; /* NULL: the lane is free */
    struct stated_digest stated;
    struct zt_hashing hashing;
};

struct lanes {
    const struct zt_model *model;
    struct zt_source *source;
    const struct zt_checked_sink *sink;
    struct zt_component_to_check *next;
    struct zt_component_to_check *end;
    struct lane lane[2];
};

static void deliver(const struct lanes *lanes, struct zt_component_to_check *item)
{
    if (lanes->sink != NULL)
        lanes->sink->take(lanes->sink->context, item);
}

/* Whether the digest is the SHA-256 of a run of the file. Remote bytes arrive in order, so they are
 * not read in two places. */
static bool suits_lane(const struct zt_model *model, const struct zt_component *component,
                       const struct zt_source *source, struct stated_digest *out_stated)
{
    return source != NULL && !zt_source_is_remote(source) && component->digest != NULL &&
           component->length > 0 && !zt_digest_covers_entries(model) &&
           (zt_digest_covers_stored(model) || zt_component_is_plain(component)) &&
           is_judgeable(model, component, out_stated) && out_stated->algorithm == ZT_DIGEST_SHA256;
}

static void end_lane(const struct lanes *lanes, struct lane *lane, enum zt_status status)
{
    struct zt_component_to_check *item = lane->item;
    struct zt_component_check check = {.verdict = ZT_VERDICT_UNSUPPORTED};

    copy_expected(item->component, check.expected);
    status = judge(&lane->hashing, status, &lane->stated, &check);
    item->status = report(status, &check, &item->check);
    zt_hashing_free(&lane->hashing);
    lane->item = NULL;
    deliver(lanes, item);
}

/* Takes the next component that suits a lane; checks those before it at once. */
static void fill_lane(struct lanes *lanes, struct lane *lane)
{
    while (lane->item == NULL && lanes->next < lanes->end) {
        struct zt_component_to_check *item = lanes->next++;
        const struct zt_component *component = item->component;
        enum zt_status status;

        zt_error_clear(&item->error);
        if (!suits_lane(lanes->model, component, lanes->source, &lane->stated)) {
            item->status = zt_component_check(lanes->model, component, lanes->source,
                                              item->progress, &item->check, &item->error);
            deliver(lanes, item);
            continue;
        }
        *lane = (struct lane){.item = item,
                              .stated = lane->stated,
                              .hashing = {.source = lanes->source,
                                          .progress = item->progress,
                                          .offset = component->offset,
                                          .left = component->length}};
        status = zt_hashing_start(&lane->hashing, lane->stated.algorithm, chunk_size(component),
                                  &item->error);
        if (status != ZT_OK)
            end_lane(lanes, lane, status);
    }
}

/* Hashes what the lane's component has left. */
static void finish_alone(const struct lanes *lanes, struct lane *lane)
{
    end_lane(lanes, lane,
             zt_hashing_run(&lane->hashing, lane->hashing.offset, lane->hashing.left,
                            &lane->item->error));
}

/* Reports what the lane has hashed, and ends it if that was all, or if it is to stop. */
static void settle(const struct lanes *lanes, struct lane *lane)
{
    const uint64_t done = lane->item->component->length - lane->hashing.left;
    const enum zt_status status = zt_hashing_report(&lane->hashing, done, &lane->item->error);

    if (status != ZT_OK || lane->hashing.left == 0)
        end_lane(lanes, lane, status);
}

/* One of two components cannot be read: only a check of each alone shows which. */
static void check_again(const struct lanes *lanes, struct lane *lane)
{
    struct zt_component_to_check *item = lane->item;

    item->status = zt_component_check(lanes->model, item->component, lanes->source, item->progress,
                                      &item->check, &item->error);
    zt_hashing_free(&lane->hashing);
    lane->item = NULL;
    deliver(lanes, item);
}

static void advance_both(struct lanes *lanes)
{
    struct lane *first = &lanes->lane[0];
    struct lane *second = &lanes->lane[1];
    struct zt_error ignored;
    const enum zt_status status = zt_hashing_pair(&first->hashing, &second->hashing, &ignored);

    if (status != ZT_OK) {
        check_again(lanes, first);
        check_again(lanes, second);
        return;
    }
    settle(lanes, first);
    settle(lanes, second);
}

void zt_components_check(const struct zt_model *model, struct zt_source *source,
                         struct zt_component_to_check *items, size_t count,
                         const struct zt_checked_sink *sink)
{
    struct lanes lanes = {
        .model = model, .source = source, .sink = sink, .next = items, .end = items + count};

    for (;;) {
        fill_lane(&lanes, &lanes.lane[0]);
        fill_lane(&lanes, &lanes.lane[1]);
        if (lanes.lane[0].item == NULL || lanes.lane[1].item == NULL)
            break;
        advance_both(&lanes);
    }
    for (size_t i = 0; i < 2; i++)
        if (lanes.lane[i].item != NULL)
            finish_alone(&lanes, &lanes.lane[i]);
    assert(lanes.next == lanes.end);
}
