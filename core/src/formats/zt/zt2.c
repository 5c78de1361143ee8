/* zTensor 2 (footer version 2): the container, and the rules that need the model as a whole.
 *
 * Checks are made in the format's order: sizes and magics, the footer's numbers, the manifest's
 * hash before its bytes are parsed, CBOR and schema, shards, each object by name, and overlap
 * last. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "formats/formats.h"
#include "formats/zt/zt2_manifest.h"
#include "model/layout.h"
#include "model/locate.h"
#include "model/model_build.h"

#define MAGIC          "\x89ZT2\r\n\x1a\n"
#define MAGIC_LENGTH   8
#define FOOTER_LENGTH  40
#define SIZE_MIN       (MAGIC_LENGTH + FOOTER_LENGTH)
#define FOOTER_VERSION 2
#define MANIFEST_MAX   (UINT64_C(1) << 30)
#define ALIGNMENT      4096 /* also the lowest offset of a blob */
#define SHARD_NAME_MAX 64

struct footer {
    uint64_t manifest_offset;
    uint64_t manifest_length;
    uint64_t manifest_hash;
    uint32_t version;
};

/* Whether a run of bytes ends at or before limit, computed without a sum that could overflow. */
static bool fits(uint64_t offset, uint64_t length, uint64_t limit)
{
    return offset <= limit && length <= limit - offset;
}

/* --- head and footer --- */

static enum zt_status read_footer(struct zt_source *source, uint64_t size,
                                  struct footer *out_footer, struct zt_error *error)
{
    uint8_t head[MAGIC_LENGTH];
    uint8_t tail[FOOTER_LENGTH];
    enum zt_status status;

    if (size < SIZE_MIN)
        return zt_fail(error, ZT_INVALID, "zt2 §1 FileTooSmall", 0,
                       CUT_OFF "%" PRIu64 " bytes, fewer than the %d of an "
                               "empty container",
                       size, SIZE_MIN);
    status = zt_source_read_at(source, 0, head, sizeof(head), error);
    if (status == ZT_OK)
        status = zt_source_read_at(source, size - FOOTER_LENGTH, tail, sizeof(tail), error);
    if (status != ZT_OK)
        return status;
    if (memcmp(head, MAGIC, MAGIC_LENGTH) != 0)
        return zt_fail(error, ZT_INVALID, "zt2 §1 HeaderMagic", 0,
                       "the file does not begin as zTensor 2 does");
    if (memcmp(tail + 32, MAGIC, MAGIC_LENGTH) != 0)
        return zt_fail(
            error, ZT_INVALID, "zt2 §1 FooterMagic", size - MAGIC_LENGTH,
            "the file is cut off, or something was appended: it does not end as zTensor 2 does");
    *out_footer = (struct footer){.manifest_offset = zt_load_le64(tail),
                                  .manifest_length = zt_load_le64(tail + 8),
                                  .manifest_hash = zt_load_le64(tail + 16),
                                  .version = zt_load_le32(tail + 24)};
    return ZT_OK;
}

static enum zt_status check_footer(const struct footer *footer, uint64_t size,
                                   struct zt_error *error)
{
    const uint64_t at = size - FOOTER_LENGTH;

    assert(size >= SIZE_MIN);
    if (footer->version != FOOTER_VERSION)
        return zt_fail(error, ZT_INVALID, "zt2 §1 Version", at + 24,
                       "footer version %" PRIu32 " is not %d", footer->version, FOOTER_VERSION);
    if (footer->manifest_length == 0) {
        if (footer->manifest_offset != 0 || footer->manifest_hash != 0)
            return zt_fail(error, ZT_INVALID, "zt2 §1 ManifestBounds",
                           footer->manifest_offset != 0 ? at : at + 16,
                           "the footer has an offset or a hash but no manifest");
        return zt_fail(error, ZT_DATA_SHARD, NULL, ZT_NO_OFFSET,
                       "a data shard: it has no manifest");
    }
    if (footer->manifest_length > MANIFEST_MAX)
        return zt_fail(error, ZT_INVALID, "zt2 §1 ManifestTooLarge", at + 8,
                       "a manifest of %" PRIu64 " bytes, more than 1 GiB", footer->manifest_length);
    if (footer->manifest_offset % ALIGNMENT != 0 || footer->manifest_offset < ALIGNMENT)
        return zt_fail(error, ZT_INVALID, "zt2 §1 BlobAlignment", at,
                       "manifest offset %" PRIu64 " is not a multiple of %d past the header",
                       footer->manifest_offset, ALIGNMENT);
    if (!fits(footer->manifest_offset, footer->manifest_length, at))
        return zt_fail(error, ZT_INVALID, "zt2 §1 ManifestBounds", at,
                       "manifest at %" PRIu64 "+%" PRIu64 " is not before the footer at %" PRIu64,
                       footer->manifest_offset, footer->manifest_length, at);
    return ZT_OK;
}

/* --- the model as a whole --- */

static bool is_shard_name(const struct zt_shard *shard)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    if (shard->name_length == 0 || shard->name_length > SHARD_NAME_MAX || shard->name[0] == '.')
        return false;
    for (uint32_t i = 0; i < shard->name_length; i++)
        if (memchr(set, shard->name[i], sizeof(set) - 1) == NULL)
            return false;
    return true;
}

