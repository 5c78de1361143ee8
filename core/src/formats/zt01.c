/* zTensor 0.1: blobs, then an array of maps, one for each tensor, then the array's size.
 *
 * A tensor becomes an object with the one component "data", the blob as it is, also where it is
 * sparse. Fields that the format does not know are the object's attributes. */
#include "formats/formats.h"

#include <inttypes.h>
#include <string.h>

#include "cbor/cbor_write.h"
#include "formats/fields.h"
#include "model/extents.h"
#include "model/layout.h"

/* The bound that later readers have for every version. */
#define METADATA_MAX_BYTES (1ull << 30)
/* Head of 8 bytes, an array of one byte, its size. */
#define FILE_MIN_BYTES 17
#define HEAD_BYTES     8

static const struct zt_family_rules rules = {
    .schema = "zt0.1 §Metadata Schema",
    .shape = "zt0.1 §Metadata Shape",
    .alignment = "zt0.1 §Layout BlobAlignment",
    .bounds = "zt0.1 §Layout BlobBounds",
};

struct reading {
    struct zt_builder builder;
    struct zt_cbor_reader reader;
    /* Unknown fields of the tensor being read, as encoded pairs. */
    struct zt_buffer attributes;
    uint64_t attribute_count;
};

struct tensor_fields {
    struct reading *reading;
    struct zt_object *object;
    uint64_t offset;
    uint64_t size;
    struct zt_placed_text dtype;
    struct zt_placed_text endianness;
    struct zt_text encoding;
    struct zt_text layout;
    struct zt_text checksum;
};

/* --- a tensor's fields --- */

enum tensor_field {
    NAME,
    OFFSET,
    SIZE,
    DTYPE,
    SHAPE,
    ENCODING,
    LAYOUT,
    ENDIANNESS,
    CHECKSUM,
    TENSOR_FIELDS
};

static const struct zt_text tensor_names[TENSOR_FIELDS] = {
    [NAME] = ZT_FIELD_NAME("name"),         [OFFSET] = ZT_FIELD_NAME("offset"),
    [SIZE] = ZT_FIELD_NAME("size"),         [DTYPE] = ZT_FIELD_NAME("dtype"),
    [SHAPE] = ZT_FIELD_NAME("shape"),       [ENCODING] = ZT_FIELD_NAME("encoding"),
    [LAYOUT] = ZT_FIELD_NAME("layout"),     [ENDIANNESS] = ZT_FIELD_NAME("data_endianness"),
    [CHECKSUM] = ZT_FIELD_NAME("checksum"),
};

static enum zt_status take_name(struct tensor_fields *fields, const struct zt_field *field,
                                struct zt_error *error)
{
    struct zt_text name;
    enum zt_status status = zt_field_text(&fields->reading->reader, field, &name, error);

    if (status == ZT_OK) {
        fields->object->name = name.bytes;
        fields->object->name_length = (uint32_t)name.length;
    }
    return status;
}

static enum zt_status take_field(void *context, const struct zt_field *field,
                                 struct zt_error *error)
{
    struct tensor_fields *fields = context;
    struct zt_cbor_reader *reader = &fields->reading->reader;

    switch (field->number) {
    case NAME:
        return take_name(fields, field, error);
    case OFFSET:
        return zt_field_uint(reader, field, &fields->offset, error);
    case SIZE:
        return zt_field_uint(reader, field, &fields->size, error);
    case DTYPE:
        return zt_field_placed_text(reader, field, &fields->dtype, error);
    case SHAPE:
        return zt_field_shape(reader, field, &fields->reading->builder, error);
    case ENCODING:
        return zt_field_text(reader, field, &fields->encoding, error);
    case LAYOUT:
        return zt_field_text(reader, field, &fields->layout, error);
    case ENDIANNESS:
        return zt_field_null(reader)
                   ? ZT_OK
                   : zt_field_placed_text(reader, field, &fields->endianness, error);
    default:
        return zt_field_null(reader) ? ZT_OK
                                     : zt_field_text(reader, field, &fields->checksum, error);
    }
}

static enum zt_status pass_field(void *context, struct zt_text pair, struct zt_error *error)
{
    struct tensor_fields *fields = context;
    struct reading *reading = fields->reading;

    zt_buffer_append(&reading->attributes, pair.bytes, pair.length);
    if (reading->attributes.failed)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    reading->attribute_count++;
    return ZT_OK;
}

