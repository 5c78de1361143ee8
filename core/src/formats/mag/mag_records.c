/* Walking the records of .mag version 1, in either layout: in the file, to check them and find
 * their end, and in memory, to add them to a model. */
#include "formats/mag/mag.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "model/layout.h"
#include "zt/utf8.h"

#define METADATA_MIN 17
/* The specification's shape has six dimensions. */
#define RANK_MAX 6
/* M1: shape, dtype, data_length, data_offset, aux. */
#define M1_AFTER_KEY 69

static_assert(MAG_KEY_MAX <= ZT_CURSOR_TAKE_MAX, "a key is taken at once");

/* float32, float16, boolean and int32 are all the types of version 1. */
static const enum zt_dtype dtypes[] = {ZT_F32, ZT_F16, ZT_BOOL, ZT_I32};

enum zt_status mag_header_read(struct zt_source *source, struct mag_header *out_header,
                               struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    uint8_t bytes[MAG_HEADER_BYTES];
    enum zt_status status;

    if (size < sizeof(bytes))
        return zt_fail(error, ZT_INVALID, "mag §Header FileTooSmall", 0,
                       CUT_OFF "a file of %" PRIu64 " bytes", size);
    status = zt_source_read_at(source, 0, bytes, sizeof(bytes), error);
    if (status == ZT_OK)
        *out_header = (struct mag_header){.version = zt_load_le32(bytes + 4),
                                          .checksum = zt_load_le32(bytes + MAG_CHECKSUM_AT),
                                          .tensor_count = zt_load_le32(bytes + 12),
                                          .metadata_count = zt_load_le32(bytes + 16),
                                          .reserved = zt_load_le32(bytes + MAG_RESERVED_AT)};
    return status;
}

/* --- keys and sizes --- */

enum zt_status mag_key_check(struct zt_text key, uint64_t at, struct zt_error *error)
{
    if (key.length == 0 || key.length > MAG_KEY_MAX || memchr(key.bytes, 0, key.length) != NULL ||
        !zt_utf8_valid(key.bytes, key.length))
        return zt_fail(error, ZT_INVALID, "mag §Names Name", at,
                       "a key is empty, longer than 65535 bytes, holds a NUL or is not UTF-8");
    return ZT_OK;
}

/* The key is borrowed until the cursor moves; a key in memory is valid as long as that memory. */
static enum zt_status read_key(struct zt_cursor *cursor, struct zt_text *out_key,
                               struct zt_error *error)
{
    const uint8_t *bytes;
    uint32_t length = 0;
    enum zt_status status = zt_cursor_u32(cursor, &length, error);
    uint64_t at = cursor->position;

    if (status == ZT_OK && length > MAG_KEY_MAX)
        return zt_fail(error, ZT_INVALID, "mag §Names Name", at - 4, "a key of %" PRIu32 " bytes",
                       length);
    if (status == ZT_OK)
        status = zt_cursor_take(cursor, length, &bytes, error);
    if (status != ZT_OK)
        return status;
    *out_key = (struct zt_text){(const char *)bytes, length};
    return mag_key_check(*out_key, at, error);
}

enum zt_status mag_tensor_bytes(const struct zt_tensor *tensor, uint64_t at, uint64_t *out_bytes,
                                struct zt_error *error)
{
    uint64_t elements;

    assert(tensor->rank <= ZT_RANK_MAX);
    if (!zt_shape_product(tensor->shape, tensor->rank, &elements) ||
        zt_element_bytes(tensor->dtype, tensor->logical, elements, out_bytes) != ZT_OK)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at,
                       "the tensor's size does not fit in 64 bits");
    return ZT_OK;
}

static enum zt_status fail_dtype(uint32_t dtype, uint64_t at, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, "mag §Tensors Dtype", at,
                   "the dtype %" PRIu32 " is not known", dtype);
}

/* --- M1 --- */

/* *out_rank is the rank that the second byte of aux states, or 0. */
static enum zt_status read_m1_aux(uint32_t aux, uint64_t at, uint8_t *out_rank,
                                  struct zt_error *error)
{
    if ((aux & ~0xFF00u) != 0 || aux >> 8 > RANK_MAX)
        return zt_fail(error, ZT_INVALID, "mag §Tensors Reserved", at,
                       "aux is %#" PRIx32 ", neither 0 nor a rank in its second byte", aux);
    *out_rank = (uint8_t)(aux >> 8);
    return ZT_OK;
}

/* The specification stores no rank: trailing dimensions of 0 or 1 are padding, but at least one
 * dimension remains. In a tensor without data the dimensions up to the first 0 are real. */
static uint8_t guess_rank(const uint64_t shape[RANK_MAX], uint64_t length)
{
    uint8_t rank = RANK_MAX;
    uint8_t zero = 0;

    while (rank > 1 && shape[rank - 1] <= 1)
        rank--;
    while (zero < RANK_MAX && shape[zero] != 0)
        zero++;
    return length == 0 && zero >= rank && zero < RANK_MAX ? (uint8_t)(zero + 1) : rank;
}

