/* ONNX: the initializers (onnx.proto, TensorProto): types, shapes, and where the bytes are.
 *
 * raw_data, and packed floats and doubles, are the tensor's bytes as they lie in the file. Integers
 * in typed fields are varints, which are counted when the file is opened and decoded when the
 * tensor is read; so are all numbers whose field occurs more than once, or that are not packed. */
#include "formats/onnx/onnx.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "model/layout.h"
#include "zt/utf8.h"

/* The bound of all formats whose names are texts of their own. */
#define NAME_MAX_BYTES 1024

/* Fields of TensorProto that hold data. */
enum {
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11
};

/* --- types --- */

struct onnx_type {
    enum zt_dtype dtype;
    enum zt_logical logical;
    unsigned bits;        /* of one element */
    uint32_t typed_field; /* that may hold the data instead of raw_data; 0: none */
    const char *own_type; /* text of a type that zTensor lacks; logical is UNKNOWN */
};

#define PLAIN(dtype, bits, field)                 \
    {                                             \
        dtype, ZT_LOGICAL_NONE, bits, field, NULL \
    }
#define LOGICAL(dtype, logical, bits, field) \
    {                                        \
        dtype, logical, bits, field, NULL    \
    }
#define PACKED(name, bits, field)                    \
    {                                                \
        ZT_U8, ZT_LOGICAL_UNKNOWN, bits, field, name \
    }

/* TensorProto.DataType. 0 is undefined and 8 is text. */
static const struct onnx_type types[] = {
    [1] = PLAIN(ZT_F32, 32, FLOAT_DATA),
    [2] = PLAIN(ZT_U8, 8, INT32_DATA),
    [3] = PLAIN(ZT_I8, 8, INT32_DATA),
    [4] = PLAIN(ZT_U16, 16, INT32_DATA),
    [5] = PLAIN(ZT_I16, 16, INT32_DATA),
    [6] = PLAIN(ZT_I32, 32, INT32_DATA),
    [7] = PLAIN(ZT_I64, 64, INT64_DATA),
    [9] = PLAIN(ZT_BOOL, 8, INT32_DATA),
    [10] = PLAIN(ZT_F16, 16, INT32_DATA),
    [11] = PLAIN(ZT_F64, 64, DOUBLE_DATA),
    [12] = PLAIN(ZT_U32, 32, UINT64_DATA),
    [13] = PLAIN(ZT_U64, 64, UINT64_DATA),
    [14] = LOGICAL(ZT_F32, ZT_LOGICAL_COMPLEX64, 64, FLOAT_DATA),
    [15] = LOGICAL(ZT_F64, ZT_LOGICAL_COMPLEX128, 128, DOUBLE_DATA),
    [16] = PLAIN(ZT_BF16, 16, INT32_DATA),
    [17] = LOGICAL(ZT_U8, ZT_LOGICAL_F8_E4M3FN, 8, INT32_DATA),
    [18] = LOGICAL(ZT_U8, ZT_LOGICAL_F8_E4M3FNUZ, 8, INT32_DATA),
    [19] = LOGICAL(ZT_U8, ZT_LOGICAL_F8_E5M2, 8, INT32_DATA),
    [20] = LOGICAL(ZT_U8, ZT_LOGICAL_F8_E5M2FNUZ, 8, INT32_DATA),
    [21] = PACKED("u4", 4, INT32_DATA),
    [22] = PACKED("i4", 4, INT32_DATA),
    [23] = LOGICAL(ZT_U8, ZT_LOGICAL_F4_E2M1, 4, INT32_DATA),
    [24] = LOGICAL(ZT_U8, ZT_LOGICAL_F8_E8M0, 8, INT32_DATA),
    [25] = PACKED("u2", 2, INT32_DATA),
    [26] = PACKED("i2", 2, INT32_DATA),
    [27] = PACKED("f6_e2m3", 6, 0),
    [28] = PACKED("f6_e3m2", 6, 0),
};

/* --- fields --- */

struct tensor {
    struct onnx_reading *reading;
    struct zt_tensor built;
    const struct onnx_type *type;
    struct onnx_field data; /* the first that is not empty; number 0: none yet */
    uint64_t data_end;      /* of the last */
    struct onnx_external external;
    uint64_t at;       /* of the message */
    uint64_t shape_at; /* of the first dimension; of the message if there is none */
    uint64_t name_at;
    uint64_t elements;
    uint32_t location; /* counted from 1; 0: the model's own file */
    bool has_location;
    bool is_external;
    bool is_varint;
    bool is_repeated; /* the data is in several fields, or not packed */
    char name[NAME_MAX_BYTES];
};

