/* zTensor 2's manifest: root, shards, objects and their parts (deterministic CBOR; the manifest's
 * schema). */
#include "formats/zt/zt2_manifest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "formats/zt/fields.h"
#include "model/layout.h"

static const struct zt_family_rules rules = {
    .schema = "zt2 §3 Schema",
    .shape = "zt2 §3 Shape",
    .name = "zt2 §3 Name",
};

struct reading {
    struct zt_builder *builder;
    struct zt_cbor_reader reader;
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* --- digests --- */

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* Whether text is "algorithm:hex" in lower case. Any algorithm is allowed. */
static bool is_digest(struct zt_text text)
{
    size_t colon = 0;

    while (colon < text.length &&
           is_one_of(text.bytes[colon], "abcdefghijklmnopqrstuvwxyz0123456789"))
        colon++;
    if (colon == 0 || colon + 1 >= text.length || text.bytes[colon] != ':')
        return false;
    for (size_t i = colon + 1; i < text.length; i++)
        if (!is_one_of(text.bytes[i], ZT_HEX_LOWER))
            return false;
    return true;
}

/* Like zt_field_read_text, for a digest. */
static enum zt_status read_digest(void *context, const struct zt_field *field,
                                  struct zt_error *error)
{
    struct zt_placed_text digest = {0};
    enum zt_status status = zt_field_text(field, &digest, error);

    if (status != ZT_OK)
        return status;
    if (!is_digest(digest.text))
        return zt_field_fail(field, "a digest, lower-case \"algorithm:hex\"", error);
    memcpy((char *)context + field->entry->at, &digest, sizeof(digest));
    return ZT_OK;
}

/* --- parts --- */

struct part_fields {
    struct reading *reading;
    struct zt_component *part;
    struct zt_placed_text type;
    struct zt_placed_text shard;
    struct zt_placed_text digest;
    struct zt_placed_text encoding;
    uint64_t decoded_length; /* ZT_LENGTH_UNKNOWN: the field is absent */
};

/* Reads [offset, length]. */
static enum zt_status read_blob(void *context, const struct zt_field *field, struct zt_error *error)
{
    struct zt_component *part = ((struct part_fields *)context)->part;
    struct zt_cbor_reader *reader = field->reader;
    struct zt_cbor_walk walk;
    struct zt_cbor_item array;
    struct zt_cbor_item numbers[2];
    unsigned count = 0;
    enum zt_status status = zt_cbor_next(reader, &array, error);

    if (status != ZT_OK)
        return status;
    if (array.kind != ZT_CBOR_ARRAY || array.value != 2)
        return zt_field_fail(field, "[offset, length]", error);
    walk = zt_cbor_enter(reader, &array);
    while (zt_cbor_more(reader, &walk)) {
        struct zt_cbor_item *number = &numbers[count++];

        assert(count <= 2);
        status = zt_cbor_next(reader, number, error);
        if (status != ZT_OK)
            return status;
        if (number->kind != ZT_CBOR_UINT)
            return zt_fail(error, ZT_INVALID, rules.schema, number->offset,
                           "an offset or a length of \"blob\" is not an unsigned integer");
    }
    assert(count == 2);
    part->offset = numbers[0].value;
    part->length = numbers[1].value;
    return ZT_OK;
}

static enum zt_status read_dtype(void *context, const struct zt_field *field,
                                 struct zt_error *error)
{
    struct zt_component *part = ((struct part_fields *)context)->part;
    struct zt_placed_text name = {0};
    enum zt_dtype dtype;
    enum zt_status status = zt_field_text(field, &name, error);

    if (status != ZT_OK)
        return status;
    if (!zt_dtype_from_name(name.text, &dtype) || dtype == ZT_BOOL)
        return zt_field_fail(field, "one of the storage types", error);
    part->dtype = (uint8_t)dtype;
    return ZT_OK;
}

static enum zt_status read_decoded_length(void *context, const struct zt_field *field,
                                          struct zt_error *error)
{
    struct part_fields *fields = context;
    enum zt_status status = zt_field_uint(field, &fields->decoded_length, error);