static enum zt_status set_m1_rank(struct zt_tensor *tensor, uint32_t aux, uint64_t at,
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
        tensor->rank = guess_rank(tensor->shape, tensor->length);
    assert(tensor->rank <= RANK_MAX);
    return ZT_OK;
}

static enum zt_status read_m1_tensor(struct zt_cursor *cursor, struct zt_tensor *tensor,
                                     struct zt_error *error)
{
    const uint8_t *bytes;
    uint64_t wanted;
    enum zt_status status = read_key(cursor, &tensor->name, error);
    uint64_t at = cursor->position;

    if (status == ZT_OK)
        status = zt_cursor_take(cursor, M1_AFTER_KEY, &bytes, error);
    if (status != ZT_OK)
        return status;
    for (unsigned i = 0; i < RANK_MAX; i++)
        tensor->shape[i] = zt_load_le64(bytes + 8 * i);
    if (bytes[48] >= sizeof(dtypes) / sizeof(*dtypes))
        return fail_dtype(bytes[48], at + 48, error);
    tensor->dtype = dtypes[bytes[48]];
    tensor->length = zt_load_le64(bytes + 49);
    tensor->offset = zt_load_le64(bytes + 57);
    status = set_m1_rank(tensor, zt_load_le32(bytes + 65), at, error);
    if (status == ZT_OK)
        status = mag_tensor_bytes(tensor, at, &wanted, error);
    if (status == ZT_OK && tensor->length != wanted)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataSize", at + 49,
                       "data of %" PRIu64 " bytes, but shape and dtype take %" PRIu64,
                       tensor->length, wanted);
    return status;
}

const struct mag_layout mag_m1 = {
    .name = "the specification's layout",
    .record_min = 4 + 1 + M1_AFTER_KEY,
    .has_opaque = true,
    .read_tensor = read_m1_tensor,
};

/* --- M2 --- */

static enum zt_status read_m2_shape(struct zt_cursor *cursor, struct zt_tensor *tensor,
                                    uint64_t elements, struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint64_t product;

    for (unsigned i = 0; i < tensor->rank; i++) {
        enum zt_status status = zt_cursor_u64(cursor, &tensor->shape[i], error);

        if (status != ZT_OK)
            return status;
        if (tensor->shape[i] == 0 || tensor->shape[i] > INT64_MAX)
            return zt_fail(error, ZT_INVALID, "mag §Tensors Shape", at + 8 * i,
                           "a dimension is 0 or negative");
    }
    if (!zt_shape_product(tensor->shape, tensor->rank, &product) || product != elements)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataSize", at,
                       "the shape does not have %" PRIu64 " elements", elements);
    return mag_tensor_bytes(tensor, at, &tensor->length, error);
}

static enum zt_status read_m2_tensor(struct zt_cursor *cursor, struct zt_tensor *tensor,
                                     struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint32_t aux = 0;
    uint64_t elements = 0;
    enum zt_status status = zt_cursor_u32(cursor, &aux, error);

    if (status == ZT_OK)
        status = zt_cursor_u64(cursor, &elements, error);
    if (status == ZT_OK)
        status = zt_cursor_u64(cursor, &tensor->offset, error);
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
        status = read_key(cursor, &tensor->name, error);
    return status;
}

const struct mag_layout mag_m2 = {
    .name = "the layout of magnetron 0.1.2",
    .record_min = 4 + 8 + 8 + 8 + 4 + 1,
    .read_tensor = read_m2_tensor,
};

/* --- the walk --- */

/* The first byte of a metadata record's aux. */
enum payload { PAYLOAD_OPAQUE, PAYLOAD_I64, PAYLOAD_F64 };

struct walk {
    const struct mag_layout *layout;
    const struct mag_header *header;
    struct zt_cursor cursor;
    uint64_t file_size;
    uint64_t lowest;            /* lowest offset of data so far */
    struct zt_builder *builder; /* NULL: the records are only checked */
    struct zt_attribute_list attributes;
};

static void put_payload(struct zt_buffer *buffer, enum payload kind, uint64_t payload)
{
    double number;

    switch (kind) {
    case PAYLOAD_OPAQUE:
        zt_cbor_put_uint(buffer, payload);
        break;
    case PAYLOAD_I64:
        zt_cbor_put_int(buffer, (int64_t)payload);
        break;
    case PAYLOAD_F64:
        memcpy(&number, &payload, sizeof(number));
        zt_cbor_put_float(buffer, number);
        break;
    }
}

static enum zt_status read_metadata(struct walk *walk, struct zt_error *error)
{
    uint64_t at = walk->cursor.position;
    uint32_t aux = 0;
    uint64_t payload = 0;
    struct zt_text key = {NULL, 0};
    enum zt_status status = zt_cursor_u32(&walk->cursor, &aux, error);