static enum zt_status fail_twice(const struct onnx_field *field, const char *what,
                                 struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, "onnx §Tensor Repeated", field->at, "a tensor has two %s",
                   what);
}

static enum zt_status add_extent(struct tensor *tensor, uint64_t at, uint64_t extent,
                                 struct zt_error *error)
{
    struct zt_tensor *built = &tensor->built;

    if (built->rank == 0)
        tensor->shape_at = at;
    if (built->rank == ZT_RANK_MAX)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Shape", at, "more than %d dimensions",
                       ZT_RANK_MAX);
    if (extent > INT64_MAX)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Shape", at, "a dimension is negative");
    built->shape[built->rank++] = extent;
    return ZT_OK;
}

static enum zt_status read_extent(void *context, const struct onnx_field *field,
                                  struct zt_error *error)
{
    return add_extent(context, field->at, field->value, error);
}

static enum zt_status read_extents(void *context, const struct onnx_field *field,
                                   struct zt_error *error)
{
    struct tensor *tensor = context;
    const struct zt_cursor *cursor = &tensor->reading->cursor;
    const uint64_t end = field->offset + field->length;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && cursor->position < end) {
        const uint64_t at = cursor->position;
        uint64_t extent;

        status = onnx_varint_next(tensor->reading, end, &extent, error);
        if (status == ZT_OK)
            status = add_extent(tensor, at, extent, error);
    }
    return status;
}

static enum zt_status read_type(void *context, const struct onnx_field *field,
                                struct zt_error *error)
{
    struct tensor *tensor = context;

    if (tensor->type != NULL)
        return fail_twice(field, "types", error);
    if (field->value >= sizeof(types) / sizeof(types[0]) || types[field->value].bits == 0)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Type", field->at,
                       field->value == 8 ? "texts (type %" PRIu64 ") are not supported"
                                         : "the type %" PRIu64 " is not known",
                       field->value);
    tensor->type = &types[field->value];
    return ZT_OK;
}

static enum zt_status refuse_segment(void *context, const struct onnx_field *field,
                                     struct zt_error *error)
{
    (void)context;
    return zt_fail(error, ZT_INVALID, "onnx §Tensor Segment", field->at,
                   "a tensor in segments is not supported");
}

static enum zt_status read_name(void *context, const struct onnx_field *field,
                                struct zt_error *error)
{
    struct tensor *tensor = context;
    enum zt_status status;

    if (tensor->name_at != 0)
        return fail_twice(field, "names", error);
    if (field->length == 0 || field->length > NAME_MAX_BYTES)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Name", field->offset,
                       "a name of %" PRIu64 " bytes, not 1 to %d", field->length, NAME_MAX_BYTES);
    status = onnx_bytes_read(tensor->reading, field, tensor->name, error);
    if (status != ZT_OK)
        return status;
    if (!zt_utf8_valid(tensor->name, (size_t)field->length) ||
        memchr(tensor->name, '\0', (size_t)field->length) != NULL)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Name", field->offset,
                       "a name is not UTF-8, or has a NUL");
    tensor->name_at = field->offset;
    tensor->built.name = (struct zt_text){tensor->name, (size_t)field->length};
    return ZT_OK;
}

static enum zt_status read_data(void *context, const struct onnx_field *field,
                                struct zt_error *error)
{
    struct tensor *tensor = context;
    struct onnx_field *data = &tensor->data;
    const bool is_first = data->number == 0 || (data->number == field->number &&
                                                data->wire == ONNX_BYTES && data->length == 0);

    if (data->number != 0 && (data->number != field->number || field->number == RAW_DATA ||
                              field->number == STRING_DATA))
        return fail_twice(field, "data fields", error);
    if (data->number != 0 && field->wire == ONNX_BYTES && field->length == 0)
        return ZT_OK;
    if (is_first)
        *data = *field;
    tensor->is_repeated = tensor->is_repeated || !is_first || field->wire != ONNX_BYTES;
    tensor->data_end = field->offset + field->length;
    return ZT_OK;
}

static enum zt_status read_external(void *context, const struct onnx_field *field,
                                    struct zt_error *error)
{
    struct tensor *tensor = context;

    return onnx_external_read(tensor->reading, field, &tensor->external, error);
}

static enum zt_status read_location(void *context, const struct onnx_field *field,
                                    struct zt_error *error)
{
    struct tensor *tensor = context;

    if (tensor->has_location)
        return fail_twice(field, "data locations", error);
    if (field->value > 1)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Location", field->at,
                       "the data location %" PRIu64 " is not known", field->value);
    tensor->has_location = true;
    tensor->is_external = field->value == 1;
    return ZT_OK;
}

