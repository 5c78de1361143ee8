/* zTensor 2's canonical form, in which each model has exactly one file.
 *
 * The checks cover the model (encodings, digests, names, places), then the manifest, which must
 * equal a fresh encoding of the model, then every byte of the file: each blob must have its digest,
 * bytes between blobs must be zero, and no two blobs may be identical. Empty parts take no space
 * and are exempt from the rules on places and sharing. Rules "zt2 §7 …", listed in
 * docs/rules/zt2.md. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "cbor/cbor_read.h"
#include "check/canonical.h"
#include "model/locate.h"
#include "model/model_build.h"
#include "model/zt2_encode.h"

/* Blobs and manifest are at successive multiples of this, from the first one on. */
#define PACKING UINT64_C(65536)
/* The XXH3-64 of no bytes. */
#define EMPTY_DIGEST "xxh3:2d06800538d394c2"

#define MEMORY_PURPOSE "the canonical check"

static uint64_t next_place(uint64_t end)
{
    return end + (PACKING - end % PACKING) % PACKING;
}

enum zt_status zt_canonical_fail(const struct zt_canonical *check, const struct zt_component *part,
                                 const char *rule, const char *message)
{
    zt_fail(check->error, ZT_INVALID, rule, zt_manifest_position(check->model, part->name), "%s",
            message);
    zt_error_at(check->error, zt_object_name(zt_component_owner(check->model, part)),
                zt_component_name(part));
    return ZT_INVALID;
}

/* --- the model --- */

static enum zt_status check_name(const struct zt_canonical *check, struct zt_text name)
{
    bool composed = false;

    if (zt_name_is_nfc(name, &composed) != ZT_OK)
        return zt_fail_memory(check->error, MEMORY_PURPOSE);
    if (composed)
        return ZT_OK;
    return zt_fail(check->error, ZT_INVALID, "zt2 §7 Name",
                   zt_manifest_position(check->model, name.bytes),
                   "a name is not in Unicode normalization form C");
}

/* Checks the top-level keys of an attributes map, which are names too. The map was validated when
 * the model was opened. */
static enum zt_status check_keys(const struct zt_canonical *check, const void *map, size_t length)
{
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_cbor_walk pairs;
    enum zt_status status;

    if (length == 0)
        return ZT_OK;
    zt_cbor_reader_init(&reader, map, length, zt_manifest_position(check->model, map), ZT_CBOR_ZT2,
                        NULL);
    status = zt_cbor_next(&reader, &item, check->error);
    if (status != ZT_OK)
        return status;
    pairs = zt_cbor_enter(&reader, &item);
    while (status == ZT_OK && zt_cbor_more(&reader, &pairs)) {
        status = zt_cbor_key(&reader, &pairs, &item, check->error);
        if (status == ZT_OK)
            status = check_name(check, zt_cbor_content(&item));
        if (status == ZT_OK)
            status = zt_cbor_skip(&reader, check->error);
    }
    return status;
}

static enum zt_status check_part(const struct zt_canonical *check, const struct zt_component *part)
{
    static const char algorithm[] = "xxh3:";

    if (part->encoding != ZT_ENCODING_RAW)
        return zt_canonical_fail(check, part, "zt2 §7 Encoding",
                                 "an encoded part: canonical form requires raw parts");
    if (part->digest == NULL)
        return zt_canonical_fail(check, part, "zt2 §7 Digest",
                                 "a part without a digest: canonical form requires xxh3");
    if (part->digest_length != ZT_CANONICAL_DIGEST_LENGTH ||
        memcmp(part->digest, algorithm, sizeof(algorithm) - 1) != 0)
        return zt_canonical_fail(check, part, "zt2 §7 Digest", "a digest other than xxh3");
    return check_name(check, zt_component_name(part));
}

static enum zt_status check_object(const struct zt_canonical *check, const struct zt_object *object)
{
    const struct zt_component *parts = zt_object_components(check->model, object);
    enum zt_status status = check_name(check, zt_object_name(object));

    if (status == ZT_OK)
        status = check_keys(check, object->attributes, object->attributes_length);
    for (uint32_t i = 0; i < object->component_count && status == ZT_OK; i++)
        status = check_part(check, &parts[i]);
    return status;
}

static enum zt_status check_model(const struct zt_canonical *check)
{
    const struct zt_model *model = check->model;
    enum zt_status status = ZT_OK;

    if (model->shard_count > 0)
        return zt_fail(check->error, ZT_INVALID, "zt2 §7 Shards",
                       zt_manifest_position(model, model->shards[0].name),
                       "parts in shards: canonical form is one file");
    status = check_keys(check, model->attributes.bytes, model->attributes.length);
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        status = check_object(check, &model->objects[i]);
    return status;
}

/* --- places --- */

/* The first part that shares this part's blob; NULL if this part is the first. */
static const struct zt_component *find_blob(const struct zt_canonical *check,
                                            const struct zt_component *part)
{
    const struct zt_component *components = check->model->components;
    uint32_t low = 0;
    uint32_t high = check->blob_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (components[check->blobs[middle]].offset < part->offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == check->blob_count || components[check->blobs[low]].offset != part->offset)
        return NULL;
    /* Blobs are identical or disjoint, as checked when the model was opened. */
    assert(components[check->blobs[low]].length == part->length);
    return &components[check->blobs[low]];
}

static enum zt_status check_empty(const struct zt_canonical *check, const struct zt_component *part)
{
    assert(part->length == 0 && part->digest_length == ZT_CANONICAL_DIGEST_LENGTH);
    if (memcmp(part->digest, EMPTY_DIGEST, ZT_CANONICAL_DIGEST_LENGTH) == 0)
        return ZT_OK;
    return zt_canonical_fail(check, part, "zt2 §7 Digest",
                             "the digest does not match an empty part");
}

