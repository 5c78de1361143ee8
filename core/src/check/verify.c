/* Verification: checking the digest of a component and the content rules of an object, and the loop
 * that hashes in chunks, which shards and the canonical check also use.
 *
 * zTensor up to 1.2 states digests of stored bytes, zTensor 2 of decoded bytes, a ZIP archive of
 * its inflated entries. The content rules of sparse layouts (zTensor 2 types and layouts; 1.2
 * section 3) are in content_sparse.c and content_zt01.c. Encoded components that no layout's rule
 * reads are decoded once, so that an object that passes can be read. */
#include "zt/verify.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/resident.h"
#include "check/content.h"
#include "check/hashing.h"
#include "coding/inflate_stream.h"

/* Fits into the second-level cache, so that hashing finds the bytes just copied there. */
#define CHUNK_SIZE ((size_t)256 << 10)
/* Bytes hashed from a mapping per step: a query of the page cache is cheap in comparison. */
#define MAPPED_SIZE ((size_t)1 << 20)
/* With less to read, a copy costs less than touching a mapping. */
#define MAPPED_MIN ((size_t)128 << 10)
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

/* Hashes the bytes and sets verdict, hashed_bytes and actual. */
static enum zt_status compare(struct zt_hashing *hashing, const struct zt_model *model,
                              const struct zt_component *component,
                              const struct stated_digest *stated, struct zt_component_check *check,
                              struct zt_error *error)
{
    struct zt_digest actual;
    enum zt_status status =
        zt_hashing_start(hashing, stated->algorithm, chunk_size(component), error);

    if (status == ZT_OK)
        status = hash_covered(hashing, model, component, error);
    assert(hashing->reported_bytes <= component->length);
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
    /* Bytes that do not decode give a verdict; bytes that cannot be read do not. */
    if (status != ZT_OK && status != ZT_CORRUPT)
        return status;
    assert(check.verdict != ZT_VERDICT_VERIFIED || check.actual[0] != '\0');
    *out_check = check;
    return ZT_OK;
}

/* --- reading in chunks --- */

enum zt_status zt_hashing_start(struct zt_hashing *hashing, enum zt_digest_algorithm algorithm,
                                size_t chunk_size, struct zt_error *error)
{
    assert(chunk_size > 0);
    assert(hashing->hasher == NULL && hashing->chunk == NULL);
    hashing->chunk_size = chunk_size;
    hashing->chunk = malloc(chunk_size);
    if (hashing->chunk == NULL || zt_hasher_new(algorithm, &hashing->hasher) != ZT_OK)
        return zt_fail_memory(error, "hashing");
    return ZT_OK;
}

enum zt_status zt_hashing_report(struct zt_hashing *hashing, uint64_t total_bytes,
                                 struct zt_error *error)
{
    uint64_t added = total_bytes - hashing->reported_bytes;

    assert(total_bytes >= hashing->reported_bytes);
    hashing->reported_bytes = total_bytes;
    if (hashing->progress != NULL && !hashing->progress->advance(hashing->progress->context, added))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "stopped");
    return ZT_OK;
}

struct mapped_part {
    struct zt_hasher *hasher;
    const uint8_t *bytes;
    size_t length;
};

static void hash_mapped(void *context)
{
    const struct mapped_part *part = context;

    zt_hasher_update(part->hasher, part->bytes, part->length);
}

/* Hashes the next bytes: from the mapping if they are in the page cache, else through the
 * buffer. */
static enum zt_status hash_part(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                                size_t *out_part, struct zt_error *error)
{
    struct mapped_part part = {.hasher = hashing->hasher};
    enum zt_status status;

    part.length = length < MAPPED_SIZE ? (size_t)length : MAPPED_SIZE;
    if (length >= MAPPED_MIN)
        part.bytes = zt_source_resident(hashing->source, offset, part.length);
    *out_part = part.length;
    if (part.bytes != NULL)
        return zt_source_touch(hashing->source, offset, part.length, hash_mapped, &part, error);
    *out_part = length < hashing->chunk_size ? (size_t)length : hashing->chunk_size;
    assert(*out_part <= length && *out_part <= hashing->chunk_size);
    status = zt_source_read_at(hashing->source, offset, hashing->chunk, *out_part, error);
    if (status == ZT_OK)
        zt_hasher_update(hashing->hasher, hashing->chunk, *out_part);
    return status;
}

enum zt_status zt_hashing_run(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                              struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    assert(hashing->hasher != NULL && hashing->chunk != NULL);
    while (status == ZT_OK && length > 0) {
        size_t part;

        zt_source_read_on(hashing->source, offset, length, 0);
        status = hash_part(hashing, offset, length, &part, error);
        if (status != ZT_OK)
            return status;
        offset += part;
        length -= part;
        status = zt_hashing_report(hashing, hashing->reported_bytes + part, error);
    }
    return status;
}

void zt_hashing_free(struct zt_hashing *hashing)
{
    zt_hasher_free(hashing->hasher);
    free(hashing->chunk);
    hashing->hasher = NULL;
    hashing->chunk = NULL;
}

/* --- content rules: what bytes must be beyond their digest --- */

static bool is_bool(const struct zt_component *component)
{
    return component->dtype == ZT_BOOL || component->logical == ZT_LOGICAL_BOOL;
}

