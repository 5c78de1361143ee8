/* Reading the maps of zTensor 0.1 and 1.x manifests by schema. */
#include "formats/fields.h"

#include <inttypes.h>
#include <string.h>

#include "model/layout.h"

/* zTensor 0.1 "File Layout", zTensor 1.2 section 4: blobs begin at multiples of 64, the first one
 * at 64. */
#define BLOB_ALIGNMENT 64

void zt_error_within(struct zt_error *error, struct zt_text object, struct zt_text component)
{
    if (error != NULL && !error->has_object && error->component[0] == '\0')
        zt_error_at(error, object, component);
}

static enum zt_status fail_type(const struct zt_field *field, const char *wanted,
                                struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, field->rules->schema, field->offset, "%s is not %s",
                   field->name, wanted);
}

/* --- maps --- */

/* A map being read: the keys of its unknown fields are compared when it ends. */
struct map_state {
    struct zt_cbor_reader *reader;
    const struct zt_map_schema *schema;
    void *context;
    struct zt_cbor_keys unknown;
    uint32_t seen;
};

static unsigned find_name(const struct zt_map_schema *schema, const struct zt_cbor_item *key)
{
    unsigned number = 0;

    while (number < schema->count &&
           (schema->names[number].length != key->value ||
            memcmp(schema->names[number].bytes, key->bytes, (size_t)key->value) != 0))
        number++;
    return number;
}

static enum zt_status read_known(struct map_state *map, const struct zt_cbor_item *key,
                                 unsigned number, struct zt_error *error)
{
    struct zt_field field;

    if ((map->seen & 1u << number) != 0) {
        return zt_fail(error, ZT_INVALID, zt_cbor_rule_name(map->reader, ZT_CBOR_DUPLICATE_KEY),
                       key->offset, "%s occurs twice in %s", map->schema->names[number].bytes,
                       map->schema->what);
    }
    map->seen |= 1u << number;
    field = (struct zt_field){
        .number = number,
        .name = map->schema->names[number].bytes,
        .rules = map->schema->rules,
        .offset = map->reader->base_offset + map->reader->position,
    };
    return map->schema->take(map->context, &field, error);
}

static enum zt_status read_unknown(struct map_state *map, const struct zt_cbor_item *key,
                                   struct zt_error *error)
{
    struct zt_cbor_reader *reader = map->reader;
    enum zt_status status = zt_cbor_keys_add(&map->unknown, reader, key, error);
    size_t start;
    struct zt_text pair;

    if (status == ZT_OK)
        status = zt_cbor_skip(reader, error);
    if (status != ZT_OK || map->schema->pass == NULL)
        return status;
    start = (size_t)(key->offset - reader->base_offset);
    pair = (struct zt_text){(const char *)reader->bytes + start, reader->position - start};
    return map->schema->pass(map->context, pair, error);
}

static enum zt_status read_fields(struct map_state *map, struct zt_cbor_walk *walk,
                                  struct zt_error *error)
{
    enum zt_status status;
    bool more;

    while ((status = zt_cbor_more(map->reader, walk, &more, error)) == ZT_OK && more) {
        struct zt_cbor_item key;
        unsigned number;

        status = zt_cbor_key(map->reader, walk, &key, error);
        if (status != ZT_OK)
            return status;
        if (key.kind != ZT_CBOR_TEXT) {
            return zt_fail(error, ZT_INVALID, map->schema->rules->schema, key.offset,
                           "a field name in %s is not a text", map->schema->what);
        }
        number = find_name(map->schema, &key);
        status = number < map->schema->count ? read_known(map, &key, number, error)
                                             : read_unknown(map, &key, error);
        if (status != ZT_OK)
            return status;
    }
    return status != ZT_OK ? status : zt_cbor_keys_check(&map->unknown, 0, map->reader, error);
}

static enum zt_status check_required(const struct map_state *map, uint64_t offset,
                                     struct zt_error *error)
{
    uint32_t missing = map->schema->required & ~map->seen;

    if (missing == 0)
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, map->schema->rules->schema, offset, "%s has no %s",
                   map->schema->what, map->schema->names[__builtin_ctz(missing)].bytes);
}

enum zt_status zt_map_read(struct zt_cbor_reader *reader, const struct zt_map_schema *schema,
                           void *context, struct zt_error *error)
{
    struct map_state map = {.reader = reader, .schema = schema, .context = context};
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    enum zt_status status = zt_cbor_next_untagged(reader, &item, error);

    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_MAP) {
        return zt_fail(error, ZT_INVALID, schema->rules->schema, item.offset, "%s is not a map",
                       schema->what);
    }
    status = zt_cbor_enter(reader, &item, &walk, error);
    if (status == ZT_OK)
        status = read_fields(&map, &walk, error);
    zt_cbor_keys_free(&map.unknown);
    return status != ZT_OK ? status : check_required(&map, item.offset, error);
}

