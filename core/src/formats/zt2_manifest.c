/* zTensor 2's manifest: root, shards and objects (deterministic CBOR; the manifest's schema). Parts
 * are in zt2_part.c. */
#include "formats/zt2_manifest.h"

#include <stdlib.h>
#include <string.h>

#include "formats/zt2_walk.h"
#include "model/layout.h"

static enum zt_status read_attribute(struct zt2_walk *walk, const struct zt_cbor_item *key)
{
    enum zt_status status = zt2_check_name(walk, key);

    return status == ZT_OK ? zt_cbor_skip(&walk->reader, walk->error) : status;
}

/* Keeps an attributes map as the bytes it is encoded in. */
static enum zt_status read_attributes(struct zt2_walk *walk, const struct zt_cbor_item *map,
                                      struct zt_text *out_span)
{
    const uint8_t *start = walk->reader.bytes + (map->offset - walk->reader.base_offset);
    enum zt_status status = zt2_read_entries(walk, map, read_attribute);

    if (status == ZT_OK)
        *out_span = (struct zt_text){(const char *)start,
                                     (size_t)(walk->reader.bytes + walk->reader.position - start)};
    return status;
}

/* --- objects --- */

static enum zt_status read_shape(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    struct zt_cbor_walk items;
    struct zt_cbor_item extent;
    bool more;
    enum zt_status status;

    if (value->kind != ZT_CBOR_ARRAY)
        return zt2_refuse(walk, value, "\"shape\" is not an array");
    if (value->value > ZT2_RANK_MAX)
        return zt_fail(walk->error, ZT_INVALID, "zt2 §3 Shape", value->offset,
                       "more than %d dimensions", ZT2_RANK_MAX);
    status = zt_cbor_enter(&walk->reader, value, &items, walk->error);
    while (status == ZT_OK) {
        status = zt_cbor_more(&walk->reader, &items, &more, walk->error);
        if (status != ZT_OK || !more)
            break;
        status = zt_cbor_next(&walk->reader, &extent, walk->error);
        if (status == ZT_OK && extent.kind != ZT_CBOR_UINT)
            status = zt2_refuse(walk, &extent, "a dimension is not an unsigned integer");
        if (status == ZT_OK)
            status = zt_builder_dimension(walk->builder, extent.value, walk->error);
    }
    return status;
}

static enum zt_status read_layout(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    struct zt_object *object = walk->object;
    enum zt_status status = zt2_read_text(walk, value, &object->format, &object->format_length);

    if (status == ZT_OK)
        object->layout = (uint8_t)zt_layout_from_name(
            ZT_LAYOUTS_ZT2, (struct zt_text){object->format, object->format_length});
    return status;
}

static enum zt_status read_parts(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    if (value->kind == ZT_CBOR_MAP && value->value == 0)
        return zt2_refuse(walk, value, "an object without parts");
    return zt2_read_entries(walk, value, zt2_read_part);
}

static enum zt_status read_object_attributes(struct zt2_walk *walk,
                                             const struct zt_cbor_item *value)
{
    struct zt_text span;
    enum zt_status status = read_attributes(walk, value, &span);

    if (status != ZT_OK)
        return status;
    walk->object->attributes = (const uint8_t *)span.bytes;
    walk->object->attributes_length = (uint32_t)span.length;
    return ZT_OK;
}

static enum zt_status read_object(struct zt2_walk *walk, const struct zt_cbor_item *key)
{
    static const struct zt2_field fields[] = {
        {"parts", true, read_parts},
        {"shape", true, read_shape},
        {"layout", true, read_layout},
        {"attributes", false, read_object_attributes},
    };
    struct zt_cbor_item map;
    enum zt_status status = zt2_check_name(walk, key);

    if (status == ZT_OK)
        status = zt_builder_object(walk->builder, &walk->object, walk->error);
    if (status != ZT_OK)
        return status;
    walk->object->name = (const char *)key->bytes;
    walk->object->name_length = (uint32_t)key->value;
    status = zt_cbor_next(&walk->reader, &map, walk->error);
    if (status == ZT_OK)
        status = zt2_read_fields(walk, &map, fields, sizeof(fields) / sizeof(fields[0]));
    if (status != ZT_OK)
        zt2_name_failure(walk, false);
    return status;
}

