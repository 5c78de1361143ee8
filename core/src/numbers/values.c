/* Reads elements, from the mapping of a file that is in the page cache or else through a buffer,
 * and turns them into doubles: one loop for each type, which compilers vectorise. */
#include "numbers/values.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "bytes/resident.h"

/* Large enough that a system call costs little beside it, small enough for the second-level
 * cache. */
#define BUFFER_BYTES ((size_t)64 << 10)
/* Bytes of a mapping that are looked up in the page cache at a time. */
#define MAPPED_BYTES ((uint64_t)1 << 20)

#define LOADER(name_, type_)                                                             \
    static void name_(const uint8_t *restrict bytes, size_t count, double *restrict out) \
    {                                                                                    \
        for (size_t i = 0; i < count; i++) {                                             \
            type_ value;                                                                 \
                                                                                         \
            memcpy(&value, bytes + i * sizeof(value), sizeof(value));                    \
            out[i] = (double)value;                                                      \
        }                                                                                \
    }

LOADER(load_f64, double)
LOADER(load_f32, float)
LOADER(load_i64, int64_t)
LOADER(load_i32, int32_t)
LOADER(load_i16, int16_t)
LOADER(load_i8, int8_t)
LOADER(load_u64, uint64_t)
LOADER(load_u32, uint32_t)
LOADER(load_u16, uint16_t)
LOADER(load_u8, uint8_t)

static void load_bool(const uint8_t *restrict bytes, size_t count, double *restrict out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = bytes[i] != 0;
}

typedef void (*loader)(const uint8_t *restrict bytes, size_t count, double *restrict out);

static const loader loaders[ZT_DTYPE_COUNT] = {
    [ZT_F64] = load_f64, [ZT_F32] = load_f32, [ZT_I64] = load_i64,   [ZT_I32] = load_i32,
    [ZT_I16] = load_i16, [ZT_I8] = load_i8,   [ZT_U64] = load_u64,   [ZT_U32] = load_u32,
    [ZT_U16] = load_u16, [ZT_U8] = load_u8,   [ZT_BOOL] = load_bool,
};

struct visiting {
    values_visitor visit;
    void *context;
    enum zt_dtype dtype;
    const uint8_t *bytes;
    uint64_t count;
};

static void visit_all(void *context)
{
    const struct visiting *visiting = context;
    const unsigned width = zt_dtype_width(visiting->dtype);
    double values[VALUES_MAX];

    for (uint64_t at = 0; at < visiting->count; at += VALUES_MAX) {
        const uint64_t left = visiting->count - at;
        const size_t count = left < VALUES_MAX ? (size_t)left : VALUES_MAX;

        loaders[visiting->dtype](visiting->bytes + at * width, count, values);
        visiting->visit(visiting->context, visiting->bytes + at * width, values, count);
    }
}

/* What is little-endian in files has this machine's order afterwards. */
static void arrange(uint8_t *buffer, size_t length, unsigned width)
{
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        zt_words_reverse(buffer, length, width);
}

/* Visits the next elements; *out_count: how many. */
static enum zt_status visit_some(const struct zt_elements *elements, struct visiting *visiting,
                                 uint64_t at, uint64_t left, uint8_t **buffer,
                                 struct zt_error *error)
{
    const unsigned width = zt_dtype_width(elements->dtype);
    const uint64_t offset = elements->base + at * width;
    enum zt_status status;

    visiting->count = left < MAPPED_BYTES / width ? left : MAPPED_BYTES / width;
    assert(visiting->count > 0 && visiting->count <= left);
    visiting->bytes = NULL;
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        visiting->bytes = zt_source_resident(elements->source, offset, visiting->count * width);
    if (visiting->bytes != NULL)
        return zt_source_touch(elements->source, offset, visiting->count * width, visit_all,
                               visiting, error);
    if (*buffer == NULL)
        *buffer = malloc(BUFFER_BYTES);
    if (*buffer == NULL)
        return zt_fail_memory(error, "reading elements");
    if (visiting->count > BUFFER_BYTES / width)
        visiting->count = BUFFER_BYTES / width;
    zt_source_read_on(elements->source, offset, left * width, 0);
    status = zt_source_read_at(elements->source, offset, *buffer, (size_t)visiting->count * width,
                               error);
    if (status != ZT_OK)
        return status;
    arrange(*buffer, (size_t)visiting->count * width, width);
    visiting->bytes = *buffer;
    visit_all(visiting);
    return ZT_OK;
}

enum zt_status zt_values_visit(const struct zt_elements *elements, uint64_t first, uint64_t count,
                               values_visitor visit, void *context, struct zt_error *error)
{
    struct visiting visiting = {.visit = visit, .context = context, .dtype = elements->dtype};
    uint8_t *buffer = NULL;
    enum zt_status status = ZT_OK;

    assert(loaders[elements->dtype] != NULL);
    assert(first <= elements->count && count <= elements->count - first);
    while (status == ZT_OK && count > 0) {
        status = visit_some(elements, &visiting, first, count, &buffer, error);
        first += visiting.count;
        count -= visiting.count;
    }
    free(buffer);
    return status;
}
