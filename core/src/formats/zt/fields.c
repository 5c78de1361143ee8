/* Reading the maps of zTensor manifests according to schemas. */
#include "formats/zt/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "model/layout.h"

/* zTensor 0.1 "File Layout", zTensor 1.2 section 4: blobs begin at multiples of 64, the first one
 * at 64. */
#define BLOB_ALIGNMENT 64
/* zTensor 2, section 3. */
#define NAME_MAX_BYTES 1024
/* RFC 8949 section 3.1. */
#define MAJOR_TAG 6

/* --- maps --- */

/* A map that is being read. The keys of its unknown fields are compared at its end. */
struct map_state {
    struct zt_cbor_reader *reader;
    const struct zt_map_schema *schema;
    void *context;
    struct zt_cbor_keys unknown;
    uint32_t seen; /* bit n: fields[n] has occurred */
};

/* Whether the CBOR reader itself rejects keys that are out of order, which includes repeated
 * keys. */
static bool is_deterministic(const struct zt_cbor_reader *reader)
{
    return reader->profile == ZT_CBOR_ZT2;
}

static struct zt_text key_text(const struct zt_cbor_item *key)
{
    assert(key->kind == ZT_CBOR_TEXT);
    return (struct zt_text){(const char *)key->bytes, (size_t)key->value};
}

/* Skips a null, if one is next; returns whether it did. */
static bool skip_null(struct zt_cbor_reader *reader)
{
    struct zt_cbor_reader ahead = *reader;
    struct zt_cbor_item item;

    /* Reads only the head: reading a whole string in pieces would join it in the arena a second
     * time. */
    if (zt_cbor_head(&ahead, &item, NULL) != ZT_OK || item.kind != ZT_CBOR_NULL)
        return false;
    *reader = ahead;
    return true;
}

static unsigned find_field(const struct zt_map_schema *schema, const struct zt_cbor_item *key)
{
    unsigned number = 0;

    if (key->kind != ZT_CBOR_TEXT)
        return schema->count;
    while (number < schema->count && !zt_text_is(key_text(key), schema->fields[number].key))
        number++;
    return number;
}

static enum zt_status read_known(struct map_state *map, const struct zt_cbor_item *key,
                                 unsigned number, struct zt_error *error)
{
    const struct zt_map_field *entry = &map->schema->fields[number];
    struct zt_field field = {
        .entry = entry,
        .reader = map->reader,
        .rules = map->schema->rules,
        .offset = map->reader->base_offset + map->reader->position,
    };

    assert(number < map->schema->count);
    if ((map->seen & 1u << number) != 0)
        return zt_fail(error, ZT_INVALID, zt_cbor_rule_name(map->reader, ZT_CBOR_DUPLICATE_KEY),
                       key->offset, "%s occurs twice in %s", entry->key, map->schema->what);
    map->seen |= 1u << number;
    if ((entry->flags & ZT_FIELD_NULLABLE) != 0 && skip_null(map->reader))
        return ZT_OK;
    return entry->read(map->context, &field, error);
}

static enum zt_status read_unknown(struct map_state *map, const struct zt_cbor_item *key,
                                   struct zt_error *error)
{
    struct zt_cbor_reader *reader = map->reader;
    enum zt_status status = ZT_OK;
    size_t start;
    struct zt_text pair;

    if (!is_deterministic(reader))
        status = zt_cbor_keys_add(&map->unknown, reader, key, error);
    if (status == ZT_OK)
        status = zt_cbor_skip(reader, error);
    if (status != ZT_OK || map->schema->pass == NULL)
        return status;
    start = (size_t)(key->offset - reader->base_offset);
    assert(start < reader->position);
    pair = (struct zt_text){(const char *)reader->bytes + start, reader->position - start};
    return map->schema->pass(map->context, pair, error);
}

static enum zt_status read_fields(struct map_state *map, struct zt_cbor_walk *walk,
                                  struct zt_error *error)
{
    while (zt_cbor_more(map->reader, walk)) {
        struct zt_cbor_item key;
        unsigned number;
        enum zt_status status = zt_cbor_key(map->reader, walk, &key, error);

        if (status != ZT_OK)
            return status;
        /* zTensor 2 ignores such keys, like all unknown ones. */
        if (key.kind != ZT_CBOR_TEXT && !is_deterministic(map->reader))
            return zt_fail(error, ZT_INVALID, map->schema->rules->schema, key.offset,
                           "a field name in %s is not a text", map->schema->what);
        number = find_field(map->schema, &key);
        status = number < map->schema->count ? read_known(map, &key, number, error)
                                             : read_unknown(map, &key, error);
        if (status != ZT_OK)
            return status;
    }
    return zt_cbor_keys_check(&map->unknown, 0, map->reader, error);
}

