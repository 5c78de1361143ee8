/* Walking the records of .mag version 1, and reading those of its two layouts. */
#include "formats/mag_records.h"

#include <inttypes.h>
#include <string.h>

#include "formats/little_endian.h"
#include "model/layout.h"
#include "zt/utf8.h"

#define METADATA_MIN 17
/* The specification's shape has room for six. */
#define RANK_MAX 6
/* M1: shape, dtype, data_length, data_offset, aux. */
#define M1_AFTER_KEY 69

/* float32, float16, boolean, int32: all that version 1 has. */
static const enum zt_dtype dtypes[] = {ZT_F32, ZT_F16, ZT_BOOL, ZT_I32};

enum zt_status mag_header_read(struct zt_source *source, struct mag_header *out_header,
                               struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    uint8_t bytes[MAG_HEADER_BYTES];
    enum zt_status status;

    if (size < sizeof(bytes))
        return zt_fail(error, ZT_INVALID, "mag §Header FileTooSmall", 0,
                       "a file of %" PRIu64 " bytes", size);
    status = zt_source_read_at(source, 0, bytes, sizeof(bytes), error);
    if (status == ZT_OK)
        *out_header = (struct mag_header){.version = load_le32(bytes + 4),
                                          .checksum = load_le32(bytes + MAG_CHECKSUM_AT),
                                          .tensor_count = load_le32(bytes + 12),
                                          .metadata_count = load_le32(bytes + 16),
                                          .reserved = load_le32(bytes + MAG_RESERVED_AT)};
    return status;
}

/* --- keys and sizes --- */

enum zt_status mag_key_check(const uint8_t *bytes, size_t length, uint64_t at,
                             struct zt_error *error)
{
    if (length == 0 || length > MAG_TAKE_MAX || memchr(bytes, 0, length) != NULL ||
        !zt_utf8_valid((const char *)bytes, length))
        return zt_fail(error, ZT_INVALID, "mag §Names Name", at,
                       "a key is empty, longer than 65535 bytes, holds a NUL or is not UTF-8");
    return ZT_OK;
}

enum zt_status mag_key_read(struct mag_cursor *cursor, uint64_t *out_at, uint32_t *out_length,
                            struct zt_error *error)
{
    const uint8_t *bytes;
    uint32_t length;
    enum zt_status status = mag_cursor_u32(cursor, &length, error);
    uint64_t at = cursor->position;

    if (status == ZT_OK && length > MAG_TAKE_MAX)
        return zt_fail(error, ZT_INVALID, "mag §Names Name", at - 4, "a key of %" PRIu32 " bytes",
                       length);
    if (status == ZT_OK)
        status = mag_cursor_take(cursor, length, &bytes, error);
    if (status == ZT_OK)
        status = mag_key_check(bytes, length, at, error);
    if (status != ZT_OK)
        return status;
    *out_at = at;
    *out_length = length;
    return ZT_OK;
}

enum zt_status mag_tensor_bytes(const struct mag_tensor *tensor, uint64_t at, uint64_t *out_bytes,
                                struct zt_error *error)
{
    uint64_t elements;

    if (!zt_shape_product(tensor->shape, tensor->rank, &elements) ||
        zt_element_bytes(tensor->dtype, tensor->logical, elements, out_bytes) != ZT_OK)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at,
                       "the tensor's size is past 64 bits");
    return ZT_OK;
}

static enum zt_status fail_dtype(uint32_t dtype, uint64_t at, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, "mag §Tensors Dtype", at,
                   "the dtype %" PRIu32 " is not known", dtype);
}

/* --- M1 --- */

/* The rank as aux says it in its second byte, or 0. */
static enum zt_status read_m1_aux(uint32_t aux, uint64_t at, uint8_t *out_rank,
                                  struct zt_error *error)
{
    if ((aux & ~0xFF00u) != 0 || aux >> 8 > RANK_MAX)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Reserved", at,
                       "aux is %#" PRIx32 ", neither 0 nor a rank in its second byte", aux);
    *out_rank = (uint8_t)(aux >> 8);
    return ZT_OK;
}

/* The specification has no rank: dimensions of 0 or 1 at the end are padding, but one dimension
 * there is. Where there are no data, the first 0 is a dimension as well. */
static uint8_t told_rank(const uint64_t shape[RANK_MAX], uint64_t length)
{
    uint8_t rank = RANK_MAX;
    uint8_t zero = 0;

    while (rank > 1 && shape[rank - 1] <= 1)
        rank--;
    while (zero < RANK_MAX && shape[zero] != 0)
        zero++;
    return length == 0 && zero >= rank && zero < RANK_MAX ? (uint8_t)(zero + 1) : rank;
}

static enum zt_status settle_m1_rank(struct mag_tensor *tensor, uint32_t aux, uint64_t at,
                                     struct zt_error *error)
{
    enum zt_status status = read_m1_aux(aux, at + M1_AFTER_KEY - 4, &tensor->rank, error);

