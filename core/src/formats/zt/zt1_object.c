/* zTensor 1.x objects and components (zTensor 1.2 sections 1 and 2; 1.0's tensors).
 *
 * Fields may come in any order, so all fields of a map are read before any are checked. */
#include "formats/zt/zt1_object.h"

#include <assert.h>
#include <string.h>

#include "model/layout.h"

const struct zt_family_rules zt1_rules = {
    .schema = "zt1 §1 Schema",
    .shape = "zt1 §1 Shape",
    .alignment = "zt1 §4 BlobAlignment",
    .bounds = "zt1 §4 BlobBounds",
};

struct component_fields {
    struct zt1_reading *reading;
    struct zt_component *component;
    uint64_t offset;
    uint64_t length;
    struct zt_placed_text encoding;
    struct zt_placed_text digest;
    struct zt_placed_text dtype;
    struct zt_placed_text type;
    uint64_t uncompressed_length;
    uint64_t uncompressed_offset; /* ZT_NO_OFFSET: the field is absent */
};

struct object_fields {
    struct zt1_reading *reading;
    struct zt_object *object;
    struct zt_placed_text dtype; /* 1.0 */
};

/* --- components --- */

static enum zt_status read_uncompressed_length(void *context, const struct zt_field *field,
                                               struct zt_error *error)
{
    struct component_fields *fields = context;

    fields->uncompressed_offset = field->offset;
    return zt_field_uint(field, &fields->uncompressed_length, error);
}

#define AT(member) offsetof(struct component_fields, member)

/* Readers of 1.0 took a null encoding for raw; later readers reject it. */
static const struct zt_map_field component_fields_1_0[] = {
    {"offset", ZT_FIELD_REQUIRED, zt_field_read_uint, AT(offset)},
    {"length", ZT_FIELD_REQUIRED, zt_field_read_uint, AT(length)},
    {"encoding", ZT_FIELD_NULLABLE, zt_field_read_text, AT(encoding)},
    {"digest", ZT_FIELD_NULLABLE, zt_field_read_text, AT(digest)},
};

static const struct zt_map_field component_fields[] = {
    {"offset", ZT_FIELD_REQUIRED, zt_field_read_uint, AT(offset)},
    {"length", ZT_FIELD_REQUIRED, zt_field_read_uint, AT(length)},
    {"encoding", 0, zt_field_read_text, AT(encoding)},
    {"digest", ZT_FIELD_NULLABLE, zt_field_read_text, AT(digest)},
    {"dtype", ZT_FIELD_REQUIRED, zt_field_read_text, AT(dtype)},
    {"type", ZT_FIELD_NULLABLE, zt_field_read_text, AT(type)},
    {"uncompressed_length", ZT_FIELD_NULLABLE, read_uncompressed_length, 0},
};

#undef AT

static const struct zt_map_schema component_schema_1_0 = {
    .what = "the component",
    .rules = &zt1_rules,
    .fields = component_fields_1_0,
    .count = sizeof(component_fields_1_0) / sizeof(*component_fields_1_0),
};

static const struct zt_map_schema component_schema = {
    .what = "the component",
    .rules = &zt1_rules,
    .fields = component_fields,
    .count = sizeof(component_fields) / sizeof(*component_fields),
};

static void set_type(struct zt_component *component, const char *text, size_t length,
                     enum zt_logical logical)
{
    component->type = text;
    component->type_length = (uint32_t)length;
    component->logical = (uint8_t)logical;
}

static enum zt_status fail_dtype(uint64_t offset, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, "zt1 §2 Dtype", offset, "the dtype is not known");
}

/* Handles the types that were dtypes in zTensor 1.1 and became logical types in 1.2. */
static enum zt_status set_dtype_1_1(struct component_fields *fields, struct zt_error *error)
{
    static const struct {
        const char *dtype;
        enum zt_logical logical;
    } known[] = {
        {"f8_e4m3", ZT_LOGICAL_F8_E4M3FN},
        {"f8_e5m2", ZT_LOGICAL_F8_E5M2},
        {"complex64", ZT_LOGICAL_COMPLEX64},
        {"complex128", ZT_LOGICAL_COMPLEX128},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *name;

        if (!zt_text_is(fields->dtype.text, known[i].dtype))
            continue;
        if (fields->type.text.bytes != NULL) {
            return zt_fail(error, ZT_INVALID, "zt1 §2 LogicalType", fields->type.offset,
                           "a type combined with the dtype %s, which is already a logical type",
                           known[i].dtype);
        }
        name = zt_logical_name(known[i].logical);
        fields->component->dtype = (uint8_t)zt_logical_storage(known[i].logical);
        set_type(fields->component, name, strlen(name), known[i].logical);
        if (fields->reading->dtype_1_1_offset == ZT_NO_OFFSET)
            fields->reading->dtype_1_1_offset = fields->dtype.offset;
        return ZT_OK;
    }
    return fail_dtype(fields->dtype.offset, error);
}

