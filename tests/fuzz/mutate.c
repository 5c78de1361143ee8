/* Mutations inside a manifest that keep the lengths around it right, as libFuzzer's own, which
 * insert and drop bytes anywhere, hardly ever do. Only in libFuzzer builds. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed);

/* A manifest in a file, and where its length is stored: at a distance from the file's end or, if
 * that is 0, at the file's beginning. */
struct region {
    size_t at;
    size_t length;
    size_t number_from_end;
};

#define SAFETENSORS_NUMBER 8

static bool locate_tail(const uint8_t *bytes, size_t length, size_t number_from_end,
                        struct region *out_region)
{
    if (length < number_from_end + 8)
        return false;
    uint64_t size = zt_load_le64(bytes + length - number_from_end);
    size_t end = length - number_from_end;

    if (size > end - 8)
        return false;
    *out_region = (struct region){
        .at = end - (size_t)size, .length = (size_t)size, .number_from_end = number_from_end};
    return true;
}

static bool locate_zt2(const uint8_t *bytes, size_t length, struct region *out_region)
{
    const size_t footer = 40;
    uint64_t offset = length > footer ? zt_load_le64(bytes + length - footer) : 0;

    if (length <= footer || offset > length - footer)
        return false;
    *out_region = (struct region){.at = (size_t)offset,
                                  .length = length - footer - (size_t)offset,
                                  .number_from_end = footer - 8};
    return true;
}

static bool locate_head(const uint8_t *bytes, size_t length, struct region *out_region)
{
    uint64_t size = length > SAFETENSORS_NUMBER ? zt_load_le64(bytes) : UINT64_MAX;

    if (length <= SAFETENSORS_NUMBER + 1 || bytes[8] != '{' || size > length - SAFETENSORS_NUMBER)
        return false;
    *out_region = (struct region){.at = SAFETENSORS_NUMBER, .length = (size_t)size};
    return true;
}

static bool locate(const uint8_t *bytes, size_t length, struct region *out_region)
{
    if (length < 16)
        return false;
    if (memcmp(bytes, "ZTEN1000", 8) == 0 && memcmp(bytes + length - 8, "ZTEN1000", 8) == 0)
        return locate_tail(bytes, length, 16, out_region);
    if (memcmp(bytes, "ZTEN", 4) == 0)
        return locate_tail(bytes, length, 8, out_region);
    if (memcmp(bytes, "\x89ZT2", 4) == 0)
        return locate_zt2(bytes, length, out_region);
    return locate_head(bytes, length, out_region);
}

static size_t mutate_region(uint8_t *bytes, size_t length, size_t capacity,
                            const struct region *region)
{
    size_t after = length - region->at - region->length;
    size_t room = capacity - region->at - after;
    uint8_t *manifest = malloc(room + 1);
    uint8_t *rest = malloc(after + 1);

    FUZZ_ASSERT(manifest != NULL && rest != NULL);
    memcpy(manifest, bytes + region->at, region->length);
    memcpy(rest, bytes + region->at + region->length, after);
    size_t changed = LLVMFuzzerMutate(manifest, region->length, room);
    memcpy(bytes + region->at, manifest, changed);
    memcpy(bytes + region->at + changed, rest, after);
    length = region->at + changed + after;
    uint8_t *number =
        region->number_from_end > 0 ? bytes + length - region->number_from_end : bytes;
    for (unsigned i = 0; i < 8; i++)
        number[i] = (uint8_t)((uint64_t)changed >> 8 * i);
    free(manifest);
    free(rest);
    return length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed)
{
    struct region region;

    /* One in four goes anywhere. */
    if (seed % 4 == 0 || length == 0 || length >= capacity)
        return LLVMFuzzerMutate(bytes, length, capacity);
    if (locate(bytes, length, &region))
        return mutate_region(bytes, length, capacity, &region);
    /* Inputs of target_convert.c have a byte before the file. */
    if (locate(bytes + 1, length - 1, &region))
        return 1 + mutate_region(bytes + 1, length - 1, capacity - 1, &region);
    return LLVMFuzzerMutate(bytes, length, capacity);
}