static enum zt_status read_objects(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    return zt2_read_entries(walk, value, read_object);
}

/* --- shards and root --- */

static enum zt_status read_shard_size(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    if (value->kind != ZT_CBOR_UINT)
        return zt2_refuse(walk, value, "a shard's \"size\" is not an unsigned integer");
    walk->shard->size_bytes = value->value;
    return ZT_OK;
}

static enum zt_status read_shard_digest(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    return zt2_read_digest(walk, value, &walk->shard->digest, &walk->shard->digest_length);
}

static enum zt_status read_shard(struct zt2_walk *walk, const struct zt_cbor_item *key)
{
    static const struct zt2_field fields[] = {
        {"size", true, read_shard_size},
        {"digest", true, read_shard_digest},
    };
    struct zt_cbor_item map;
    enum zt_status status = zt_builder_shard(walk->builder, &walk->shard, walk->error);

    if (status != ZT_OK)
        return status;
    walk->shard->name = (const char *)key->bytes;
    walk->shard->name_length = (uint32_t)key->value;
    status = zt_cbor_next(&walk->reader, &map, walk->error);
    return status == ZT_OK ? zt2_read_fields(walk, &map, fields, sizeof(fields) / sizeof(fields[0]))
                           : status;
}

static enum zt_status read_shards(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    enum zt_status status = zt2_read_entries(walk, value, read_shard);

    /* Shorter names come first in the file; in their final order they can be looked up, and
     * numbered, at once. */
    if (status == ZT_OK && walk->builder->model->shard_count > 0)
        qsort(walk->builder->shards, walk->builder->model->shard_count, sizeof(struct zt_shard),
              zt2_compare_shards);
    return status;
}

static enum zt_status read_root_attributes(struct zt2_walk *walk, const struct zt_cbor_item *value)
{
    return read_attributes(walk, value, &walk->builder->model->attributes);
}

static void start_reader(struct zt_cbor_reader *reader, const struct zt_model *model)
{
    zt_cbor_reader_init(reader, model->storage->manifest, (size_t)model->manifest_length,
                        model->manifest_offset, ZT_CBOR_ZT2, NULL);
}

/* A manifest is CBOR before it is anything else: a fault of encoding anywhere is told before one of
 * the schema. */
static enum zt_status prefer_cbor_fault(const struct zt_model *model, struct zt_error *error)
{
    struct zt_cbor_reader reader;
    struct zt_error fault;
    enum zt_status status;

    start_reader(&reader, model);
    status = zt_cbor_skip(&reader, &fault);
    if (status == ZT_OK)
        status = zt_cbor_end(&reader, &fault);
    if (status == ZT_OK || error == NULL)
        return ZT_INVALID;
    /* The walk met it itself, and knows in which object. */
    if (error->rule == NULL || strcmp(error->rule, fault.rule) != 0 ||
        error->offset != fault.offset)
        *error = fault;
    return status;
}

enum zt_status zt2_manifest_read(struct zt_builder *builder, struct zt_error *error)
{
    static const struct zt2_field fields[] = {
        {"shards", false, read_shards},
        {"objects", true, read_objects},
        {"attributes", false, read_root_attributes},
    };
    struct zt2_walk walk = {.builder = builder, .error = error};
    struct zt_cbor_item root;
    enum zt_status status;

    start_reader(&walk.reader, builder->model);
    status = zt_cbor_next(&walk.reader, &root, error);
    if (status == ZT_OK)
        status = zt2_read_fields(&walk, &root, fields, sizeof(fields) / sizeof(fields[0]));
    if (status == ZT_OK)
        status = zt_cbor_end(&walk.reader, error);
    return status == ZT_INVALID ? prefer_cbor_fault(builder->model, error) : status;
}
