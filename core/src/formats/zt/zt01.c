/* zTensor 0.1: blobs, an array of maps (one for each tensor), and the array's size.
 *
 * A tensor, even a sparse one, becomes an object with the single component "data", its blob. Fields
 * that the format does not define become the object's attributes. */
#include "formats/formats.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "formats/attribute_list.h"
#include "formats/zt/fields.h"
#include "model/layout.h"
#include "model/locate.h"

/* The same bound as in later versions. */
#define METADATA_MAX_BYTES (1ull << 30)
/* A head of 8 bytes, an array of one byte, and its size. */
#define FILE_MIN_BYTES 17
#define HEAD_BYTES     8
#define SIZE_BYTES     8

static const struct zt_family_rules rules = {
    .schema = "zt0.1 §Metadata Schema",
    .shape = "zt0.1 §Metadata Shape",
    .alignment = "zt0.1 §Layout BlobAlignment",
    .bounds = "zt0.1 §Layout BlobBounds",
};

struct reading {
    struct zt_builder *builder;
    struct zt_cbor_reader reader;
    struct zt_attribute_list attributes; /* of the tensor being read */
};

/* --- a tensor's fields --- */

struct tensor_fields {
    struct reading *reading;
    struct zt_object *object;
    struct zt_placed_text name;
    uint64_t offset;
    uint64_t size;
    struct zt_placed_text dtype;
    struct zt_placed_text endianness;
    struct zt_placed_text encoding;
    struct zt_placed_text layout;
    struct zt_placed_text checksum;
};

static enum zt_status read_shape(void *context, const struct zt_field *field,
                                 struct zt_error *error)
{
    struct tensor_fields *fields = context;

    return zt_field_shape(field, fields->reading->builder, error);
}

static enum zt_status keep_field(void *context, struct zt_text pair, struct zt_error *error)
{
    struct tensor_fields *fields = context;
    struct zt_attribute_list *attributes = &fields->reading->attributes;

    zt_attribute_list_pair(attributes, pair);
    if (attributes->pairs.failed)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    return ZT_OK;
}

#define AT(member) offsetof(struct tensor_fields, member)

static const struct zt_map_field tensor_fields[] = {
    {"name", ZT_FIELD_REQUIRED, zt_field_read_text, AT(name)},
    {"offset", ZT_FIELD_REQUIRED, zt_field_read_uint, AT(offset)},
    {"size", ZT_FIELD_REQUIRED, zt_field_read_uint, AT(size)},
    {"dtype", ZT_FIELD_REQUIRED, zt_field_read_text, AT(dtype)},
    {"shape", ZT_FIELD_REQUIRED, read_shape, 0},
    {"encoding", ZT_FIELD_REQUIRED, zt_field_read_text, AT(encoding)},
    {"layout", 0, zt_field_read_text, AT(layout)},
    {"data_endianness", ZT_FIELD_NULLABLE, zt_field_read_text, AT(endianness)},
    {"checksum", ZT_FIELD_NULLABLE, zt_field_read_text, AT(checksum)},
};

static const struct zt_map_schema tensor_schema = {
    .what = "the tensor",
    .rules = &rules,
    .fields = tensor_fields,
    .count = sizeof(tensor_fields) / sizeof(*tensor_fields),
    .pass = keep_field,
};

/* --- the tensor --- */

static enum zt_status set_attributes(struct tensor_fields *fields, struct zt_error *error)
{
    const struct reading *reading = fields->reading;
    struct zt_text map;
    enum zt_status status;

    if (reading->attributes.count == 0)
        return ZT_OK;
    status = zt_attribute_list_keep(&reading->attributes, reading->builder, &map, error);
    if (status == ZT_OK) {
        fields->object->attributes = (const uint8_t *)map.bytes;
        fields->object->attributes_length = (uint32_t)map.length;
    }
    return status;
}

/* Sparse encodings have two spellings: the released writers use sparsecoo and sparsecsr, whose
 * blobs are known; the specification uses sparse, whose blobs are not described anywhere. */
static void set_layout(struct tensor_fields *fields)
{
    struct zt_object *object = fields->object;
    struct zt_text layout = fields->layout.text;

    if (layout.bytes == NULL)
        layout = zt_text_from("dense");
    object->format = layout.bytes;
    object->format_length = (uint32_t)layout.length;
    object->layout = zt_text_is(layout, "dense")       ? ZT_LAYOUT_DENSE
                     : zt_text_is(layout, "sparsecoo") ? ZT_LAYOUT_ZT01_COO
                     : zt_text_is(layout, "sparsecsr") ? ZT_LAYOUT_ZT01_CSR
                                                       : ZT_LAYOUT_OTHER;
}

static enum zt_status set_type(struct tensor_fields *fields, struct zt_component *component,
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
                       "big-endian data requires the encoding raw");
    }
    component->big_endian = zt_dtype_width(dtype) > 1;
    return ZT_OK;
}

/* A dense tensor decodes to as many bytes as shape and dtype require; a zstd blob does not state
 * its length. */
static enum zt_status set_dense_length(const struct tensor_fields *fields,
                                       struct zt_component *component, struct zt_error *error)
{
    const struct zt_object *object = fields->object;
    uint64_t elements;
    uint64_t bytes;

