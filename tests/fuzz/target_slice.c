/* Slices and shards. The first eight bytes are the tensor: its rank, its type, four dimensions,
 * which of them are huge (and whether the rest is a shard: part, parts, axis), and where reading
 * begins; the rest is the slice's text. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "zt/slice.h"

#define HEAD_LENGTH 8
#define RANK_LIMIT  5
#define IS_SHARD    0x10
/* Tensors of more bytes are not read. */
#define READ_MAX 65536

static void make_tensor(const uint8_t *head, uint64_t *shape, struct zt_slice_tensor *tensor)
{
    static const struct {
        enum zt_dtype dtype;
        enum zt_logical logical;
    } types[] = {{ZT_U8, ZT_LOGICAL_NONE},        {ZT_BF16, ZT_LOGICAL_NONE},
                 {ZT_F32, ZT_LOGICAL_NONE},       {ZT_I64, ZT_LOGICAL_NONE},
                 {ZT_F64, ZT_LOGICAL_COMPLEX128}, {ZT_U8, ZT_LOGICAL_F4_E2M1}};
    size_t type = head[1] % (sizeof(types) / sizeof(*types));

    for (unsigned i = 0; i < 4; i++)
        shape[i] = head[6] & 1u << i ? UINT64_MAX >> (head[2 + i] & 63) : head[2 + i];
    *tensor = (struct zt_slice_tensor){shape, head[0] % RANK_LIMIT, types[type].dtype,
                                       types[type].logical};
}

/* False when the product of a shape does not fit in 64 bits. */
static bool count_bytes(const struct zt_slice_tensor *tensor, uint64_t *out_bytes)
{
    uint64_t elements = 1;

    for (unsigned i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0) {
            *out_bytes = 0;
            return true;
        }
    }
    for (unsigned i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(elements, tensor->shape[i], &elements))
            return false;
    return zt_element_bytes(tensor->dtype, tensor->logical, elements, out_bytes) == ZT_OK;
}

/* Length, runs and loops agree with one another, with the shape, and with the tensor's end. */
static void check_slice(const struct zt_slice_tensor *tensor, const struct zt_slice *slice)
{
    const struct zt_slice_tensor result = {slice->shape, slice->rank, tensor->dtype,
                                           tensor->logical};
    uint64_t whole, length, total = slice->run_bytes, last = slice->offset,
                            inner = slice->run_bytes;

    FUZZ_ASSERT(slice->rank <= tensor->rank && slice->loop_count <= tensor->rank);
    FUZZ_ASSERT(count_bytes(&result, &length) && length == slice->length);
    FUZZ_ASSERT((slice->run_bytes == 0) == (length == 0));
    if (length == 0) {
        FUZZ_ASSERT(slice->loop_count == 0);
        return;
    }
    FUZZ_ASSERT(count_bytes(tensor, &whole) && length <= whole);
    for (unsigned i = slice->loop_count; i-- > 0;) {
        uint64_t count = slice->loops[i].count, stride = slice->loops[i].stride_bytes;

        FUZZ_ASSERT(count > 1 && stride > inner);
        total *= count;
        last += (count - 1) * stride;
        inner = count * stride;
    }
    FUZZ_ASSERT(total == length);
    FUZZ_ASSERT(last < whole && slice->run_bytes <= whole - last);
}

static uint8_t *copy_runs(const struct zt_slice *slice, unsigned loop, const uint8_t *from,
                          uint8_t *to)
{
    if (loop == slice->loop_count) {
        memcpy(to, from, slice->run_bytes);
        return to + slice->run_bytes;
    }
    for (uint64_t i = 0; i < slice->loops[loop].count; i++)
        to = copy_runs(slice, loop + 1, from + i * slice->loops[loop].stride_bytes, to);
    return to;
}

static void check_read(struct zt_source *source, const uint8_t *expected, uint64_t offset,
                       uint64_t length)
{
    uint8_t *got = malloc(length + 1);

    FUZZ_ASSERT(got != NULL);
    FUZZ_ASSERT(zt_source_read_at(source, offset, got, (size_t)length, NULL) == ZT_OK);
    FUZZ_ASSERT(memcmp(got, expected + offset, length) == 0);
    free(got);
}

/* The source gathers the same bytes as the loops, from any position. */
static void check_gathered(const struct zt_slice *slice, uint64_t whole, uint8_t begin)
{
    uint8_t *tensor = malloc(whole), *expected = malloc(slice->length);
    struct zt_source *source, *gathered;
    uint64_t offset = slice->length * begin / 256;

    FUZZ_ASSERT(tensor != NULL && expected != NULL);
    for (uint64_t i = 0; i < whole; i++)
        tensor[i] = (uint8_t)(i * 7 ^ i >> 8);
    copy_runs(slice, 0, tensor + slice->offset, expected);
    FUZZ_ASSERT(zt_source_from_memory(tensor, (size_t)whole, &source, NULL) == ZT_OK);
    FUZZ_ASSERT(zt_slice_source(slice, source, 0, &gathered, NULL) == ZT_OK);
    FUZZ_ASSERT(zt_source_size(gathered) == slice->length);
    check_read(gathered, expected, 0, slice->length);
    check_read(gathered, expected, offset, slice->length - offset);
    check_read(gathered, expected, offset / 2, offset / 3);
    FUZZ_ASSERT(zt_source_read_at(gathered, offset, expected, (size_t)(slice->length - offset) + 1,
                                  NULL) == ZT_IO);
    zt_source_close(gathered);
    zt_source_close(source);
    free(tensor);
    free(expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    uint64_t shape[4], whole;
    struct zt_slice_tensor tensor;
    struct zt_slice slice, before;
    struct zt_error error;
    enum zt_slice_verdict verdict;

    if (length < HEAD_LENGTH + 3)
        return 0;
    make_tensor(bytes, shape, &tensor);
    memset(&slice, 0xA5, sizeof(slice));
    before = slice;
    zt_error_clear(&error);
    if (bytes[6] & IS_SHARD)
        verdict = zt_slice_shard(&tensor, bytes[8], bytes[9], (int8_t)bytes[10], &slice, &error);
    else
        verdict = zt_slice_parse(
            &tensor, (struct zt_text){(const char *)bytes + HEAD_LENGTH, length - HEAD_LENGTH},
            &slice, &error);
    if (verdict != ZT_SLICE_FITS) {
        FUZZ_ASSERT(error.status == ZT_ARGUMENT && error.message[0] != '\0');
        FUZZ_ASSERT(memcmp(&slice, &before, sizeof(slice)) == 0);
        return 0;
    }
    check_slice(&tensor, &slice);
    if (slice.length > 0 && count_bytes(&tensor, &whole) && whole <= READ_MAX)
        check_gathered(&slice, whole, bytes[7]);
    return 0;
}
