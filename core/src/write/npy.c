/* NPY version 1: a Python dictionary of type, order and shape, padded to a multiple of 64 bytes,
 * and the data in row-major order. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/little_endian.h"
#include "write/planning.h"
#include "zt/slice.h"

#define ALIGNMENT 64
/* Magic, version 1.0, and the two bytes of the dictionary's length. */
#define PREFIX_LENGTH 10

/* The types that NumPy itself has; NULL for all others. */
static const char *exact_type(enum zt_dtype dtype, enum zt_logical logical)
{
    static const char *const names[ZT_DTYPE_COUNT] = {
        [ZT_F64] = "<f8", [ZT_F32] = "<f4", [ZT_F16] = "<f2", [ZT_I64] = "<i8",
        [ZT_I32] = "<i4", [ZT_I16] = "<i2", [ZT_I8] = "|i1",  [ZT_U64] = "<u8",
        [ZT_U32] = "<u4", [ZT_U16] = "<u2", [ZT_U8] = "|u1",  [ZT_BOOL] = "|b1",
    };

    if (logical == ZT_LOGICAL_COMPLEX64)
        return "<c8";
    if (logical == ZT_LOGICAL_COMPLEX128)
        return "<c16";
    return logical == ZT_LOGICAL_NONE ? names[dtype] : NULL;
}

const char *npy_type(const struct zt_component *component)
{
    return exact_type((enum zt_dtype)component->dtype, (enum zt_logical)component->logical);
}

static void put(struct zt_buffer *buffer, const char *text)
{
    zt_buffer_append(buffer, text, strlen(text));
}

/* Writes a Python tuple: a single element is followed by a comma, the last of several is not. */
static void put_shape(struct zt_buffer *buffer, const uint64_t *shape, unsigned rank)
{
    char digits[24];

    put(buffer, "(");
    for (unsigned i = 0; i < rank; i++) {
        snprintf(digits, sizeof(digits), "%" PRIu64, shape[i]);
        put(buffer, digits);
        if (i + 1 < rank)
            put(buffer, ", ");
        else if (rank == 1)
            put(buffer, ",");
    }
    put(buffer, ")");
}

static void put_head(const char *type, const uint64_t *shape, unsigned rank,
                     struct zt_buffer *buffer)
{
    size_t begin = buffer->length;
    size_t length;

    zt_buffer_append(buffer, "\x93NUMPY\x01\x00", 8);
    zt_buffer_append_le16(buffer, 0);
    put(buffer, "{'descr': '");
    put(buffer, type);
    put(buffer, "', 'fortran_order': False, 'shape': ");
    put_shape(buffer, shape, rank);
    put(buffer, ", }");
    while (!buffer->failed && (buffer->length - begin + 1) % ALIGNMENT != 0)
        put(buffer, " ");
    put(buffer, "\n");
    if (buffer->failed)
        return;
    assert((buffer->length - begin) % ALIGNMENT == 0);
    length = buffer->length - begin - PREFIX_LENGTH;
    assert(length <= UINT16_MAX); /* 64 dimensions of 20 digits fit */
    zt_store_le16(buffer->bytes + begin + 8, (uint16_t)length);
}

void npy_put_head(const struct zt_model *outline, const struct zt_object *object,
                  struct zt_buffer *buffer)
{
    put_head(npy_type(zt_object_components(outline, object)), zt_object_shape(outline, object),
             object->rank, buffer);
}

enum zt_status zt_npy_head(const struct zt_slice_tensor *tensor, uint8_t **out_head,
                           size_t *out_length, struct zt_error *error)
{
    const char *type =
        tensor->logical == ZT_LOGICAL_BOOL ? "|b1" : exact_type(tensor->dtype, tensor->logical);
    struct zt_buffer head = {0};

    if (type == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "NumPy has no such elements");
    put_head(type, tensor->shape, tensor->rank, &head);
    if (head.failed) {
        zt_buffer_free(&head);
        return zt_fail_memory(error, "an NPY head");
    }
    *out_head = head.bytes;
    *out_length = head.length;
    return ZT_OK;
}

enum zt_status npy_plan(struct zt_planning *planning)
{
    const struct zt_model *model = planning->projection->model;
    uint32_t component = model->objects[0].first_component;
    struct zt_buffer head = {0};
    uint64_t offset;
    enum zt_status status;

    assert(model->object_count == 1);
    npy_put_head(model, &model->objects[0], &head);
    offset = head.length;
    status = head.failed ? zt_fail_memory(planning->error, "an NPY head")
                         : zt_planning_place(planning, &offset, component, 1);
    if (status == ZT_OK)
        status = zt_planning_add(planning, 0, &head);
    if (status == ZT_OK)
        status = zt_planning_component(planning, offset, component);
    zt_buffer_free(&head);
    return status;
}