static enum zt_status place_part(struct zt_canonical *check, const struct zt_component *part,
                                 uint64_t *place)
{
    const struct zt_component *first;

    if (part->length == 0)
        return check_empty(check, part);
    first = find_blob(check, part);
    if (first != NULL && memcmp(first->digest, part->digest, ZT_CANONICAL_DIGEST_LENGTH) != 0)
        return zt_canonical_fail(check, part, "zt2 §7 Digest", "two digests of the same bytes");
    if (first != NULL)
        return ZT_OK;
    if (part->offset != *place)
        return zt_canonical_fail(
            check, part, "zt2 §7 Placement",
            "the bytes are not at the next multiple of 65536, in the order of names");
    assert(check->blob_count < check->model->component_count);
    check->blobs[check->blob_count++] = zt_component_index(check->model, part);
    *place = next_place(part->offset + part->length);
    assert(*place % PACKING == 0 && *place > part->offset);
    return ZT_OK;
}

static enum zt_status check_places(struct zt_canonical *check)
{
    const struct zt_model *model = check->model;
    const uint64_t footer = model->file_size - ZT_CANONICAL_FOOTER_LENGTH;
    enum zt_status status = ZT_OK;
    uint64_t place = PACKING;

    assert(model->file_size >= ZT_CANONICAL_FOOTER_LENGTH && check->blob_count == 0);
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_component *parts = zt_object_components(model, &model->objects[i]);

        for (uint32_t j = 0; j < model->objects[i].component_count && status == ZT_OK; j++)
            status = place_part(check, &parts[j], &place);
    }
    if (status != ZT_OK)
        return status;
    assert(check->blob_count <= model->component_count);
    if (model->manifest_offset != place)
        return zt_fail(check->error, ZT_INVALID, "zt2 §7 Placement", model->manifest_offset,
                       "the manifest is not at %" PRIu64 ", right after the last blob", place);
    if (model->manifest_offset + model->manifest_length != footer)
        return zt_fail(check->error, ZT_INVALID, "zt2 §7 Unreferenced",
                       model->manifest_offset + model->manifest_length,
                       "bytes between the manifest and the footer");
    return ZT_OK;
}

/* --- the manifest against a fresh encoding --- */

struct comparison {
    const struct zt_canonical *check;
    const uint8_t *bytes;
    uint64_t length;
    uint64_t position;
};

static enum zt_status compare_piece(void *context, const void *bytes, size_t length,
                                    struct zt_error *error)
{
    struct comparison *comparison = context;
    const uint8_t *fresh = bytes;
    size_t equal = 0;

    while (equal < length && comparison->position + equal < comparison->length &&
           comparison->bytes[comparison->position + equal] == fresh[equal])
        equal++;
    comparison->position += equal;
    assert(comparison->position <= comparison->length);
    if (equal == length)
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, "zt2 §7 Manifest",
                   comparison->check->model->manifest_offset + comparison->position,
                   "the manifest differs from its model's canonical encoding (an unknown key, or "
                   "an empty map that should be omitted)");
}

static enum zt_status compare_buffer(struct comparison *comparison, struct zt_buffer *buffer)
{
    enum zt_status status =
        buffer->failed
            ? ZT_NO_MEMORY
            : compare_piece(comparison, buffer->bytes, buffer->length, comparison->check->error);

    buffer->length = 0;
    return status;
}

static enum zt_status check_manifest(const struct zt_canonical *check)
{
    const struct zt_model *model = check->model;
    struct comparison comparison = {check, model->storage->manifest, model->manifest_length, 0};
    struct zt_buffer buffer = {0};
    enum zt_status status;

    assert(model->shard_count == 0);
    zt_cbor_put_map(&buffer, model->attributes.length > 0 ? 2 : 1);
    zt_cbor_put_string(&buffer, "objects");
    status = compare_buffer(&comparison, &buffer);
    if (status == ZT_OK)
        status = zt2_encode_objects(model, ZT2_VIEW_MANIFEST,
                                    &(struct zt_sink){compare_piece, &comparison}, check->error);
    if (status == ZT_OK && model->attributes.length > 0) {
        zt_cbor_put_string(&buffer, "attributes");
        zt_buffer_append(&buffer, model->attributes.bytes, model->attributes.length);
        status = compare_buffer(&comparison, &buffer);
    }
    zt_buffer_free(&buffer);
    /* Surplus bytes could only be an unknown key, which would have changed the count of keys. */
    return status == ZT_NO_MEMORY ? zt_fail_memory(check->error, MEMORY_PURPOSE) : status;
}

enum zt_status zt_canonical_check(const struct zt_model *model, struct zt_source *source,
                                  struct zt_error *error)
{
    struct zt_canonical check = {.model = model, .source = source, .error = error};
    enum zt_status status;

    if (model->format != ZT_FORMAT_ZT2)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "only zTensor 2 has a canonical form");
    check.blobs = calloc(model->component_count + (size_t)1, sizeof(*check.blobs));
    check.chunk = malloc(2 * ZT_CANONICAL_CHUNK_LENGTH);
    if (check.blobs == NULL || check.chunk == NULL) {
        status = zt_fail_memory(error, MEMORY_PURPOSE);
        goto out;
    }
    status = check_model(&check);
    if (status == ZT_OK)
        status = check_places(&check);
    if (status == ZT_OK)
        status = check_manifest(&check);
    if (status == ZT_OK)
        status = zt_canonical_check_bytes(&check);
    if (status == ZT_OK)
        status = zt_canonical_check_sharing(&check);
out:
    free(check.chunk);
    free(check.blobs);
    return status;
}
