/* zTensor 1.x objects and components (zTensor 1.2 sections 1 and 2; 1.0's tensors).
 *
 * Fields may stand in any order, so a map's fields are gathered first and judged together when it
 * ends. */
#include "formats/zt1_object.h"

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
    struct zt_component *component; /* offset and length are read into it */
    struct zt_placed_text dtype;
    struct zt_placed_text type;
    struct zt_text encoding;
    struct zt_text digest;
    uint64_t uncompressed_length;
    uint64_t uncompressed_offset; /* ZT_NO_OFFSET: the field is absent */
};

struct object_fields {
    struct zt1_reading *reading;
    struct zt_object *object;
    struct zt_placed_text dtype; /* 1.0 */
};

/* --- components --- */

/* The first four are all that 1.0 has; there the others are unknown fields. */
enum component_field {
    OFFSET,
    LENGTH,
    ENCODING,
    DIGEST,
    DTYPE,
    TYPE,
    UNCOMPRESSED_LENGTH,
    COMPONENT_FIELDS
};

static const struct zt_text component_names[COMPONENT_FIELDS] = {
    [OFFSET] = ZT_FIELD_NAME("offset"),
    [LENGTH] = ZT_FIELD_NAME("length"),
    [ENCODING] = ZT_FIELD_NAME("encoding"),
    [DIGEST] = ZT_FIELD_NAME("digest"),
    [DTYPE] = ZT_FIELD_NAME("dtype"),
    [TYPE] = ZT_FIELD_NAME("type"),
    [UNCOMPRESSED_LENGTH] = ZT_FIELD_NAME("uncompressed_length"),
};

static enum zt_status take_optional(struct component_fields *fields, const struct zt_field *field,
                                    struct zt_error *error)
{
    struct zt_cbor_reader *reader = &fields->reading->reader;

    if (zt_field_null(reader))
        return ZT_OK;
    switch (field->number) {
    case DIGEST:
        return zt_field_text(reader, field, &fields->digest, error);
    case TYPE:
        return zt_field_placed_text(reader, field, &fields->type, error);
    default:
        fields->uncompressed_offset = field->offset;
        return zt_field_uint(reader, field, &fields->uncompressed_length, error);
    }
}

static enum zt_status take_component_field(void *context, const struct zt_field *field,
                                           struct zt_error *error)
{
    struct component_fields *fields = context;
    struct zt_cbor_reader *reader = &fields->reading->reader;

    switch (field->number) {
    case OFFSET:
        return zt_field_uint(reader, field, &fields->component->offset, error);
    case LENGTH:
        return zt_field_uint(reader, field, &fields->component->length, error);
    case DTYPE:
        return zt_field_placed_text(reader, field, &fields->dtype, error);
    case ENCODING:
        /* 1.0's own readers took null for raw, later ones refuse it. */
        if (fields->reading->is_1_0 && zt_field_null(reader))
            return ZT_OK;
        return zt_field_text(reader, field, &fields->encoding, error);
    default:
        return take_optional(fields, field, error);
    }
}

static const struct zt_map_schema component_schema_1_0 = {
    .what = "the component",
    .rules = &zt1_rules,
    .names = component_names,
    .count = DIGEST + 1,
    .required = 1u << OFFSET | 1u << LENGTH,
    .take = take_component_field,
};

static const struct zt_map_schema component_schema = {
    .what = "the component",
    .rules = &zt1_rules,
    .names = component_names,
    .count = COMPONENT_FIELDS,
    .required = 1u << OFFSET | 1u << LENGTH | 1u << DTYPE,
    .take = take_component_field,
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

/* Types that stand as dtype in zTensor 1.1's text and became logical types in 1.2. */
static enum zt_status settle_dtype_1_1(struct component_fields *fields, struct zt_error *error)
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
                           "a type beside the dtype %s, which is a type itself", known[i].dtype);
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

/* zTensor 1.2 section 2: a type that is known says which dtype it lies on; any other is for others
 * to interpret. */
static enum zt_status settle_type(struct component_fields *fields, struct zt_error *error)
{
    struct zt_component *component = fields->component;
    enum zt_dtype dtype;
    enum zt_logical logical;

    if (fields->reading->is_1_0)
        return ZT_OK;
    if (!zt_dtype_from_name(fields->dtype.text, &dtype))
        return settle_dtype_1_1(fields, error);
    component->dtype = (uint8_t)dtype;
    if (fields->type.text.bytes == NULL)
        return ZT_OK;
    logical = zt_logical_from_name(fields->type.text);
    /* "bool" names a dtype as well: on that one it says nothing that is known, like any dtype's
     * name. */
    if (logical == ZT_LOGICAL_BOOL && dtype == ZT_BOOL)
        logical = ZT_LOGICAL_UNKNOWN;
    if (logical != ZT_LOGICAL_UNKNOWN && zt_logical_storage(logical) != dtype) {
        return zt_fail(error, ZT_INVALID, "zt1 §2 LogicalType", fields->type.offset,
                       "the type lies on %s, not %s", zt_dtype_name(zt_logical_storage(logical)),
                       zt_dtype_name(dtype));
    }
    set_type(component, fields->type.text.bytes, fields->type.text.length, logical);
    return ZT_OK;
}

static enum zt_status settle_encoding(struct component_fields *fields, struct zt_error *error)
{
    struct zt_component *component = fields->component;