static const struct zt_map_schema tensor_schema = {
    .what = "the tensor",
    .rules = &rules,
    .names = tensor_names,
    .count = TENSOR_FIELDS,
    .required = 1u << NAME | 1u << OFFSET | 1u << SIZE | 1u << DTYPE | 1u << SHAPE | 1u << ENCODING,
    .take = take_field,
    .pass = pass_field,
};

/* --- what they mean together --- */

static enum zt_status settle_attributes(struct tensor_fields *fields, struct zt_error *error)
{
    struct reading *reading = fields->reading;
    const struct zt_buffer *pairs = &reading->attributes;
    struct zt_buffer head = {0};
    void *map;
    enum zt_status status = ZT_OK;

    if (reading->attribute_count == 0)
        return ZT_OK;
    zt_cbor_put_map(&head, reading->attribute_count);
    if (head.failed)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    status = zt_arena_take(&reading->builder.model->storage->arena, head.length + pairs->length,
                           &map, error);
    if (status == ZT_OK) {
        memcpy(map, head.bytes, head.length);
        memcpy((uint8_t *)map + head.length, pairs->bytes, pairs->length);
        fields->object->attributes = map;
        fields->object->attributes_length = (uint32_t)(head.length + pairs->length);
    }
    zt_buffer_free(&head);
    return status;
}

/* Both spellings of sparse are read: the released writers' sparsecoo and sparsecsr, whose blobs are
 * known, and the specification's sparse, whose blobs nothing describes. */
static void settle_layout(struct tensor_fields *fields)
{
    struct zt_object *object = fields->object;

    if (fields->layout.bytes == NULL)
        fields->layout = (struct zt_text){"dense", 5};
    object->format = fields->layout.bytes;
    object->format_length = (uint32_t)fields->layout.length;
    object->layout = zt_text_is(fields->layout, "dense")       ? ZT_LAYOUT_DENSE
                     : zt_text_is(fields->layout, "sparsecoo") ? ZT_LAYOUT_ZT01_COO
                     : zt_text_is(fields->layout, "sparsecsr") ? ZT_LAYOUT_ZT01_CSR
                                                               : ZT_LAYOUT_OTHER;
}

static enum zt_status settle_type(struct tensor_fields *fields, struct zt_component *component,
                                  struct zt_error *error)
{
    enum zt_dtype dtype;

    if (!zt_dtype_from_long_name(fields->dtype.text, &dtype)) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Metadata Dtype", fields->dtype.offset,
                       "the dtype is not known");
    }
    component->dtype = (uint8_t)dtype;
    if (fields->endianness.text.bytes == NULL || zt_text_is(fields->endianness.text, "little"))
        return ZT_OK;
    if (!zt_text_is(fields->endianness.text, "big")) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Metadata Endianness", fields->endianness.offset,
                       "data_endianness is neither little nor big");
    }
    if (component->encoding != ZT_ENCODING_RAW) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Metadata Endianness", fields->endianness.offset,
                       "big-endian data is only for encoding raw");
    }
    component->big_endian = zt_dtype_width(dtype) > 1;
    return ZT_OK;
}

/* Dense bytes, once decoded, are as many as shape and dtype say; for zstd nothing else tells how
 * many. */
static enum zt_status settle_dense_length(const struct tensor_fields *fields,
                                          struct zt_component *component, struct zt_error *error)
{
    const struct zt_object *object = fields->object;
    uint64_t elements;
    uint64_t bytes;

    if (object->layout != ZT_LAYOUT_DENSE)
        return ZT_OK;
    if (!zt_shape_product(fields->reading->builder.dimensions + object->first_dimension,
                          object->rank, &elements) ||
        zt_element_bytes((enum zt_dtype)component->dtype, ZT_LOGICAL_NONE, elements, &bytes) !=
            ZT_OK) {
        return zt_fail(error, ZT_INVALID, rules.shape,
                       zt_builder_offset_of(&fields->reading->builder, object->name),
                       "the size of so many elements does not fit in 64 bits");
    }
    if (component->encoding == ZT_ENCODING_RAW && component->length != bytes) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Metadata DenseSize", component->offset,
                       "%" PRIu64 " bytes where shape and dtype want %" PRIu64, component->length,
                       bytes);
    }
    if (component->encoding == ZT_ENCODING_ZSTD)
        component->decoded_length = bytes;
    return ZT_OK;
}

static enum zt_status settle_component(struct tensor_fields *fields, struct zt_error *error)
{
    struct zt_builder *builder = &fields->reading->builder;
    struct zt_component *component;
    enum zt_status status = zt_builder_component(builder, &component, error);

