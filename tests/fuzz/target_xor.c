/* Applying a difference that a hostile server sends: never more bytes than the tensor has, in
 * bounded memory. The first three bytes are the tensor's length; the rest is the difference. */
#include "fuzz.h"

#include <string.h>

#include "zt/xor.h"

#define HEAD 3
/* Above a block, so that several frames are read. */
#define LENGTH_MAX ((uint64_t)1 << 20)

static uint8_t base[LENGTH_MAX];

static enum zt_status take(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    uint64_t *left = context;

    (void)bytes;
    (void)error;
    FUZZ_ASSERT(length > 0 && length <= *left);
    *left -= length;
    return ZT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zt_xor_difference difference = {.base_at = 0};
    uint64_t left;
    struct zt_error error;

    if (size < HEAD)
        return 0;
    difference.length = left =
        ((uint64_t)data[0] << 16 | (uint64_t)data[1] << 8 | data[2]) % LENGTH_MAX;
    FUZZ_ASSERT(zt_source_from_memory(data + HEAD, size - HEAD, &difference.frames, NULL) == ZT_OK);
    FUZZ_ASSERT(zt_source_from_memory(base, sizeof(base), &difference.base, NULL) == ZT_OK);
    if (zt_xor_decode(&difference, &(struct zt_sink){take, &left}, &error) == ZT_OK)
        FUZZ_ASSERT(left == 0);
    zt_source_close(difference.frames);
    zt_source_close(difference.base);
    return 0;
}