/* zTensor 1.2 section 2: a known logical type requires the dtype that stores it; unknown types are
 * left to the users of the model. */
static enum zt_status set_dtype_and_type(struct component_fields *fields, struct zt_error *error)
{
    struct zt_component *component = fields->component;
    enum zt_dtype dtype;
    enum zt_logical logical;

    if (fields->reading->is_1_0)
        return ZT_OK;
    if (!zt_dtype_from_name(fields->dtype.text, &dtype))
        return set_dtype_1_1(fields, error);
    component->dtype = (uint8_t)dtype;
    if (fields->type.text.bytes == NULL)
        return ZT_OK;
    logical = zt_logical_from_name(fields->type.text);
    /* "bool" also names a dtype. As the type of a component of that dtype it counts as unknown,
     * like the name of any other dtype. */
    if (logical == ZT_LOGICAL_BOOL && dtype == ZT_BOOL)
        logical = ZT_LOGICAL_UNKNOWN;
    if (logical != ZT_LOGICAL_UNKNOWN && zt_logical_storage(logical) != dtype) {
        return zt_fail(error, ZT_INVALID, "zt1 §2 LogicalType", fields->type.offset,
                       "the type is stored as %s, not %s",
                       zt_dtype_name(zt_logical_storage(logical)), zt_dtype_name(dtype));
    }
    set_type(component, fields->type.text.bytes, fields->type.text.length, logical);
    return ZT_OK;
}

static enum zt_status set_encoding(struct component_fields *fields, struct zt_error *error)
{
    struct zt_component *component = fields->component;

    zt_component_set_encoding(component, fields->encoding.text);
    if (fields->uncompressed_offset == ZT_NO_OFFSET)
        return ZT_OK;
    if (component->encoding == ZT_ENCODING_RAW &&
        fields->uncompressed_length != component->length) {
        return zt_fail(error, ZT_INVALID, "zt1 §1 UncompressedLength", fields->uncompressed_offset,
                       "uncompressed_length differs from length although the encoding is raw");
    }
    component->decoded_length = fields->uncompressed_length;
    return ZT_OK;
}

static enum zt_status read_component_fields(struct component_fields *fields, struct zt_error *error)
{
    struct zt1_reading *reading = fields->reading;
    struct zt_component *component = fields->component;
    enum zt_status status =
        zt_map_read(&reading->reader, reading->is_1_0 ? &component_schema_1_0 : &component_schema,
                    fields, error);

    if (status != ZT_OK)
        return status;
    component->offset = fields->offset;
    component->length = fields->length;
    component->digest = fields->digest.text.bytes;
    component->digest_length = (uint32_t)fields->digest.text.length;
    status = set_dtype_and_type(fields, error);
    if (status == ZT_OK)
        status = set_encoding(fields, error);
    if (status == ZT_OK)
        status = zt_blob_check(component, reading->builder->model, &zt1_rules, error);
    return status;
}

static enum zt_status read_component(void *context, const struct zt_cbor_item *key,
                                     struct zt_error *error)
{
    struct object_fields *object = context;
    struct component_fields fields = {.reading = object->reading,
                                      .uncompressed_offset = ZT_NO_OFFSET};
    enum zt_status status =
        zt_builder_component(object->reading->builder, &fields.component, error);

    if (status != ZT_OK)
        return status;
    fields.component->name = (const char *)key->bytes;
    fields.component->name_length = (uint32_t)key->value;
    status = read_component_fields(&fields, error);
    assert(fields.component == zt_last_component(object->reading->builder));
    if (status != ZT_OK)
        zt_error_within(error, zt_object_name(object->object), zt_component_name(fields.component));
    return status;
}

/* --- objects --- */

static enum zt_status read_shape(void *context, const struct zt_field *field,
                                 struct zt_error *error)
{
    struct object_fields *fields = context;

    return zt_field_shape(field, fields->reading->builder, error);
}

static enum zt_status read_format(void *context, const struct zt_field *field,
                                  struct zt_error *error)
{
    struct object_fields *fields = context;
    struct zt_placed_text format = {0};
    enum zt_status status = zt_field_text(field, &format, error);

    if (status != ZT_OK)
        return status;
    fields->object->format = format.text.bytes;
    fields->object->format_length = (uint32_t)format.text.length;
    fields->object->layout = (uint8_t)zt_layout_from_name(ZT_LAYOUTS_ZT1, format.text);
    return ZT_OK;
}