/* Whether the last byte holds only one element, so that its other nibble must be 0. */
static bool has_spare_nibble(const struct zt_content *content, const struct zt_component *component)
{
    return content->object->layout == ZT_LAYOUT_DENSE && component->logical == ZT_LOGICAL_F4_E2M1 &&
           zt_object_elements(content->model, content->object) % 2 == 1;
}

static enum zt_status check_bools(const struct zt_content *content,
                                  const struct zt_component *component, const uint8_t *bytes,
                                  size_t length)
{
    uint8_t seen = 0;

    for (size_t i = 0; i < length; i++)
        seen |= bytes[i];
    for (size_t i = 0; seen > 1 && i < length; i++)
        if (bytes[i] > 1)
            return zt_content_fail(content, component, "a bool is 0x%02x", bytes[i]);
    return ZT_OK;
}

static enum zt_status check_nibble(const struct zt_content *content,
                                   const struct zt_component *component, uint8_t last_byte)
{
    if (last_byte >> 4 == 0)
        return ZT_OK;
    return zt_content_fail(content, component, "the high nibble after the last element is 0x%x",
                           last_byte >> 4);
}

/* Checks the last byte of plain data without reading the bytes before it. */
static enum zt_status check_plain_nibble(const struct zt_content *content,
                                         const struct zt_component *component)
{
    struct zt_source *source = zt_files_source(content->files, component);
    uint8_t last = 0;
    enum zt_status status;

    assert(source != NULL && zt_component_is_plain(component));
    if (component->length == 0)
        return ZT_OK;
    status = zt_source_read_at(source, component->offset + component->length - 1, &last, 1,
                               content->error);
    return status == ZT_OK ? check_nibble(content, component, last) : status;
}

static enum zt_status check_whole(const struct zt_content *content,
                                  const struct zt_component *component, bool has_bools)
{
    struct zt_content_reader reader;
    const uint8_t *bytes;
    uint8_t last = 0;
    size_t length;
    enum zt_status status = zt_content_reader_open(&reader, content, component);

    if (status != ZT_OK)
        return status;
    do {
        status = zt_content_reader_run(&reader, &bytes, &length);
        if (status == ZT_OK && has_bools)
            status = check_bools(content, component, bytes, length);
        if (status == ZT_OK && length > 0)
            last = bytes[length - 1];
    } while (status == ZT_OK && length > 0);
    if (status == ZT_OK && has_spare_nibble(content, component))
        status = check_nibble(content, component, last);
    zt_content_reader_close(&reader);
    return status;
}

/* Checks the rules of a component's type, and that the component decodes. */
static enum zt_status check_component(const struct zt_content *content,
                                      const struct zt_component *component)
{
    /* The components of an unknown layout may have any content. */
    bool has_bools = is_bool(component) && content->object->layout != ZT_LAYOUT_OTHER;
    bool has_nibble = has_spare_nibble(content, component);

    if (has_nibble && zt_files_source(content->files, component) != NULL &&
        zt_component_is_plain(component))
        return check_plain_nibble(content, component);
    if (has_bools || has_nibble)
        return check_whole(content, component, has_bools);
    /* The elements of a view are within the file, as opening has checked. */
    if (component->encoding == ZT_ENCODING_RAW || component->encoding == ZT_ENCODING_STRIDED ||
        component->encoding == ZT_ENCODING_UNKNOWN)
        return ZT_OK;
    return check_whole(content, component, false);
}

static enum zt_status check_layout(const struct zt_content *content)
{
    switch ((enum zt_layout)content->object->layout) {
    case ZT_LAYOUT_SPARSE_CSR:
        return zt_content_csr(content);
    case ZT_LAYOUT_SPARSE_COO:
        return zt_content_coo(content);
    case ZT_LAYOUT_ZT01_COO:
        return zt_content_zt01_coo(content);
    case ZT_LAYOUT_ZT01_CSR:
        return zt_content_zt01_csr(content);
    default:
        return ZT_OK;
    }
}

static bool is_named(const struct zt_component *component, const char *name)
{
    return zt_text_is(zt_component_name(component), name);
}

/* Whether the layout's rule reads a component to its end. */
static bool is_read_by_layout(const struct zt_object *object, const struct zt_component *component)
{
    switch ((enum zt_layout)object->layout) {
    case ZT_LAYOUT_SPARSE_CSR:
        return is_named(component, "indices") || is_named(component, "indptr");
    case ZT_LAYOUT_SPARSE_COO:
        return is_named(component, "coords");
    case ZT_LAYOUT_ZT01_COO:
    case ZT_LAYOUT_ZT01_CSR:
        return is_named(component, "data");
    default:
        return false;
    }
}

enum zt_status zt_object_check(const struct zt_model *model, const struct zt_object *object,
                               const struct zt_files *files, struct zt_error *error)
{
    const struct zt_content content = {model, object, zt_object_shape(model, object), files, error};
    const struct zt_component *components = zt_object_components(model, object);
    enum zt_status status = check_layout(&content);

    for (uint32_t i = 0; status == ZT_OK && i < object->component_count; i++)
        if (!is_read_by_layout(object, &components[i]))
            status = check_component(&content, &components[i]);
    return status;
}