static const struct onnx_known_field known_fields[] = {
    {1, ONNX_VARINT, read_extent},
    {1, ONNX_BYTES, read_extents},
    {2, ONNX_VARINT, read_type},
    {3, ONNX_BYTES, refuse_segment},
    {FLOAT_DATA, ONNX_BYTES, read_data},
    {INT32_DATA, ONNX_BYTES, read_data},
    {STRING_DATA, ONNX_BYTES, read_data},
    {INT64_DATA, ONNX_BYTES, read_data},
    {8, ONNX_BYTES, read_name},
    {RAW_DATA, ONNX_BYTES, read_data},
    {DOUBLE_DATA, ONNX_BYTES, read_data},
    {UINT64_DATA, ONNX_BYTES, read_data},
    {FLOAT_DATA, ONNX_FIXED32, read_data},
    {INT32_DATA, ONNX_VARINT, read_data},
    {INT64_DATA, ONNX_VARINT, read_data},
    {DOUBLE_DATA, ONNX_FIXED64, read_data},
    {UINT64_DATA, ONNX_VARINT, read_data},
    {13, ONNX_BYTES, read_external},
    {14, ONNX_VARINT, read_location},
};

/* --- rules on the fields together --- */

static enum zt_status check_presence(const struct tensor *tensor, struct zt_error *error)
{
    if (tensor->name_at == 0)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Name", tensor->at,
                       "an initializer has no name");
    if (tensor->type == NULL)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Type", tensor->at,
                       "an initializer has no type");
    return ZT_OK;
}

/* The bytes of the tensor: elements of less than a byte are packed. */
static enum zt_status count_bytes(struct tensor *tensor, uint64_t *out_bytes,
                                  struct zt_error *error)
{
    uint64_t bits;

    if (!zt_shape_product(tensor->built.shape, tensor->built.rank, &tensor->elements) ||
        __builtin_mul_overflow(tensor->elements, tensor->type->bits, &bits))
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Shape", tensor->shape_at,
                       "the tensor's bits do not fit in 64 bits");
    *out_bytes = bits / 8 + (bits % 8 != 0);
    return ZT_OK;
}

/* The numbers in one field of the data. */
static enum zt_status count_field(const struct tensor *tensor, const struct onnx_field *field,
                                  unsigned width, uint64_t *out_count, struct zt_error *error)
{
    *out_count = 1;
    if (field->wire != ONNX_BYTES)
        return ZT_OK;
    if (tensor->is_varint)
        return onnx_varints_count(tensor->reading, field, out_count, error);
    *out_count = field->length / width;
    if (field->length % width != 0)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor DataLength", field->offset,
                       "%" PRIu64 " bytes are not a whole number of floats", field->length);
    return ZT_OK;
}

/* Walks the fields of the data once more; what lies between them has been passed over. */
static enum zt_status count_fields(const struct tensor *tensor, unsigned width, uint64_t *out_count,
                                   struct zt_error *error)
{
    struct onnx_reading *reading = tensor->reading;
    enum zt_status status = ZT_OK;

    *out_count = 0;
    reading->cursor.position = tensor->data.at;
    while (status == ZT_OK && reading->cursor.position < tensor->data_end) {
        struct onnx_field field;
        uint64_t count = 0;

        status = onnx_field_next(reading, tensor->data_end, &field, error);
        if (status == ZT_OK && field.number == tensor->data.number)
            status = count_field(tensor, &field, width, &count, error);
        if (status == ZT_OK && field.wire == ONNX_BYTES)
            status = onnx_field_leave(reading, &field, error);
        *out_count += count;
    }
    return status;
}

static enum zt_status check_length(const struct tensor *tensor, uint64_t bytes,
                                   struct zt_error *error)
{
    const struct onnx_field *data = &tensor->data;
    const unsigned width = zt_dtype_width(tensor->type->dtype);
    uint64_t count;
    enum zt_status status;

    if (!tensor->is_varint && !tensor->is_repeated && data->length != bytes)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor DataLength", data->offset,
                       "%" PRIu64 " bytes where shape and type take %" PRIu64, data->length, bytes);
    if (!tensor->is_varint && !tensor->is_repeated)
        return ZT_OK;
    status = tensor->is_repeated ? count_fields(tensor, width, &count, error)
                                 : onnx_varints_count(tensor->reading, data, &count, error);
    if (status == ZT_OK && count != bytes / width)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor DataLength", data->offset,
                       "%" PRIu64 " numbers where shape and type take %" PRIu64, count,
                       bytes / width);
    return status;
}

static enum zt_status place_inside(struct tensor *tensor, uint64_t bytes, struct zt_error *error)
{
    const struct onnx_field *data = &tensor->data;