    if (status != ZT_OK)
        return status;
    for (unsigned i = 0; i < RANK_MAX; i++) {
        if (tensor->shape[i] > INT64_MAX)
            return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at + 8 * i,
                           "a dimension is negative");
        if (tensor->rank > 0 && i >= tensor->rank && tensor->shape[i] > 1)
            return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at + 8 * i,
                           "a dimension of %" PRIu64 " past the rank of %u", tensor->shape[i],
                           tensor->rank);
    }
    if (tensor->rank == 0)
        tensor->rank = told_rank(tensor->shape, tensor->length);
    return ZT_OK;
}

static enum zt_status read_m1_tensor(struct mag_cursor *cursor, struct mag_tensor *tensor,
                                     struct zt_error *error)
{
    const uint8_t *bytes;
    uint64_t wanted;
    enum zt_status status = mag_key_read(cursor, &tensor->key_at, &tensor->key_length, error);
    uint64_t at = cursor->position;

    if (status == ZT_OK)
        status = mag_cursor_take(cursor, M1_AFTER_KEY, &bytes, error);
    if (status != ZT_OK)
        return status;
    for (unsigned i = 0; i < RANK_MAX; i++)
        tensor->shape[i] = load_le64(bytes + 8 * i);
    if (bytes[48] >= sizeof(dtypes) / sizeof(*dtypes))
        return fail_dtype(bytes[48], at + 48, error);
    tensor->dtype = dtypes[bytes[48]];
    tensor->length = load_le64(bytes + 49);
    tensor->offset = load_le64(bytes + 57);
    status = settle_m1_rank(tensor, load_le32(bytes + 65), at, error);
    if (status == ZT_OK)
        status = mag_tensor_bytes(tensor, at, &wanted, error);
    if (status == ZT_OK && tensor->length != wanted)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataSize", at + 49,
                       "data of %" PRIu64 " bytes, shape and dtype take %" PRIu64, tensor->length,
                       wanted);
    return status;
}

const struct mag_layout mag_m1 = {
    .name = "the specification's layout",
    .record_min = 4 + 1 + M1_AFTER_KEY,
    .has_opaque = true,
    .tensor = read_m1_tensor,
};

/* --- M2 --- */

static enum zt_status read_m2_shape(struct mag_cursor *cursor, struct mag_tensor *tensor,
                                    uint64_t elements, struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint64_t product;

    for (unsigned i = 0; i < tensor->rank; i++) {
        enum zt_status status = mag_cursor_u64(cursor, &tensor->shape[i], error);

        if (status != ZT_OK)
            return status;
        if (tensor->shape[i] == 0 || tensor->shape[i] > INT64_MAX)
            return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at + 8 * i,
                           "a dimension is 0 or negative");
    }
    if (!zt_shape_product(tensor->shape, tensor->rank, &product) || product != elements)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataSize", at,
                       "the shape is not that of %" PRIu64 " elements", elements);
    return mag_tensor_bytes(tensor, at, &tensor->length, error);
}

static enum zt_status read_m2_tensor(struct mag_cursor *cursor, struct mag_tensor *tensor,
                                     struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint32_t aux = 0;
    uint64_t elements = 0;
    enum zt_status status = mag_cursor_u32(cursor, &aux, error);

    if (status == ZT_OK)
        status = mag_cursor_u64(cursor, &elements, error);
    if (status == ZT_OK)
        status = mag_cursor_u64(cursor, &tensor->offset, error);
    if (status != ZT_OK)
        return status;
    if (aux >> 16 != 0)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Reserved", at,
                       "the upper bytes of aux are not 0");
    if ((aux & 0xFF) >= sizeof(dtypes) / sizeof(*dtypes))
        return fail_dtype(aux & 0xFF, at, error);
    if (aux >> 8 < 1 || aux >> 8 > RANK_MAX)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at, "a rank of %" PRIu32, aux >> 8);
    tensor->dtype = dtypes[aux & 0xFF];
    tensor->rank = (uint8_t)(aux >> 8);
    status = read_m2_shape(cursor, tensor, elements, error);
    if (status == ZT_OK)
        status = mag_key_read(cursor, &tensor->key_at, &tensor->key_length, error);
    return status;
}

const struct mag_layout mag_m2 = {
    .name = "the layout of magnetron 0.1.2",
    .record_min = 4 + 8 + 8 + 8 + 4 + 1,
    .tensor = read_m2_tensor,
};

/* --- the walk --- */

static enum zt_status read_metadata(const struct mag_layout *layout, struct mag_cursor *cursor,
                                    struct mag_metadata *metadata, struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint32_t aux = 0;
    enum zt_status status = mag_cursor_u32(cursor, &aux, error);

    if (status == ZT_OK)
        status = mag_cursor_u64(cursor, &metadata->payload, error);
    if (status == ZT_OK && (aux > MAG_F64 || (aux == MAG_OPAQUE && !layout->has_opaque)))
        return zt_fail(error, ZT_INVALID, "mag §Metadata Type", at, "metadata of type %#" PRIx32,
                       aux);
    if (status == ZT_OK)
        status = mag_key_read(cursor, &metadata->key_at, &metadata->key_length, error);
    metadata->kind = (enum mag_payload)aux;
    return status;
}

