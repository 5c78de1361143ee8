/* One part of an object in zTensor 2's manifest: where its bytes are, and what they mean.
 *
 * Shards stand before objects in deterministic CBOR, so a part's shard is looked up as it is read.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/zt2_manifest.h"
#include "formats/zt2_walk.h"

static enum zt_status read_blob(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    struct zt_cbor_walk items;
    struct zt_cbor_item numbers[2];
    bool more;
    enum zt_status status;

    if (value->kind != ZT_CBOR_ARRAY || value->value != 2)
        return zt2_refuse(walk, value, "\"blob\" is not [offset, length]");
    status = zt_cbor_enter(&walk->reader, value, &items, walk->error);
    for (int i = 0; i < 2 && status == ZT_OK; i++) {
        status = zt_cbor_more(&walk->reader, &items, &more, walk->error);
        if (status == ZT_OK)
            status = zt_cbor_next(&walk->reader, &numbers[i], walk->error);
        if (status == ZT_OK && numbers[i].kind != ZT_CBOR_UINT)
            status = zt2_refuse(walk, &numbers[i],
                                "\"blob\" holds something else than unsigned integers");
    }
    if (status == ZT_OK)
        status = zt_cbor_more(&walk->reader, &items, &more, walk->error); /* leaves the array */
    if (status != ZT_OK)
        return status;
    walk->part->offset = numbers[0].value;
    walk->part->length = numbers[1].value;
    return ZT_OK;
}

static enum zt_status read_type(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    enum zt_status status = zt2_read_text(walk, value, &walk->part->type, &walk->part->type_length);

    if (status == ZT_OK)
        walk->part->logical = (uint8_t)zt_logical_from_name(
            (struct zt_text){walk->part->type, walk->part->type_length});
    return status;
}

static enum zt_status read_dtype(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    struct zt_text name = {(const char *)value->bytes, (size_t)value->value};
    enum zt_dtype dtype;

    if (value->kind != ZT_CBOR_TEXT || !zt_dtype_from_name(name, &dtype) || dtype == ZT_BOOL)
        return zt2_refuse(walk, value, "\"dtype\" is not one of the storage types");
    walk->part->dtype = (uint8_t)dtype;
    return ZT_OK;
}

static enum zt_status read_shard_reference(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    struct zt_shard wanted = {0};
    enum zt_status status = zt2_read_text(walk, value, &wanted.name, &wanted.name_length);
    const struct zt_shard *found = NULL;

    if (status != ZT_OK)
        return status;
    if (walk->builder->model->shard_count > 0)
        found = bsearch(&wanted, walk->builder->shards, walk->builder->model->shard_count,
                        sizeof(wanted), zt2_compare_shards);
    walk->part->shard =
        found != NULL ? 1 + (uint32_t)(found - walk->builder->shards) : ZT2_SHARD_UNDECLARED;
    return ZT_OK;
}

static enum zt_status read_part_digest(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    return zt2_read_digest(walk, value, &walk->part->digest, &walk->part->digest_length);
}

static enum zt_status read_encoding(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    static const char seekable[] = "zt.zstd-seekable/1";
    struct zt_component *part = walk->part;
    enum zt_status status =
        zt2_read_text(walk, value, &part->encoding_name, &part->encoding_length);

    if (status != ZT_OK)
        return status;
    walk->has_encoding = true;
    part->encoding = ZT_ENCODING_UNKNOWN;
    if (part->encoding_length == sizeof(seekable) - 1 &&
        memcmp(part->encoding_name, seekable, part->encoding_length) == 0)
        part->encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    return ZT_OK;
}

static enum zt_status read_decoded_length(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    if (value->kind != ZT_CBOR_UINT || value->value == ZT_LENGTH_UNKNOWN)
        return zt2_refuse(walk, value, "\"decoded_length\" is not a length in bytes");
    walk->has_decoded_length = true;
    walk->part->decoded_length = value->value;
    return ZT_OK;
}

static enum zt_status read_part_fields(struct zt2_walk *walk)
{
    static const struct zt2_field fields[] = {
        {"blob", true, read_blob},
        {"type", false, read_type},
        {"dtype", true, read_dtype},
        {"shard", false, read_shard_reference},
        {"digest", false, read_part_digest},
        {"encoding", false, read_encoding},
        {"decoded_length", false, read_decoded_length},
    };
    struct zt_cbor_item map;
    enum zt_status status = zt_cbor_next(&walk->reader, &map, walk->error);

    walk->has_encoding = walk->has_decoded_length = false;
    if (status == ZT_OK)
        status = zt2_read_fields(walk, &map, fields, sizeof(fields) / sizeof(fields[0]));
    if (status != ZT_OK)
        return status;
    if (walk->has_encoding != walk->has_decoded_length)
        return zt2_refuse(walk, &map,
                          "\"encoding\" and \"decoded_length\" come together or not at all");
    if (!walk->has_encoding)
        walk->part->decoded_length = walk->part->length;
    return ZT_OK;
}

enum zt_status zt2_read_part(struct zt2_walk *walk, const struct zt_cbor_item *key)
{
    static const char raw[] = "raw";
    enum zt_status status = zt2_check_name(walk, key);

    if (status == ZT_OK)
        status = zt_builder_component(walk->builder, &walk->part, walk->error);
    if (status != ZT_OK)
        return status;
    walk->part->name = (const char *)key->bytes;
    walk->part->name_length = (uint32_t)key->value;
    walk->part->encoding_name = raw;
    walk->part->encoding_length = sizeof(raw) - 1;
    status = read_part_fields(walk);
    if (status != ZT_OK)
        zt2_name_failure(walk, true);
    return status;
}