    tensor->built.offset = data->number != 0 ? data->offset : tensor->at;
    tensor->built.length = data->length;
    if (tensor->is_repeated) {
        tensor->built.offset = data->at;
        tensor->built.length = tensor->data_end - data->at;
    }
    if (data->number == 0 && bytes == 0)
        return ZT_OK;
    if (data->number == 0)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Data", tensor->at,
                       "the tensor has no data, but its shape and type take %" PRIu64 " bytes",
                       bytes);
    if (data->number != RAW_DATA && data->number != tensor->type->typed_field)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Data", data->at,
                       "field %" PRIu32 " does not hold data of this type", data->number);
    tensor->is_varint =
        data->number == INT32_DATA || data->number == INT64_DATA || data->number == UINT64_DATA;
    return check_length(tensor, bytes, error);
}

static enum zt_status place_outside(struct tensor *tensor, uint64_t bytes, struct zt_error *error)
{
    if (tensor->data.length > 0 || tensor->is_repeated)
        return zt_fail(error, ZT_INVALID, "onnx §Tensor Data", tensor->data.at,
                       "the tensor has both external and internal data");
    if (tensor->external.at == 0)
        tensor->external.at = tensor->at;
    tensor->built.offset = tensor->external.offset;
    tensor->built.length = bytes;
    return onnx_external_place(tensor->reading, &tensor->external, bytes, &tensor->location, error);
}

/* --- into the model --- */

/* Puts the name into the arena, behind its position in the file. */
static enum zt_status keep_name(struct tensor *tensor, struct zt_error *error)
{
    struct zt_text *name = &tensor->built.name;
    void *held;
    enum zt_status status = zt_arena_take(&tensor->reading->builder->model->storage->arena,
                                          sizeof(tensor->name_at) + name->length, &held, error);

    if (status != ZT_OK)
        return status;
    memcpy(held, &tensor->name_at, sizeof(tensor->name_at));
    memcpy((char *)held + sizeof(tensor->name_at), name->bytes, name->length);
    name->bytes = (const char *)held + sizeof(tensor->name_at);
    return ZT_OK;
}

static enum zt_status add_tensor(struct tensor *tensor, uint64_t bytes, struct zt_error *error)
{
    struct zt_component *component;
    enum zt_status status = keep_name(tensor, error);

    tensor->built.dtype = tensor->type->dtype;
    tensor->built.logical = tensor->type->logical;
    if (status == ZT_OK)
        status = zt_tensor_add(tensor->reading->builder, &tensor->built, error);
    if (status != ZT_OK)
        return status;
    component = zt_last_component(tensor->reading->builder);
    component->shard = tensor->location;
    if (tensor->type->own_type != NULL) {
        component->type = tensor->type->own_type;
        component->type_length = (uint32_t)strlen(tensor->type->own_type);
    }
    if (tensor->is_varint || tensor->is_repeated) {
        component->encoding = tensor->is_repeated ? ZT_ENCODING_PROTOBUF : ZT_ENCODING_VARINT;
        component->encoding_name = tensor->is_repeated ? "protobuf" : "varint";
        component->encoding_length = (uint32_t)strlen(component->encoding_name);
        component->decoded_length = bytes;
    }
    return ZT_OK;
}

static enum zt_status finish_tensor(struct tensor *tensor, struct zt_error *error)
{
    uint64_t bytes = 0;
    enum zt_status status = check_presence(tensor, error);

    if (status == ZT_OK)
        status = count_bytes(tensor, &bytes, error);
    if (status == ZT_OK)
        status = tensor->is_external ? place_outside(tensor, bytes, error)
                                     : place_inside(tensor, bytes, error);
    return status == ZT_OK ? add_tensor(tensor, bytes, error) : status;
}

enum zt_status onnx_tensor_read(struct onnx_reading *reading, const struct onnx_field *field,
                                struct zt_error *error)
{
    struct tensor tensor;
    enum zt_status status;

    /* The texts need not be cleared: their lengths are. */
    memset(&tensor, 0, offsetof(struct tensor, name));
    tensor.reading = reading;
    tensor.at = field->at;
    tensor.shape_at = field->at;
    status = onnx_message_read(reading, field, known_fields,
                               sizeof(known_fields) / sizeof(known_fields[0]), &tensor, error);
    if (status == ZT_OK)
        status = finish_tensor(&tensor, error);
    reading->cursor.position = field->offset + field->length;
    if (status != ZT_OK && tensor.name_at != 0)
        zt_error_within(error, tensor.built.name, (struct zt_text){NULL, 0});
    return status;
}