static enum zt_status walk_metadata(const struct mag_layout *layout, struct mag_cursor *cursor,
                                    uint32_t count, const struct mag_visitor *visitor,
                                    struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    cursor->rule = "mag §Metadata Record";
    for (uint32_t i = 0; status == ZT_OK && i < count; i++) {
        struct mag_metadata metadata;

        status = read_metadata(layout, cursor, &metadata, error);
        if (status == ZT_OK && visitor != NULL)
            status = visitor->metadata(visitor->context, &metadata, error);
    }
    return status;
}

/* lowest: the smallest offset of any data so far. */
static enum zt_status walk_tensor(const struct mag_layout *layout, struct mag_cursor *cursor,
                                  const struct mag_visitor *visitor, uint64_t *lowest,
                                  struct zt_error *error)
{
    struct mag_tensor tensor = {0};
    uint64_t at = cursor->position;
    enum zt_status status = layout->tensor(cursor, &tensor, error);

    if (status != ZT_OK)
        return status;
    if (tensor.offset > cursor->size || tensor.length > cursor->size - tensor.offset)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataBounds", at,
                       "data of %" PRIu64 " bytes at %" PRIu64 " do not lie in the file",
                       tensor.length, tensor.offset);
    if (tensor.length > 0 && tensor.offset < *lowest)
        *lowest = tensor.offset;
    return visitor != NULL ? visitor->tensor(visitor->context, &tensor, error) : ZT_OK;
}

static enum zt_status walk(const struct mag_layout *layout, const struct mag_header *header,
                           struct mag_cursor *cursor, const struct mag_visitor *visitor,
                           struct zt_error *error)
{
    uint64_t lowest = UINT64_MAX;
    enum zt_status status = walk_metadata(layout, cursor, header->metadata_count, visitor, error);

    cursor->rule = "mag §Tensors Record";
    for (uint32_t i = 0; status == ZT_OK && i < header->tensor_count; i++)
        status = walk_tensor(layout, cursor, visitor, &lowest, error);
    if (status == ZT_OK && lowest < cursor->position)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataBounds", lowest,
                       "data begin before the records end at %" PRIu64, cursor->position);
    return status;
}

enum zt_status mag_records_walk(const struct mag_layout *layout, const struct mag_header *header,
                                struct zt_source *source, const struct mag_visitor *visitor,
                                uint64_t *out_end, struct zt_error *error)
{
    uint64_t room = zt_source_size(source) - MAG_HEADER_BYTES;
    uint64_t wanted = (uint64_t)header->metadata_count * METADATA_MIN;
    struct mag_cursor cursor;
    enum zt_status status;

    if (wanted > room || (uint64_t)header->tensor_count * layout->record_min > room - wanted)
        return zt_fail(error, ZT_INVALID, "mag §Header RecordCount", MAG_CHECKSUM_AT + 4,
                       "%" PRIu32 " tensors and %" PRIu32 " metadata do not fit the file",
                       header->tensor_count, header->metadata_count);
    status = mag_cursor_open(&cursor, source, MAG_HEADER_BYTES, error);
    if (status == ZT_OK)
        status = walk(layout, header, &cursor, visitor, error);
    if (status == ZT_OK)
        *out_end = cursor.position;
    mag_cursor_close(&cursor);
    return status;
}

/* --- into the model --- */

enum zt_status mag_tensor_add(struct zt_builder *builder, const struct mag_tensor *tensor,
                              struct zt_error *error)
{
    struct zt_object *object;
    struct zt_component *component;
    enum zt_status status = zt_builder_object(builder, &object, error);

    if (status != ZT_OK)
        return status;
    object->name = (const char *)builder->model->storage->manifest + tensor->key_at;
    object->name_length = tensor->key_length;
    object->format = "dense";
    object->format_length = 5;
    object->layout = ZT_LAYOUT_DENSE;
    for (unsigned i = 0; status == ZT_OK && i < tensor->rank; i++)
        status = zt_builder_dimension(builder, tensor->shape[i], error);
    if (status == ZT_OK)
        status = zt_builder_component(builder, &component, error);
    if (status != ZT_OK)
        return status;
    component->name = "data";
    component->name_length = 4;
    component->encoding = ZT_ENCODING_RAW;
    component->encoding_name = "raw";
    component->encoding_length = 3;
    component->dtype = (uint8_t)tensor->dtype;
    component->logical = (uint8_t)tensor->logical;
    component->type = zt_logical_name(tensor->logical);
    component->type_length = component->type != NULL ? (uint32_t)strlen(component->type) : 0;
    component->offset = tensor->offset;
    component->length = component->decoded_length = tensor->length;
    return ZT_OK;
}