    zt_component_set_encoding(component, fields->encoding);
    if (fields->uncompressed_offset == ZT_NO_OFFSET)
        return ZT_OK;
    if (component->encoding == ZT_ENCODING_RAW &&
        fields->uncompressed_length != component->length) {
        return zt_fail(error, ZT_INVALID, "zt1 §1 UncompressedLength", fields->uncompressed_offset,
                       "uncompressed_length is not length, and the encoding is raw");
    }
    component->decoded_length = fields->uncompressed_length;
    return ZT_OK;
}

static enum zt_status read_component(struct component_fields *fields, struct zt_error *error)
{
    struct zt1_reading *reading = fields->reading;
    enum zt_status status =
        zt_map_read(&reading->reader, reading->is_1_0 ? &component_schema_1_0 : &component_schema,
                    fields, error);

    if (status != ZT_OK)
        return status;
    fields->component->digest = fields->digest.bytes;
    fields->component->digest_length = (uint32_t)fields->digest.length;
    status = settle_type(fields, error);
    if (status == ZT_OK)
        status = settle_encoding(fields, error);
    if (status == ZT_OK)
        status = zt_blob_check(fields->component, reading->builder.model, &zt1_rules, error);
    return status;
}

static enum zt_status take_component(void *context, struct zt_text name, struct zt_error *error)
{
    struct object_fields *object = context;
    struct component_fields fields = {.reading = object->reading,
                                      .uncompressed_offset = ZT_NO_OFFSET};
    enum zt_status status =
        zt_builder_component(&object->reading->builder, &fields.component, error);

    if (status != ZT_OK)
        return status;
    fields.component->name = name.bytes;
    fields.component->name_length = (uint32_t)name.length;
    status = read_component(&fields, error);
    if (status != ZT_OK)
        zt_error_within(error, zt_object_name(object->object), name);
    return status;
}

/* --- objects --- */

enum object_field { SHAPE, FORMAT, COMPONENTS, ATTRIBUTES, OBJECT_DTYPE, OBJECT_FIELDS };

static const struct zt_text object_names[OBJECT_FIELDS] = {
    [SHAPE] = ZT_FIELD_NAME("shape"),           [FORMAT] = ZT_FIELD_NAME("format"),
    [COMPONENTS] = ZT_FIELD_NAME("components"), [ATTRIBUTES] = ZT_FIELD_NAME("attributes"),
    [OBJECT_DTYPE] = ZT_FIELD_NAME("dtype"),
};

static enum zt_status take_attributes(struct object_fields *fields, const struct zt_field *field,
                                      struct zt_error *error)
{
    struct zt_text span;
    enum zt_status status;

    if (zt_field_null(&fields->reading->reader))
        return ZT_OK;
    status = zt_field_attributes(&fields->reading->reader, field, &span, error);
    if (status == ZT_OK) {
        fields->object->attributes = (const uint8_t *)span.bytes;
        fields->object->attributes_length = (uint32_t)span.length;
    }
    return status;
}

static enum zt_status take_object_field(void *context, const struct zt_field *field,
                                        struct zt_error *error)
{
    struct object_fields *fields = context;
    struct zt1_reading *reading = fields->reading;
    struct zt_named_entries components = {.take = take_component, .context = fields};
    struct zt_text text;
    enum zt_status status;

    switch (field->number) {
    case SHAPE:
        return zt_field_shape(&reading->reader, field, &reading->builder, error);
    case FORMAT:
        status = zt_field_text(&reading->reader, field, &text, error);
        if (status == ZT_OK) {
            fields->object->format = text.bytes;
            fields->object->format_length = (uint32_t)text.length;
            fields->object->layout = (uint8_t)zt_layout_from_name(ZT_LAYOUTS_ZT1, text);
        }
        return status;
    case COMPONENTS:
        return zt_field_entries(&reading->reader, field, &components, error);
    case ATTRIBUTES:
        return take_attributes(fields, field, error);
    default:
        return zt_field_placed_text(&reading->reader, field, &fields->dtype, error);
    }
}

static const struct zt_map_schema object_schema_1_0 = {
    .what = "the tensor",
    .rules = &zt1_rules,
    .names = object_names,
    .count = OBJECT_FIELDS,
    .required = 1u << SHAPE | 1u << FORMAT | 1u << COMPONENTS | 1u << OBJECT_DTYPE,
    .take = take_object_field,
};

static const struct zt_map_schema object_schema = {
    .what = "the object",
    .rules = &zt1_rules,
    .names = object_names,
    .count = ATTRIBUTES + 1,
    .required = 1u << SHAPE | 1u << FORMAT | 1u << COMPONENTS,
    .take = take_object_field,
};

/* zTensor 1.0 states one dtype, that of the values; what indexes them is u64. */
static enum zt_status settle_dtypes_1_0(const struct object_fields *fields, struct zt_error *error)
{
    struct zt_builder *builder = &fields->reading->builder;
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

/* A dense component's decoded length follows from shape and type where the file does not tell it:
 * 1.0 and 1.1 never do. */
static void settle_dense_lengths(const struct object_fields *fields)
{
    struct zt_builder *builder = &fields->reading->builder;
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
        status = settle_dtypes_1_0(fields, error);
    if (status == ZT_OK)
        settle_dense_lengths(fields);
    return status;
}

enum zt_status zt1_object_read(void *context, struct zt_text name, struct zt_error *error)
{
    struct object_fields fields = {.reading = context};
    enum zt_status status = zt_builder_object(&fields.reading->builder, &fields.object, error);

    if (status != ZT_OK)
        return status;
    fields.object->name = name.bytes;
    fields.object->name_length = (uint32_t)name.length;
    status = read_object(&fields, error);
    if (status != ZT_OK)
        zt_error_within(error, name, (struct zt_text){NULL, 0});
    return status;
}