    if (status == ZT_OK && fields->decoded_length == ZT_LENGTH_UNKNOWN)
        return zt_field_fail(field, "a length in bytes", error);
    return status;
}

#define AT(member) offsetof(struct part_fields, member)

static const struct zt_map_field part_fields[] = {
    {"blob", ZT_FIELD_REQUIRED, read_blob, 0},
    {"type", 0, zt_field_read_text, AT(type)},
    {"dtype", ZT_FIELD_REQUIRED, read_dtype, 0},
    {"shard", 0, zt_field_read_text, AT(shard)},
    {"digest", 0, read_digest, AT(digest)},
    {"encoding", 0, zt_field_read_text, AT(encoding)},
    {"decoded_length", 0, read_decoded_length, 0},
};

#undef AT

static const struct zt_map_schema part_schema = {
    .what = "the part", .rules = &rules, .fields = part_fields, .count = COUNT(part_fields)};

static int compare_shards(const void *a, const void *b)
{
    const struct zt_shard *left = a;
    const struct zt_shard *right = b;

    return zt_text_compare((struct zt_text){left->name, left->name_length},
                           (struct zt_text){right->name, right->name_length});
}

/* "shards" comes before "objects" in deterministic CBOR, so the table is complete here. */
static uint32_t find_shard(const struct zt_builder *builder, struct zt_text name)
{
    struct zt_shard wanted = {.name = name.bytes, .name_length = (uint32_t)name.length};
    const struct zt_shard *found = NULL;

    if (builder->model->shard_count > 0)
        found = bsearch(&wanted, builder->shards, builder->model->shard_count, sizeof(wanted),
                        compare_shards);
    return found != NULL ? 1 + (uint32_t)(found - builder->shards) : ZT2_SHARD_UNDECLARED;
}

static void set_encoding(struct part_fields *fields)
{
    struct zt_component *part = fields->part;
    struct zt_text encoding = fields->encoding.text;

    if (encoding.bytes == NULL) {
        zt_component_set_encoding(part, encoding);
        return;
    }
    part->encoding_name = encoding.bytes;
    part->encoding_length = (uint32_t)encoding.length;
    part->encoding = zt_text_is(encoding, "zt.zstd-seekable/1") ? ZT_ENCODING_ZSTD_SEEKABLE
                                                                : ZT_ENCODING_UNKNOWN;
    part->decoded_length = fields->decoded_length;
}

static enum zt_status read_part_fields(struct part_fields *fields, struct zt_error *error)
{
    struct reading *reading = fields->reading;
    struct zt_component *part = fields->part;
    uint64_t at = reading->reader.base_offset + reading->reader.position;
    enum zt_status status = zt_map_read(&reading->reader, &part_schema, fields, error);
    bool is_encoded = fields->encoding.text.bytes != NULL;

    if (status != ZT_OK)
        return status;
    if (is_encoded != (fields->decoded_length != ZT_LENGTH_UNKNOWN))
        return zt_fail(error, ZT_INVALID, rules.schema, at,
                       "\"encoding\" and \"decoded_length\" come together or not at all");
    set_encoding(fields);
    if (fields->type.text.bytes != NULL) {
        part->type = fields->type.text.bytes;
        part->type_length = (uint32_t)fields->type.text.length;
        part->logical = (uint8_t)zt_logical_from_name(fields->type.text);
    }
    if (fields->shard.text.bytes != NULL)
        part->shard = find_shard(reading->builder, fields->shard.text);
    part->digest = fields->digest.text.bytes;
    part->digest_length = (uint32_t)fields->digest.text.length;
    return ZT_OK;
}

static enum zt_status read_part(void *context, const struct zt_cbor_item *key,
                                struct zt_error *error)
{
    struct part_fields fields = {.reading = context, .decoded_length = ZT_LENGTH_UNKNOWN};
    struct zt_builder *builder = fields.reading->builder;
    enum zt_status status = zt_name_check(key, &rules, error);

    if (status == ZT_OK)
        status = zt_builder_component(builder, &fields.part, error);
    if (status != ZT_OK)
        return status;
    fields.part->name = (const char *)key->bytes;
    fields.part->name_length = (uint32_t)key->value;
    status = read_part_fields(&fields, error);
    if (status != ZT_OK)
        zt_error_within(error, zt_object_name(zt_last_object(builder)),
                        zt_component_name(fields.part));
    return status;
}

/* --- objects --- */

static enum zt_status read_shape(void *context, const struct zt_field *field,
                                 struct zt_error *error)
{
    return zt_field_dimensions(field, ((struct reading *)context)->builder, error);
}

static enum zt_status read_layout(void *context, const struct zt_field *field,
                                  struct zt_error *error)
{
    struct zt_object *object = zt_last_object(((struct reading *)context)->builder);
    struct zt_placed_text layout = {0};
    enum zt_status status = zt_field_text(field, &layout, error);

    if (status != ZT_OK)
        return status;
    object->format = layout.text.bytes;
    object->format_length = (uint32_t)layout.text.length;
    object->layout = (uint8_t)zt_layout_from_name(ZT_LAYOUTS_ZT2, layout.text);
    return ZT_OK;
}

static enum zt_status read_parts(void *context, const struct zt_field *field,
                                 struct zt_error *error)
{
    enum zt_status status = zt_field_entries(field, read_part, context, error);

    if (status == ZT_OK &&
        zt_last_object(((struct reading *)context)->builder)->component_count == 0)
        return zt_field_fail(field, "a map of at least one part", error);
    return status;
}

static enum zt_status read_object_attributes(void *context, const struct zt_field *field,
                                             struct zt_error *error)
{
    struct zt_object *object = zt_last_object(((struct reading *)context)->builder);
    struct zt_text span;
    enum zt_status status = zt_field_attributes(field, &span, error);