static enum zt_status read_components(void *context, const struct zt_field *field,
                                      struct zt_error *error)
{
    return zt_field_entries(field, read_component, context, error);
}

static enum zt_status read_attributes(void *context, const struct zt_field *field,
                                      struct zt_error *error)
{
    struct object_fields *fields = context;
    struct zt_text span;
    enum zt_status status = zt_field_attributes(field, &span, error);

    if (status != ZT_OK)
        return status;
    fields->object->attributes = (const uint8_t *)span.bytes;
    fields->object->attributes_length = (uint32_t)span.length;
    return ZT_OK;
}

static const struct zt_map_field object_fields[] = {
    {"shape", ZT_FIELD_REQUIRED, read_shape, 0},
    {"format", ZT_FIELD_REQUIRED, read_format, 0},
    {"components", ZT_FIELD_REQUIRED, read_components, 0},
    {"attributes", ZT_FIELD_NULLABLE, read_attributes, 0},
    /* 1.0 */
    {"dtype", ZT_FIELD_REQUIRED, zt_field_read_text, offsetof(struct object_fields, dtype)},
};

static const struct zt_map_schema object_schema_1_0 = {
    .what = "the tensor",
    .rules = &zt1_rules,
    .fields = object_fields,
    .count = sizeof(object_fields) / sizeof(*object_fields),
};

static const struct zt_map_schema object_schema = {
    .what = "the object",
    .rules = &zt1_rules,
    .fields = object_fields,
    .count = sizeof(object_fields) / sizeof(*object_fields) - 1,
};

/* zTensor 1.0 states one dtype for each tensor, which is the dtype of the values; indices are
 * u64. */
static enum zt_status set_dtypes_1_0(const struct object_fields *fields, struct zt_error *error)
{
    struct zt_builder *builder = fields->reading->builder;
    const struct zt_object *object = fields->object;
    bool sparse = object->layout == ZT_LAYOUT_SPARSE_CSR || object->layout == ZT_LAYOUT_SPARSE_COO;
    enum zt_dtype dtype;

    if (!zt_dtype_from_long_name(fields->dtype.text, &dtype))
        return fail_dtype(fields->dtype.offset, error);
    for (uint32_t i = 0; i < object->component_count; i++) {
        struct zt_component *component = &builder->components[object->first_component + i];
        struct zt_text name = zt_component_name(component);
        bool index =
            zt_text_is(name, "indices") || zt_text_is(name, "indptr") || zt_text_is(name, "coords");

        component->dtype = (uint8_t)(sparse && index ? ZT_U64 : dtype);
    }
    return ZT_OK;
}

/* If the file does not state a dense component's decoded length, as in 1.0 and 1.1, it follows from
 * shape and type. */
static void set_dense_lengths(const struct object_fields *fields)
{
    struct zt_builder *builder = fields->reading->builder;
    const struct zt_object *object = fields->object;
    uint64_t elements;

    if (object->layout != ZT_LAYOUT_DENSE ||
        !zt_shape_product(builder->dimensions + object->first_dimension, object->rank, &elements))
        return;
    for (uint32_t i = 0; i < object->component_count; i++) {
        struct zt_component *component = &builder->components[object->first_component + i];
        uint64_t bytes;

        if (component->encoding == ZT_ENCODING_ZSTD &&
            component->decoded_length == ZT_LENGTH_UNKNOWN &&
            zt_text_is(zt_component_name(component), "data") &&
            zt_element_bytes((enum zt_dtype)component->dtype, (enum zt_logical)component->logical,
                             elements, &bytes) == ZT_OK)
            component->decoded_length = bytes;
    }
}

static enum zt_status read_object(struct object_fields *fields, struct zt_error *error)
{
    struct zt1_reading *reading = fields->reading;
    const struct zt_map_schema *schema = reading->is_1_0 ? &object_schema_1_0 : &object_schema;
    enum zt_status status = zt_map_read(&reading->reader, schema, fields, error);

    if (status == ZT_OK && reading->is_1_0)
        status = set_dtypes_1_0(fields, error);
    if (status == ZT_OK)
        set_dense_lengths(fields);
    return status;
}

enum zt_status zt1_object_read(void *context, const struct zt_cbor_item *key,
                               struct zt_error *error)
{
    struct object_fields fields = {.reading = context};
    enum zt_status status = zt_builder_object(fields.reading->builder, &fields.object, error);

    if (status != ZT_OK)
        return status;
    fields.object->name = (const char *)key->bytes;
    fields.object->name_length = (uint32_t)key->value;
    status = read_object(&fields, error);
    assert(fields.object == zt_last_object(fields.reading->builder));
    if (status != ZT_OK)
        zt_error_within(error, zt_object_name(fields.object), (struct zt_text){NULL, 0});
    return status;
}