static enum zt_status check_required(const struct map_state *map, uint64_t offset,
                                     struct zt_error *error)
{
    const struct zt_map_schema *schema = map->schema;

    for (unsigned i = 0; i < schema->count; i++)
        if ((schema->fields[i].flags & ZT_FIELD_REQUIRED) != 0 && (map->seen & 1u << i) == 0)
            return zt_fail(error, ZT_INVALID, schema->rules->schema, offset, "%s has no %s",
                           schema->what, schema->fields[i].key);
    return ZT_OK;
}

enum zt_status zt_map_read(struct zt_cbor_reader *reader, const struct zt_map_schema *schema,
                           void *context, struct zt_error *error)
{
    struct map_state map = {.reader = reader, .schema = schema, .context = context};
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    enum zt_status status = zt_cbor_next_untagged(reader, &item, error);

    assert(schema->count <= 32);
    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_MAP)
        return zt_fail(error, ZT_INVALID, schema->rules->schema, item.offset, "%s is not a map",
                       schema->what);
    walk = zt_cbor_enter(reader, &item);
    status = read_fields(&map, &walk, error);
    zt_cbor_keys_free(&map.unknown);
    return status != ZT_OK ? status : check_required(&map, item.offset, error);
}

enum zt_status zt_manifest_check_start(struct zt_source *source, uint64_t offset, unsigned major,
                                       const char *fault, const struct zt_family_rules *rules,
                                       struct zt_error *error)
{
    uint8_t first = 0;
    enum zt_status status = zt_source_read_at(source, offset, &first, 1, error);

    if (status != ZT_OK)
        return status;
    if (first >> 5 != major && first >> 5 != MAJOR_TAG)
        return zt_fail(error, ZT_INVALID, rules->schema, offset, "%s", fault);
    return ZT_OK;
}

/* --- numbers and texts --- */

enum zt_status zt_field_fail(const struct zt_field *field, const char *wanted,
                             struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, field->rules->schema, field->offset, "%s is not %s",
                   field->entry->key, wanted);
}

/* Reads the head of a value of one kind. */
static enum zt_status read_item(const struct zt_field *field, enum zt_cbor_kind kind,
                                const char *wanted, struct zt_cbor_item *out_item,
                                struct zt_error *error)
{
    enum zt_status status = zt_cbor_next_untagged(field->reader, out_item, error);

    return status == ZT_OK && out_item->kind != kind ? zt_field_fail(field, wanted, error) : status;
}

enum zt_status zt_field_uint(const struct zt_field *field, uint64_t *out_value,
                             struct zt_error *error)
{
    struct zt_cbor_item item;
    enum zt_status status = read_item(field, ZT_CBOR_UINT, "an unsigned integer", &item, error);

    if (status == ZT_OK)
        *out_value = item.value;
    return status;
}

enum zt_status zt_field_text(const struct zt_field *field, struct zt_placed_text *out_text,
                             struct zt_error *error)
{
    struct zt_cbor_item item;
    enum zt_status status = read_item(field, ZT_CBOR_TEXT, "a text", &item, error);

    if (status == ZT_OK)
        *out_text = (struct zt_placed_text){key_text(&item), field->offset};
    return status;
}

enum zt_status zt_field_read_uint(void *context, const struct zt_field *field,
                                  struct zt_error *error)
{
    return zt_field_uint(field, (void *)((char *)context + field->entry->at), error);
}

enum zt_status zt_field_read_text(void *context, const struct zt_field *field,
                                  struct zt_error *error)
{
    return zt_field_text(field, (void *)((char *)context + field->entry->at), error);
}

/* --- shapes --- */

static enum zt_status read_dimension(const struct zt_field *shape, struct zt_builder *builder,
                                     struct zt_error *error)
{
    static const struct zt_map_field entry = {.key = "a dimension of shape"};
    struct zt_field dimension = *shape;
    uint64_t extent = 0;
    enum zt_status status;

    dimension.entry = &entry;
    dimension.offset = shape->reader->base_offset + shape->reader->position;
    status = zt_field_uint(&dimension, &extent, error);
    if (status != ZT_OK)
        return status;
    if (zt_last_object(builder)->rank == ZT_RANK_MAX)
        return zt_fail(error, ZT_INVALID, shape->rules->shape, shape->offset,
                       "more than %d dimensions", ZT_RANK_MAX);
    return zt_builder_dimension(builder, extent, error);
}

enum zt_status zt_field_dimensions(const struct zt_field *field, struct zt_builder *builder,
                                   struct zt_error *error)
{
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    enum zt_status status = read_item(field, ZT_CBOR_ARRAY, "an array", &item, error);

    assert(zt_last_object(builder)->rank == 0);
    if (status != ZT_OK)
        return status;
    walk = zt_cbor_enter(field->reader, &item);
    while (status == ZT_OK && zt_cbor_more(field->reader, &walk))
        status = read_dimension(field, builder, error);
    return status;
}