    if (status == ZT_OK)
        status = zt_cursor_u64(&walk->cursor, &payload, error);
    if (status == ZT_OK &&
        (aux > PAYLOAD_F64 || (aux == PAYLOAD_OPAQUE && !walk->layout->has_opaque)))
        return zt_fail(error, ZT_INVALID, "mag §Metadata Type", at, "metadata of type %#" PRIx32,
                       aux);
    if (status == ZT_OK)
        status = read_key(&walk->cursor, &key, error);
    if (status != ZT_OK || walk->builder == NULL)
        return status;
    status = zt_attribute_list_key(&walk->attributes, key, error);
    if (status == ZT_OK)
        put_payload(&walk->attributes.pairs, (enum payload)aux, payload);
    return status;
}

static enum zt_status read_tensor(struct walk *walk, struct zt_error *error)
{
    struct zt_tensor tensor = {.logical = ZT_LOGICAL_NONE};
    uint64_t at = walk->cursor.position;
    enum zt_status status = walk->layout->read_tensor(&walk->cursor, &tensor, error);

    if (status != ZT_OK)
        return status;
    assert(tensor.rank >= 1 && tensor.rank <= RANK_MAX);
    if (tensor.offset > walk->file_size || tensor.length > walk->file_size - tensor.offset)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataBounds", at,
                       CUT_OFF "data of %" PRIu64 " bytes at %" PRIu64 " is not within the file",
                       tensor.length, tensor.offset);
    if (tensor.length > 0 && tensor.offset < walk->lowest)
        walk->lowest = tensor.offset;
    return walk->builder != NULL ? zt_tensor_add(walk->builder, &tensor, error) : ZT_OK;
}

static enum zt_status read_records(struct walk *walk, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    walk->cursor.position = MAG_HEADER_BYTES;
    walk->lowest = UINT64_MAX;
    walk->cursor.bounds_rule = "mag §Metadata Record";
    for (uint32_t i = 0; status == ZT_OK && i < walk->header->metadata_count; i++)
        status = read_metadata(walk, error);
    walk->cursor.bounds_rule = "mag §Tensors Record";
    for (uint32_t i = 0; status == ZT_OK && i < walk->header->tensor_count; i++)
        status = read_tensor(walk, error);
    if (status == ZT_OK && walk->lowest < walk->cursor.position)
        return zt_fail(error, ZT_INVALID, "mag §Tensors DataBounds", walk->lowest,
                       "the data begins before the records end at %" PRIu64, walk->cursor.position);
    return status;
}

enum zt_status mag_records_measure(const struct mag_layout *layout, const struct mag_header *header,
                                   struct zt_source *source, uint64_t *out_end,
                                   struct zt_error *error)
{
    struct walk walk = {.layout = layout, .header = header, .file_size = zt_source_size(source)};
    uint64_t room = walk.file_size - MAG_HEADER_BYTES;
    uint64_t wanted = (uint64_t)header->metadata_count * METADATA_MIN;
    enum zt_status status;

    assert(walk.file_size >= MAG_HEADER_BYTES);
    if (wanted > room || (uint64_t)header->tensor_count * layout->record_min > room - wanted)
        return zt_fail(error, ZT_INVALID, "mag §Header RecordCount", MAG_CHECKSUM_AT + 4,
                       CUT_OFF "%" PRIu32 " tensors and %" PRIu32 " metadata do not fit the file",
                       header->tensor_count, header->metadata_count);
    status = zt_cursor_open(&walk.cursor, source, error);
    if (status != ZT_OK)
        return status;
    status = read_records(&walk, error);
    if (status == ZT_OK)
        *out_end = walk.cursor.position;
    zt_cursor_close(&walk.cursor);
    return status;
}

enum zt_status mag_records_read(const struct mag_layout *layout, const struct mag_header *header,
                                struct zt_builder *builder, struct zt_error *error)
{
    struct zt_model *model = builder->model;
    struct walk walk = {.layout = layout,
                        .header = header,
                        .file_size = model->file_size,
                        .builder = builder,
                        .attributes = {.is_by_name = true}};
    enum zt_status status;

    assert(model->manifest_offset == 0 && model->manifest_length >= MAG_HEADER_BYTES);
    zt_cursor_over(&walk.cursor, model->storage->manifest, model->manifest_length);
    status = read_records(&walk, error);
    if (status == ZT_OK)
        status =
            zt_attribute_list_check(&walk.attributes, builder, "mag §Names DuplicateName", error);
    if (status == ZT_OK && walk.attributes.count > 0)
        status = zt_attribute_list_keep(&walk.attributes, builder, &model->attributes, error);
    zt_attribute_list_free(&walk.attributes);
    return status;
}