    if (status != ZT_OK)
        return status;
    object->attributes = (const uint8_t *)span.bytes;
    object->attributes_length = (uint32_t)span.length;
    return ZT_OK;
}

static const struct zt_map_field object_fields[] = {
    {"parts", ZT_FIELD_REQUIRED, read_parts, 0},
    {"shape", ZT_FIELD_REQUIRED, read_shape, 0},
    {"layout", ZT_FIELD_REQUIRED, read_layout, 0},
    {"attributes", 0, read_object_attributes, 0},
};

static const struct zt_map_schema object_schema = {
    .what = "the object", .rules = &rules, .fields = object_fields, .count = COUNT(object_fields)};

static enum zt_status read_object(void *context, const struct zt_cbor_item *key,
                                  struct zt_error *error)
{
    struct reading *reading = context;
    struct zt_object *object;
    enum zt_status status = zt_name_check(key, &rules, error);

    if (status == ZT_OK)
        status = zt_builder_object(reading->builder, &object, error);
    if (status != ZT_OK)
        return status;
    object->name = (const char *)key->bytes;
    object->name_length = (uint32_t)key->value;
    status = zt_map_read(&reading->reader, &object_schema, reading, error);
    if (status != ZT_OK)
        zt_error_within(error, zt_object_name(object), (struct zt_text){NULL, 0});
    return status;
}

static enum zt_status read_objects(void *context, const struct zt_field *field,
                                   struct zt_error *error)
{
    return zt_field_entries(field, read_object, context, error);
}

/* --- shards and root --- */

struct shard_fields {
    uint64_t size;
    struct zt_placed_text digest;
};

static const struct zt_map_field shard_fields[] = {
    {"size", ZT_FIELD_REQUIRED, zt_field_read_uint, offsetof(struct shard_fields, size)},
    {"digest", ZT_FIELD_REQUIRED, read_digest, offsetof(struct shard_fields, digest)},
};

static const struct zt_map_schema shard_schema = {
    .what = "the shard", .rules = &rules, .fields = shard_fields, .count = COUNT(shard_fields)};

static enum zt_status read_shard(void *context, const struct zt_cbor_item *key,
                                 struct zt_error *error)
{
    struct reading *reading = context;
    struct shard_fields fields = {0};
    struct zt_shard *shard;
    enum zt_status status = zt_map_read(&reading->reader, &shard_schema, &fields, error);

    if (status == ZT_OK)
        status = zt_builder_shard(reading->builder, &shard, error);
    if (status == ZT_OK)
        *shard = (struct zt_shard){.name = (const char *)key->bytes,
                                   .name_length = (uint32_t)key->value,
                                   .digest = fields.digest.text.bytes,
                                   .digest_length = (uint32_t)fields.digest.text.length,
                                   .size_bytes = fields.size};
    return status;
}

static enum zt_status read_shards(void *context, const struct zt_field *field,
                                  struct zt_error *error)
{
    struct zt_builder *builder = ((struct reading *)context)->builder;
    enum zt_status status = zt_field_entries(field, read_shard, context, error);

    assert(builder->model->object_count == 0);
    /* Shorter names come first in the file. Once sorted in their final order, shards can be looked
     * up and numbered. */
    if (status == ZT_OK && builder->model->shard_count > 0)
        qsort(builder->shards, builder->model->shard_count, sizeof(*builder->shards),
              compare_shards);
    return status;
}

static enum zt_status read_root_attributes(void *context, const struct zt_field *field,
                                           struct zt_error *error)
{
    return zt_field_attributes(field, &((struct reading *)context)->builder->model->attributes,
                               error);
}

static const struct zt_map_field root_fields[] = {
    {"shards", 0, read_shards, 0},
    {"objects", ZT_FIELD_REQUIRED, read_objects, 0},
    {"attributes", 0, read_root_attributes, 0},
};

static const struct zt_map_schema root_schema = {
    .what = "the manifest", .rules = &rules, .fields = root_fields, .count = COUNT(root_fields)};

static void start_reader(struct zt_cbor_reader *reader, const struct zt_model *model)
{
    zt_cbor_reader_init(reader, model->storage->manifest, (size_t)model->manifest_length,
                        model->manifest_offset, ZT_CBOR_ZT2, NULL);
}

/* A fault of the CBOR encoding anywhere in the manifest takes precedence over a fault of the
 * schema. */
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
    /* If reading failed with this same fault, keep the first error, because it names the object. */
    assert(fault.rule != NULL);
    if (error->rule == NULL || strcmp(error->rule, fault.rule) != 0 ||
        error->offset != fault.offset)
        *error = fault;
    return status;
}

enum zt_status zt2_manifest_read(struct zt_builder *builder, struct zt_error *error)
{
    struct reading reading = {.builder = builder};
    enum zt_status status;

    start_reader(&reading.reader, builder->model);
    status = zt_map_read(&reading.reader, &root_schema, &reading, error);
    if (status == ZT_OK)
        status = zt_cbor_end(&reading.reader, error);
    return status == ZT_INVALID ? prefer_cbor_fault(builder->model, error) : status;
}