    if (object->layout != ZT_LAYOUT_DENSE)
        return ZT_OK;
    if (!zt_shape_product(fields->reading->builder->dimensions + object->first_dimension,
                          object->rank, &elements) ||
        zt_element_bytes((enum zt_dtype)component->dtype, ZT_LOGICAL_NONE, elements, &bytes) !=
            ZT_OK) {
        return zt_fail(error, ZT_INVALID, rules.shape,
                       zt_manifest_position(fields->reading->builder->model, object->name),
                       "the size of the elements does not fit in 64 bits");
    }
    if (component->encoding == ZT_ENCODING_RAW && component->length != bytes) {
        return zt_fail(error, ZT_INVALID, "zt0.1 §Metadata DenseSize", component->offset,
                       "%" PRIu64 " bytes where shape and dtype take %" PRIu64, component->length,
                       bytes);
    }
    if (component->encoding == ZT_ENCODING_ZSTD)
        component->decoded_length = bytes;
    return ZT_OK;
}

static enum zt_status add_component(struct tensor_fields *fields, struct zt_error *error)
{
    struct zt_builder *builder = fields->reading->builder;
    struct zt_component *component;
    enum zt_status status = zt_builder_component(builder, &component, error);

    if (status != ZT_OK)
        return status;
    component->name = "data";
    component->name_length = 4;
    component->offset = fields->offset;
    component->length = fields->size;
    component->digest = fields->checksum.text.bytes;
    component->digest_length = (uint32_t)fields->checksum.text.length;
    set_layout(fields);
    zt_component_set_encoding(component, fields->encoding.text);
    status = set_type(fields, component, error);
    if (status == ZT_OK)
        status = zt_blob_check(component, builder->model, &rules, error);
    if (status == ZT_OK)
        status = set_dense_length(fields, component, error);
    return status;
}

static enum zt_status read_tensor(struct reading *reading, struct zt_error *error)
{
    struct tensor_fields fields = {.reading = reading};
    struct zt_text name;
    enum zt_status status = zt_builder_object(reading->builder, &fields.object, error);

    if (status != ZT_OK)
        return status;
    zt_attribute_list_clear(&reading->attributes);
    status = zt_map_read(&reading->reader, &tensor_schema, &fields, error);
    name = fields.name.text;
    if (status == ZT_OK) {
        fields.object->name = name.bytes;
        fields.object->name_length = (uint32_t)name.length;
        status = set_attributes(&fields, error);
    }
    if (status == ZT_OK)
        status = add_component(&fields, error);
    if (status != ZT_OK && name.bytes != NULL)
        zt_error_within(error, name, (struct zt_text){NULL, 0});
    return status;
}

/* --- the file --- */

static enum zt_status read_metadata(struct reading *reading, struct zt_error *error)
{
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    enum zt_status status = zt_cbor_next_untagged(&reading->reader, &item, error);

    if (status != ZT_OK)
        return status;
    if (item.kind != ZT_CBOR_ARRAY)
        return zt_fail(error, ZT_INVALID, rules.schema, item.offset,
                       "the metadata is not an array");
    walk = zt_cbor_enter(&reading->reader, &item);
    while (status == ZT_OK && zt_cbor_more(&reading->reader, &walk))
        status = read_tensor(reading, error);
    return status == ZT_OK ? zt_cbor_end(&reading->reader, error) : status;
}

static enum zt_status read_size(struct zt_source *source, uint64_t *out_size,
                                struct zt_error *error)
{
    uint64_t file_size = zt_source_size(source);
    uint8_t tail[SIZE_BYTES];
    enum zt_status status;
    uint64_t size;

    if (file_size < FILE_MIN_BYTES)
        return zt_fail(error, ZT_INVALID, "zt0.1 §Layout FileTooSmall", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", file_size);
    status = zt_source_read_at(source, file_size - SIZE_BYTES, tail, sizeof(tail), error);
    if (status != ZT_OK)
        return status;
    size = zt_load_le64(tail);
    if (size == 0 || size > file_size - HEAD_BYTES - SIZE_BYTES)
        return zt_fail(error, ZT_INVALID, "zt0.1 §Layout MetadataBounds", file_size - SIZE_BYTES,
                       CUT_OFF "metadata of %" PRIu64 " bytes does not fit a file of %" PRIu64,
                       size, file_size);
    if (size > METADATA_MAX_BYTES)
        return zt_fail(error, ZT_INVALID, "zt0.1 §Layout MetadataTooLarge", file_size - SIZE_BYTES,
                       "the metadata's size is %" PRIu64 " bytes, more than 1 GiB", size);
    *out_size = size;
    return ZT_OK;
}

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    uint64_t size = 0;
    enum zt_status status = read_size(source, &size, error);

    (void)state;
    if (status != ZT_OK)
        return status;
    *out_place = (struct zt_manifest_place){zt_source_size(source) - SIZE_BYTES - size, size};
    assert(out_place->offset >= HEAD_BYTES);
    return zt_manifest_check_start(source, out_place->offset, ZT_CBOR_MAJOR_ARRAY,
                                   CUT_OFF "it does not end in a manifest", &rules, error);
}

static enum zt_status read_model(void *state, struct zt_builder *builder, struct zt_error *error)
{
    struct reading reading = {.builder = builder};
    struct zt_model *model = builder->model;
    enum zt_status status;

    (void)state;
    model->version = zt_text_from("0.1.0");
    zt_cbor_reader_init(&reading.reader, model->storage->manifest, (size_t)model->manifest_length,
                        model->manifest_offset, ZT_CBOR_ZT01, &model->storage->arena);
    status = read_metadata(&reading, error);
    zt_attribute_list_free(&reading.attributes);
    return status;
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_ZT01,
    .name = "zt",
    .duplicate_rule = "zt0.1 §Metadata DuplicateName",
    .overlap_rule = "zt0.1 §Layout BlobOverlap",
    .locate = locate,
    .read = read_model,
};

enum zt_status zt01_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error)
{
    return zt_reader_open(&reader, NULL, source, out_model, error);
}
