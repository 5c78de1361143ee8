/* Models made by hand, and encoded data. */
#include "handmade.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

void bytes_append(struct bytes *bytes, const void *added, size_t length)
{
    bytes->at = realloc(bytes->at, bytes->length + length + 1);
    assert_non_null(bytes->at);
    if (length > 0)
        memcpy(bytes->at + bytes->length, added, length);
    bytes->length += length;
}

void bytes_append_u32(struct bytes *bytes, uint32_t value)
{
    uint8_t word[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                       (uint8_t)(value >> 24)};

    bytes_append(bytes, word, 4);
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->at);
    bytes->at = NULL;
    bytes->length = 0;
}

void bytes_append_zstd(struct bytes *bytes, const void *plain, size_t length, bool checksum)
{
    size_t bound = ZSTD_compressBound(length);
    uint8_t *frame = malloc(bound);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t size;

    assert_non_null(frame);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
    size = ZSTD_compress2(context, frame, bound, plain, length);
    assert_false(ZSTD_isError(size));
    bytes_append(bytes, frame, size);
    ZSTD_freeCCtx(context);
    free(frame);
}

void bytes_append_seekable(struct bytes *bytes, const void *plain, size_t length, size_t chunk)
{
    struct bytes table = {NULL, 0};
    uint32_t count = 0;

    for (size_t at = 0; at < length; at += chunk, count++) {
        size_t part = chunk < length - at ? chunk : length - at;
        size_t before = bytes->length;

        bytes_append_zstd(bytes, (const uint8_t *)plain + at, part, true);
        bytes_append_u32(&table, (uint32_t)(bytes->length - before));
        bytes_append_u32(&table, (uint32_t)part);
    }
    bytes_append_u32(bytes, 0x184D2A5E);
    bytes_append_u32(bytes, count * 8 + 9);
    bytes_append(bytes, table.at, table.length);
    bytes_append_u32(bytes, count);
    bytes_append(bytes, "", 1);
    bytes_append_u32(bytes, 0x8F92EAB1);
    bytes_free(&table);
}

void handmade_init(struct handmade *made, enum zt_format format, enum zt_layout layout,
                   unsigned rank, const uint64_t *shape)
{
    static const uint8_t head[64] = {0};

    memset(made, 0, sizeof(*made));
    bytes_append(&made->data, head, sizeof(head));
    for (unsigned i = 0; i < rank; i++)
        made->shape[i] = shape[i];
    made->object = (struct zt_object){
        .name = "tensor", .name_length = 6, .rank = (uint8_t)rank, .layout = (uint8_t)layout};
    made->model.format = format;
    made->model.objects = &made->object;
    made->model.object_count = 1;
    made->model.components = made->parts;
    made->model.dimensions = made->shape;
}

struct zt_component *handmade_add(struct handmade *made, const char *name, enum zt_dtype dtype,
                                  const void *bytes, size_t length)
{
    struct zt_component *part = &made->parts[made->object.component_count++];

    assert_true(made->object.component_count <= HANDMADE_PARTS);
    *part = (struct zt_component){
        .name = name,
        .name_length = (uint32_t)strlen(name),
        .encoding_name = "raw",
        .encoding_length = 3,
        .dtype = (uint8_t)dtype,
        .offset = made->data.length,
        .length = length,
        .decoded_length = length,
    };
    bytes_append(&made->data, bytes, length);
    made->model.component_count = made->object.component_count;
    return part;
}

void handmade_open(struct handmade *made)
{
    assert_int_equal(zt_source_from_memory(made->data.at, made->data.length, &made->source, NULL),
                     ZT_OK);
}

void handmade_free(struct handmade *made)
{
    zt_source_close(made->source);
    bytes_free(&made->data);
}