/* Enters the map that a field's value must be. */
static enum zt_status enter_map(struct zt_cbor_reader *reader, const struct zt_field *field,
                                struct zt_cbor_walk *out_walk, struct zt_error *error)
{
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next_untagged(reader, &item, error);

    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_MAP)
        return fail_type(field, "a map", error);
    return zt_cbor_enter(reader, &item, out_walk, error);
}

static enum zt_status read_name(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk,
                                const struct zt_field *field, struct zt_cbor_item *out_key,
                                struct zt_error *error)
{
    enum zt_status status = zt_cbor_key(reader, walk, out_key, error);

    if (status == ZT_OK && out_key->kind != ZT_CBOR_TEXT) {
        return zt_fail(error, ZT_INVALID, field->rules->schema, out_key->offset,
                       "a name in %s is not a text", field->name);
    }
    return status;
}

enum zt_status zt_field_entries(struct zt_cbor_reader *reader, const struct zt_field *field,
                                const struct zt_named_entries *entries, struct zt_error *error)
{
    struct zt_cbor_walk walk;
    bool more;
    enum zt_status status = enter_map(reader, field, &walk, error);

    while (status == ZT_OK && (status = zt_cbor_more(reader, &walk, &more, error)) == ZT_OK &&
           more) {
        struct zt_cbor_item key;

        status = read_name(reader, &walk, field, &key, error);
        if (status == ZT_OK) {
            struct zt_text name = {(const char *)key.bytes, (size_t)key.value};

            status = entries->take(entries->context, name, error);
        }
    }
    return status;
}

static enum zt_status read_attributes(struct zt_cbor_reader *reader, const struct zt_field *field,
                                      struct zt_cbor_keys *keys, struct zt_error *error)
{
    struct zt_cbor_walk walk;
    bool more;
    enum zt_status status = enter_map(reader, field, &walk, error);

    while (status == ZT_OK && (status = zt_cbor_more(reader, &walk, &more, error)) == ZT_OK &&
           more) {
        struct zt_cbor_item key;

        status = read_name(reader, &walk, field, &key, error);
        if (status == ZT_OK)
            status = zt_cbor_keys_add(keys, reader, &key, error);
        if (status == ZT_OK)
            status = zt_cbor_skip(reader, error);
    }
    return status != ZT_OK ? status : zt_cbor_keys_check(keys, 0, reader, error);
}

enum zt_status zt_field_attributes(struct zt_cbor_reader *reader, const struct zt_field *field,
                                   struct zt_text *out_span, struct zt_error *error)
{
    struct zt_cbor_keys keys = {0};
    struct zt_cbor_reader ahead = *reader;
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next_untagged(&ahead, &item, error);
    size_t start;

    if (status != ZT_OK)
        return status;
    /* Tags before the map are no part of it: whoever reads a model's attributes finds a map. */
    start = (size_t)(item.offset - reader->base_offset);
    reader->position = start;
    status = read_attributes(reader, field, &keys, error);
    zt_cbor_keys_free(&keys);
    if (status == ZT_OK)
        *out_span = (struct zt_text){(const char *)reader->bytes + start, reader->position - start};
    return status;
}

/* --- values --- */

enum zt_status zt_field_uint(struct zt_cbor_reader *reader, const struct zt_field *field,
                             uint64_t *out_value, struct zt_error *error)
{
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next_untagged(reader, &item, error);

    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_UINT)
        return fail_type(field, "an unsigned integer", error);
    *out_value = item.value;
    return ZT_OK;
}

enum zt_status zt_field_text(struct zt_cbor_reader *reader, const struct zt_field *field,
                             struct zt_text *out_text, struct zt_error *error)
{
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next_untagged(reader, &item, error);

    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_TEXT)
        return fail_type(field, "a text", error);
    *out_text = (struct zt_text){(const char *)item.bytes, (size_t)item.value};
    return ZT_OK;
}

enum zt_status zt_field_placed_text(struct zt_cbor_reader *reader, const struct zt_field *field,
                                    struct zt_placed_text *out_text, struct zt_error *error)
{
    enum zt_status status = zt_field_text(reader, field, &out_text->text, error);

    if (status == ZT_OK)
        out_text->offset = field->offset;
    return status;
}