static enum zt_status check_shards(const struct zt_model *model, struct zt_error *error)
{
    for (uint32_t i = 0; i < model->shard_count; i++) {
        const struct zt_shard *shard = &model->shards[i];
        uint64_t at = zt_manifest_position(model, shard->name);

        if (!is_shard_name(shard))
            return zt_fail(
                error, ZT_INVALID, "zt2 §9 ShardName", at,
                "a shard's name is 1 to %d of A-Z a-z 0-9 . _ - and does not begin with a dot",
                SHARD_NAME_MAX);
        if (shard->size_bytes < SIZE_MIN)
            return zt_fail(error, ZT_INVALID, "zt2 §3 Schema", at,
                           "a shard of %" PRIu64 " bytes: fewer than %d", shard->size_bytes,
                           SIZE_MIN);
    }
    return ZT_OK;
}

static enum zt_status check_placement(const struct zt_model *model, const struct zt_component *part,
                                      struct zt_error *error)
{
    const uint64_t at = zt_manifest_position(model, part->name);
    uint64_t size;

    if (part->offset % ALIGNMENT != 0 || part->offset < ALIGNMENT)
        return zt_fail(error, ZT_INVALID, "zt2 §1 BlobAlignment", at,
                       "offset %" PRIu64 " is not a multiple of %d past the header", part->offset,
                       ALIGNMENT);
    if (part->shard == ZT2_SHARD_UNDECLARED)
        return zt_fail(error, ZT_INVALID, "zt2 §9 ShardRef", at,
                       "the part's shard is not in the table of shards");
    assert(part->shard <= model->shard_count);
    size = part->shard == 0 ? model->file_size : model->shards[part->shard - 1].size_bytes;
    assert(size >= FOOTER_LENGTH);
    if (!fits(part->offset, part->length, size - FOOTER_LENGTH))
        return zt_fail(error, ZT_INVALID, "zt2 §1 BlobBounds", at,
                       "bytes %" PRIu64 "+%" PRIu64 " are not before the footer at %" PRIu64,
                       part->offset, part->length, size - FOOTER_LENGTH);
    return ZT_OK;
}

static enum zt_status check_part(const struct zt_model *model, const struct zt_object *object,
                                 const struct zt_component *part, struct zt_error *error)
{
    enum zt_status status = check_placement(model, part, error);
    bool known = part->logical != ZT_LOGICAL_NONE && part->logical != ZT_LOGICAL_UNKNOWN;

    if (status == ZT_OK && known &&
        zt_logical_storage((enum zt_logical)part->logical) != part->dtype)
        status =
            zt_fail(error, ZT_INVALID, "zt2 §3 Schema", zt_manifest_position(model, part->name),
                    "type %s is not stored as %s", zt_logical_name((enum zt_logical)part->logical),
                    zt_dtype_name((enum zt_dtype)part->dtype));
    if (status != ZT_OK)
        zt_error_at(error, zt_object_name(object), zt_component_name(part));
    return status;
}

static enum zt_status check_object(const struct zt_model *model, const struct zt_object *object,
                                   struct zt_error *error)
{
    const struct zt_component *parts = zt_object_components(model, object);
    uint64_t elements;
    enum zt_status status = ZT_OK;

    if (!zt_shape_product(zt_object_shape(model, object), object->rank, &elements)) {
        zt_fail(error, ZT_INVALID, "zt2 §3 Shape", zt_manifest_position(model, object->name),
                "the number of elements does not fit in 64 bits");
        zt_error_at(error, zt_object_name(object), (struct zt_text){"", 0});
        return ZT_INVALID;
    }
    for (uint32_t i = 0; i < object->component_count && status == ZT_OK; i++)
        status = check_part(model, object, &parts[i], error);
    return status == ZT_OK ? zt_layout_check(model, object, ZT_LAYOUTS_ZT2, error) : status;
}

static enum zt_status check_model(void *state, struct zt_model *model, struct zt_error *error)
{
    enum zt_status status = check_shards(model, error);

    (void)state;
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        status = check_object(model, &model->objects[i], error);
    return status;
}

/* --- opening --- */

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    struct footer *footer = state;
    uint64_t size = zt_source_size(source);
    enum zt_status status = read_footer(source, size, footer, error);

    if (status == ZT_OK)
        status = check_footer(footer, size, error);
    if (status == ZT_OK)
        *out_place = (struct zt_manifest_place){footer->manifest_offset, footer->manifest_length};
    return status;
}

static enum zt_status read_manifest(void *state, struct zt_builder *builder, struct zt_error *error)
{
    const struct footer *footer = state;
    struct zt_model *model = builder->model;

    if (model->manifest_hash != footer->manifest_hash)
        return zt_fail(error, ZT_INVALID, "zt2 §1 ManifestHash",
                       model->file_size - FOOTER_LENGTH + 16,
                       "the manifest hashes to %016" PRIx64 ", the footer says %016" PRIx64,
                       model->manifest_hash, footer->manifest_hash);
    model->version = zt_text_from("2");
    return zt2_manifest_read(builder, error);
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_ZT2,
    .name = "zt",
    .duplicate_rule = "zt2 §2 CborDuplicateKey",
    .overlap_rule = "zt2 §1 BlobOverlap",
    .covers_manifest = true,
    .locate = locate,
    .read = read_manifest,
    .check = check_model,
};

enum zt_status zt2_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error)
{
    struct footer footer = {0};

    return zt_reader_open(&reader, &footer, source, out_model, error);
}