    if (status != ZT_OK)
        return status;
    component->name = "data";
    component->name_length = 4;
    component->offset = fields->offset;
    component->length = fields->size;
    component->digest = fields->checksum.bytes;
    component->digest_length = (uint32_t)fields->checksum.length;
    settle_layout(fields);
    zt_component_set_encoding(component, fields->encoding);
    status = settle_type(fields, component, error);
    if (status == ZT_OK)
        status = zt_blob_check(component, builder->model, &rules, error);
    if (status == ZT_OK)
        status = settle_dense_length(fields, component, error);
    return status;
}

static enum zt_status read_tensor(struct reading *reading, struct zt_error *error)
{
    struct tensor_fields fields = {.reading = reading};
    enum zt_status status = zt_builder_object(&reading->builder, &fields.object, error);

    if (status != ZT_OK)
        return status;
    reading->attributes.length = 0;
    reading->attribute_count = 0;
    status = zt_map_read(&reading->reader, &tensor_schema, &fields, error);
    if (status == ZT_OK)
        status = settle_attributes(&fields, error);
    if (status == ZT_OK)
        status = settle_component(&fields, error);
    if (status != ZT_OK && fields.object->name != NULL)
        zt_error_within(error, zt_object_name(fields.object), (struct zt_text){NULL, 0});
    return status;
}

/* --- the file --- */

static enum zt_status read_metadata(struct reading *reading, struct zt_error *error)
{
    struct zt_model *model = reading->builder.model;
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    bool more;
    enum zt_status status;

    zt_cbor_reader_init(&reading->reader, model->storage->manifest, (size_t)model->manifest_length,
                        model->manifest_offset, ZT_CBOR_ZT01, &model->storage->arena);
    status = zt_cbor_next_untagged(&reading->reader, &item, error);
    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_ARRAY) {
        return zt_fail(error, ZT_INVALID, rules.schema, item.offset,
                       "the metadata is not an array");
    }
    status = zt_cbor_enter(&reading->reader, &item, &walk, error);
    while (status == ZT_OK &&
           (status = zt_cbor_more(&reading->reader, &walk, &more, error)) == ZT_OK && more)
        status = read_tensor(reading, error);
    return status == ZT_OK ? zt_cbor_end(&reading->reader, error) : status;
}

static enum zt_status read_size(struct zt_source *source, uint64_t *out_size,
                                struct zt_error *error)
{
    uint64_t file_size = zt_source_size(source);
    uint8_t tail[8];
    enum zt_status status;
    uint64_t size;

    if (file_size < FILE_MIN_BYTES) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Layout FileTooSmall", 0,
                       "a file of %" PRIu64 " bytes", file_size);
    }
    status = zt_source_read_at(source, file_size - sizeof(tail), tail, sizeof(tail), error);
    if (status != ZT_OK)
        return status;
    size = zt_load_le64(tail);
    if (size == 0 || size > file_size - HEAD_BYTES - sizeof(tail)) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Layout MetadataBounds", file_size - sizeof(tail),
                       "metadata of %" PRIu64 " bytes does not fit a file of %" PRIu64, size,
                       file_size);
    }
    if (size > METADATA_MAX_BYTES) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Layout MetadataTooLarge",
                       file_size - sizeof(tail),
                       "the metadata's size is %" PRIu64 " bytes, more than 1 GiB", size);
    }
    *out_size = size;
    return ZT_OK;
}

enum zt_status zt01_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error)
{
    struct reading reading = {0};
    struct zt_model *model = NULL;
    uint64_t size = 0;
    enum zt_status status = read_size(source, &size, error);
    uint64_t offset;

    if (status != ZT_OK)
        return status;
    offset = zt_source_size(source) - sizeof(size) - size;
    status = zt_manifest_begins(source, offset, ZT_CBOR_MAJOR_ARRAY, &rules, error);
    if (status == ZT_OK)
        status = zt_builder_init(&reading.builder, source, offset, size, error);
    if (status != ZT_OK)
        return status;
    reading.builder.model->format = ZT_FORMAT_ZT01;
    reading.builder.model->format_name = "zt";
    reading.builder.model->version = (struct zt_text){"0.1.0", 5};
    status = read_metadata(&reading, error);
    if (status == ZT_OK) {
        status =
            zt_builder_finish(&reading.builder, "zt0.1 §Metadata DuplicateName", &model, error);
    }
    zt_buffer_free(&reading.attributes);
    if (status != ZT_OK) {
        zt_builder_abandon(&reading.builder);
        return status;
    }
    status = zt_extents_check(model, false, "zt0.1 §Layout BlobOverlap", error);
    if (status != ZT_OK) {
        zt_model_free(model);
        return status;
    }
    *out_model = model;
    return ZT_OK;
}