bool zt_field_null(struct zt_cbor_reader *reader)
{
    struct zt_cbor_reader ahead = *reader;
    struct zt_cbor_item item;

    /* Only the head is looked at: a string in pieces would be joined in the arena twice. */
    if (zt_cbor_head(&ahead, &item, NULL) != ZT_OK || item.kind != ZT_CBOR_NULL)
        return false;
    *reader = ahead;
    return true;
}

static enum zt_status read_dimensions(struct zt_cbor_reader *reader, const struct zt_field *field,
                                      struct zt_builder *builder, const struct zt_cbor_item *array,
                                      struct zt_error *error)
{
    struct zt_cbor_walk walk;
    bool more;
    unsigned rank = 0;
    enum zt_status status = zt_cbor_enter(reader, array, &walk, error);

    while (status == ZT_OK && (status = zt_cbor_more(reader, &walk, &more, error)) == ZT_OK &&
           more) {
        struct zt_field dimension = *field;
        uint64_t extent = 0;

        dimension.name = "a dimension of shape";
        dimension.offset = reader->base_offset + reader->position;
        status = zt_field_uint(reader, &dimension, &extent, error);
        if (status == ZT_OK && rank++ == ZT_RANK_MAX) {
            return zt_fail(error, ZT_INVALID, field->rules->shape, field->offset,
                           "more than %d dimensions", ZT_RANK_MAX);
        }
        if (status == ZT_OK)
            status = zt_builder_dimension(builder, extent, error);
    }
    return status;
}

enum zt_status zt_field_shape(struct zt_cbor_reader *reader, const struct zt_field *field,
                              struct zt_builder *builder, struct zt_error *error)
{
    struct zt_cbor_item item;
    uint64_t elements;
    enum zt_status status = zt_cbor_next_untagged(reader, &item, error);
    const struct zt_object *object;

    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_ARRAY)
        return fail_type(field, "an array", error);
    status = read_dimensions(reader, field, builder, &item, error);
    if (status != ZT_OK)
        return status;
    object = &builder->objects[builder->model->object_count - 1];
    if (!zt_shape_product(builder->dimensions + object->first_dimension, object->rank, &elements)) {
        return zt_fail(error, ZT_INVALID, field->rules->shape, field->offset,
                       "the number of elements does not fit in 64 bits");
    }
    return ZT_OK;
}

/* --- components --- */

enum zt_status zt_manifest_begins(struct zt_source *source, uint64_t offset, unsigned major,
                                  const struct zt_family_rules *rules, struct zt_error *error)
{
    const unsigned tag_major = 6;
    uint8_t first = 0;
    enum zt_status status = zt_source_read_at(source, offset, &first, 1, error);

    if (status != ZT_OK)
        return status;
    if (first >> 5 != major && first >> 5 != tag_major) {
        return zt_fail(error, ZT_INVALID, rules->schema, offset, "the manifest is not %s",
                       major == ZT_CBOR_MAJOR_MAP ? "a map" : "an array");
    }
    return ZT_OK;
}

void zt_component_set_encoding(struct zt_component *component, struct zt_text encoding)
{
    if (encoding.bytes == NULL)
        encoding = (struct zt_text){"raw", 3};
    component->encoding_name = encoding.bytes;
    component->encoding_length = (uint32_t)encoding.length;
    component->encoding = ZT_ENCODING_UNKNOWN;
    component->decoded_length = ZT_LENGTH_UNKNOWN;
    if (zt_text_is(encoding, "zstd")) {
        component->encoding = ZT_ENCODING_ZSTD;
    } else if (zt_text_is(encoding, "raw")) {
        component->encoding = ZT_ENCODING_RAW;
        component->decoded_length = component->length;
    }
}

enum zt_status zt_blob_check(const struct zt_component *component, const struct zt_model *model,
                             const struct zt_family_rules *rules, struct zt_error *error)
{
    if (component->offset % BLOB_ALIGNMENT != 0) {
        return zt_fail(error, ZT_INVALID, rules->alignment, component->offset,
                       "the blob's offset %" PRIu64 " is not a multiple of %d", component->offset,
                       BLOB_ALIGNMENT);
    }
    if (component->offset < BLOB_ALIGNMENT) {
        return zt_fail(error, ZT_INVALID, rules->bounds, component->offset,
                       "the blob lies in the file's head");
    }
    if (component->offset > model->manifest_offset ||
        component->length > model->manifest_offset - component->offset) {
        return zt_fail(error, ZT_INVALID, rules->bounds, component->offset,
                       "the blob's %" PRIu64 " bytes go past the manifest's beginning at %" PRIu64,
                       component->length, model->manifest_offset);
    }
    return ZT_OK;
}