enum zt_status zt_field_shape(const struct zt_field *field, struct zt_builder *builder,
                              struct zt_error *error)
{
    const struct zt_object *object;
    uint64_t elements;
    enum zt_status status = zt_field_dimensions(field, builder, error);

    if (status != ZT_OK)
        return status;
    object = zt_last_object(builder);
    if (!zt_shape_product(builder->dimensions + object->first_dimension, object->rank, &elements))
        return zt_fail(error, ZT_INVALID, field->rules->shape, field->offset,
                       "the number of elements does not fit in 64 bits");
    return ZT_OK;
}

/* --- maps from names --- */

enum zt_status zt_name_check(const struct zt_cbor_item *key, const struct zt_family_rules *rules,
                             struct zt_error *error)
{
    if (rules->name == NULL)
        return ZT_OK;
    if (key->value == 0 || key->value > NAME_MAX_BYTES)
        return zt_fail(error, ZT_INVALID, rules->name, key->offset, "a name has 1 to %d bytes",
                       NAME_MAX_BYTES);
    if (memchr(key->bytes, '\0', (size_t)key->value) != NULL)
        return zt_fail(error, ZT_INVALID, rules->name, key->offset, "a name has a NUL character");
    return ZT_OK;
}

enum zt_status zt_field_entries(const struct zt_field *field,
                                enum zt_status (*read)(void *context,
                                                       const struct zt_cbor_item *key,
                                                       struct zt_error *error),
                                void *context, struct zt_error *error)
{
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    enum zt_status status = read_item(field, ZT_CBOR_MAP, "a map", &item, error);

    if (status != ZT_OK)
        return status;
    walk = zt_cbor_enter(field->reader, &item);
    while (status == ZT_OK && zt_cbor_more(field->reader, &walk)) {
        struct zt_cbor_item key;

        status = zt_cbor_key(field->reader, &walk, &key, error);
        if (status == ZT_OK && key.kind != ZT_CBOR_TEXT)
            return zt_fail(error, ZT_INVALID, field->rules->schema, key.offset,
                           "a name in %s is not a text", field->entry->key);
        if (status == ZT_OK)
            status = read(context, &key, error);
    }
    return status;
}

struct attributes_state {
    const struct zt_field *field;
    struct zt_cbor_keys keys;
};

static enum zt_status skip_attribute(void *context, const struct zt_cbor_item *key,
                                     struct zt_error *error)
{
    struct attributes_state *state = context;
    struct zt_cbor_reader *reader = state->field->reader;
    enum zt_status status = zt_name_check(key, state->field->rules, error);

    if (status == ZT_OK && !is_deterministic(reader))
        status = zt_cbor_keys_add(&state->keys, reader, key, error);
    return status == ZT_OK ? zt_cbor_skip(reader, error) : status;
}

enum zt_status zt_field_attributes(const struct zt_field *field, struct zt_text *out_span,
                                   struct zt_error *error)
{
    struct attributes_state state = {.field = field};
    struct zt_cbor_reader *reader = field->reader;
    struct zt_cbor_reader ahead = *reader;
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next_untagged(&ahead, &item, error);
    size_t start;

    if (status != ZT_OK)
        return status;
    /* Drops tags before the map, because a model's attributes are a map. */
    assert(item.offset >= reader->base_offset);
    start = (size_t)(item.offset - reader->base_offset);
    reader->position = start;
    status = zt_field_entries(field, skip_attribute, &state, error);
    if (status == ZT_OK)
        status = zt_cbor_keys_check(&state.keys, 0, reader, error);
    zt_cbor_keys_free(&state.keys);
    if (status == ZT_OK)
        *out_span = (struct zt_text){(const char *)reader->bytes + start, reader->position - start};
    return status;
}

/* --- blobs --- */

enum zt_status zt_blob_check(const struct zt_component *component, const struct zt_model *model,
                             const struct zt_family_rules *rules, struct zt_error *error)
{
    assert(rules->alignment != NULL && rules->bounds != NULL);
    if (component->offset % BLOB_ALIGNMENT != 0)
        return zt_fail(error, ZT_INVALID, rules->alignment, component->offset,
                       "the blob's offset %" PRIu64 " is not a multiple of %d", component->offset,
                       BLOB_ALIGNMENT);
    if (component->offset < BLOB_ALIGNMENT)
        return zt_fail(error, ZT_INVALID, rules->bounds, component->offset,
                       "the blob is in the file's head");
    if (component->offset > model->manifest_offset ||
        component->length > model->manifest_offset - component->offset)
        return zt_fail(error, ZT_INVALID, rules->bounds, component->offset,
                       "the blob's %" PRIu64
                       " bytes extend past the start of the manifest at %" PRIu64,
                       component->length, model->manifest_offset);
    return ZT_OK;
}
