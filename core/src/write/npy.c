/* NPY version 1: a Python dictionary of type, order and shape, padded to 64 bytes, and the data row by row. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "write/formats.h"

#define ALIGNMENT 64
/* Magic, version 1.0, and the two bytes of the dictionary's length. */
#define PREFIX_LENGTH 10

const char *npy_type(const struct zt_component *component)
{
    static const char *const names[ZT_DTYPE_COUNT] = {
        [ZT_F64] = "<f8", [ZT_F32] = "<f4", [ZT_F16] = "<f2", [ZT_I64] = "<i8", [ZT_I32] = "<i4", [ZT_I16] = "<i2",
        [ZT_I8] = "|i1",  [ZT_U64] = "<u8", [ZT_U32] = "<u4", [ZT_U16] = "<u2", [ZT_U8] = "|u1",  [ZT_BOOL] = "|b1",
    };

    if (component->logical == ZT_LOGICAL_COMPLEX64)
        return "<c8";
    if (component->logical == ZT_LOGICAL_COMPLEX128)
        return "<c16";
    return component->logical == ZT_LOGICAL_NONE ? names[component->dtype] : NULL;
}

static void put(struct zt_buffer *buffer, const char *text)
{
    zt_buffer_append(buffer, text, strlen(text));
}

/* A Python tuple: one element has a comma after it, more have none after the last. */
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

void npy_put_head(const struct zt_model *outline, const struct zt_object *object, struct zt_buffer *buffer)
{
    size_t begin = buffer->length;

    zt_buffer_append(buffer, "\x93NUMPY\x01\x00", 8);
    zt_put_le16(buffer, 0);
    put(buffer, "{'descr': '");
    put(buffer, npy_type(zt_object_components(outline, object)));
    put(buffer, "', 'fortran_order': False, 'shape': ");
    put_shape(buffer, zt_object_shape(outline, object), object->rank);
    put(buffer, ", }");
    while (!buffer->failed && (buffer->length - begin + 1) % ALIGNMENT != 0)
        put(buffer, " ");
    put(buffer, "\n");
    if (buffer->failed)
        return;
    /* 64 dimensions of 20 digits fit in 16 bits. */
    size_t length = buffer->length - begin - PREFIX_LENGTH;
    buffer->bytes[begin + 8] = (uint8_t)length;
    buffer->bytes[begin + 9] = (uint8_t)(length >> 8);
}

enum zt_status npy_image(struct zt_imaging *imaging)
{
    const struct zt_model *model = imaging->projection->model;
    uint32_t component = model->objects[0].first_component;
    struct zt_buffer head = {0};
    uint64_t offset;

    npy_put_head(model, &model->objects[0], &head);
    offset = head.length;
    enum zt_status status =
        head.failed ? zt_write_no_memory(imaging->error) : zt_imaging_place(imaging, &offset, component, 1);
    if (status == ZT_OK)
        status = zt_imaging_add(imaging, 0, head.bytes, head.length);
    if (status == ZT_OK)
        status = zt_imaging_component(imaging, offset, component);
    zt_buffer_free(&head);
    return status;
}
