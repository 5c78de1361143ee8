/* Dequantizing GGUF's blocks: which objects can be, that any bits can be, and that both instruction
 * sets agree. The values of most types are compared with those of the package gguf by
 * tests/interop; the others are checked here. */
#include "tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "widen/kernels.h"
#include "zt/widen.h"

#define BLOCKS_TRIED 97

struct kind {
    const char *name;
    unsigned elements;
    unsigned bytes;
    const struct zt_widen_kernel *kernel;
};

static const struct kind kinds[] = {
    {"q4_0", 32, 18, &zt_widen_q4_0},        {"q4_1", 32, 20, &zt_widen_q4_1},
    {"q5_0", 32, 22, &zt_widen_q5_0},        {"q5_1", 32, 24, &zt_widen_q5_1},
    {"q8_0", 32, 34, &zt_widen_q8_0},        {"q2_k", 256, 84, &zt_widen_q2_k},
    {"q3_k", 256, 110, &zt_widen_q3_k},      {"q4_k", 256, 144, &zt_widen_q4_k},
    {"q5_k", 256, 176, &zt_widen_q5_k},      {"q6_k", 256, 210, &zt_widen_q6_k},
    {"iq2_xxs", 256, 66, &zt_widen_iq2_xxs}, {"iq2_xs", 256, 74, &zt_widen_iq2_xs},
    {"iq3_xxs", 256, 98, &zt_widen_iq3_xxs}, {"iq1_s", 256, 50, &zt_widen_iq1_s},
    {"iq4_nl", 32, 18, &zt_widen_iq4_nl},    {"iq3_s", 256, 110, &zt_widen_iq3_s},
    {"iq2_s", 256, 82, &zt_widen_iq2_s},     {"iq4_xs", 256, 136, &zt_widen_iq4_xs},
    {"iq1_m", 256, 56, &zt_widen_iq1_m},     {"tq1_0", 256, 54, &zt_widen_tq1_0},
    {"tq2_0", 256, 66, &zt_widen_tq2_0},     {"mxfp4", 32, 17, &zt_widen_mxfp4},
    {"nvfp4", 64, 36, &zt_widen_nvfp4},      {"q1_0", 128, 18, &zt_widen_q1_0},
    {"q2_0", 64, 18, &zt_widen_q2_0},
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* --- finding --- */

/* The layout's name and the attributes of an object of a type, as readers make them. */
struct described {
    char format[32];
    uint8_t attributes[64];
    struct zt_object object;
};

static size_t put_key(uint8_t *out, const char *key, unsigned value)
{
    const size_t length = strlen(key);

    out[0] = (uint8_t)(0x60 | length);
    memcpy(out + 1, key, length);
    out[length + 1] = 0x19;
    out[length + 2] = (uint8_t)(value >> 8);
    out[length + 3] = (uint8_t)value;
    return length + 4;
}

static const struct zt_object *describe(struct described *described, const char *type,
                                        unsigned elements, unsigned bytes)
{
    uint8_t *attributes = described->attributes;
    size_t length = 1;

    attributes[0] = 0xa2;
    length += put_key(attributes + length, "block_bytes", bytes);
    length += put_key(attributes + length, "elems_per_block", elements);
    assert_true(length <= sizeof(described->attributes));
    snprintf(described->format, sizeof(described->format), "gguf.%s/1", type);
    described->object = (struct zt_object){.format = described->format,
                                           .format_length = (uint32_t)strlen(described->format),
                                           .attributes = attributes,
                                           .attributes_length = (uint32_t)length,
                                           .layout = ZT_LAYOUT_GGUF};
    return &described->object;
}

static const struct zt_widener *find(const char *type, unsigned elements, unsigned bytes)
{
    const struct zt_component data = {.name = "data", .name_length = 4, .dtype = ZT_U8};
    struct described described;

    return zt_widener_find(describe(&described, type, elements, bytes), &data);
}

TEST(every_type_of_blocks_is_found_by_its_layout)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const struct kind *kind = &kinds[i];
        const struct zt_widener *widener = find(kind->name, kind->elements, kind->bytes);

        assert_non_null(widener);
        assert_int_equal(zt_widener_elements(widener), kind->elements);
        assert_int_equal(zt_widener_bytes(widener), kind->bytes);
    }
}

TEST(other_types_and_other_sizes_are_not_dequantized)
{
    const struct zt_component data = {.name = "data", .name_length = 4, .dtype = ZT_U8};
    struct zt_object bare = {
        .format = "gguf.q4_0/1", .format_length = 11, .layout = ZT_LAYOUT_GGUF};

    assert_null(find("q8_1", 32, 36));
    assert_null(find("q8_k", 256, 292));
    assert_null(find("q4_0x", 32, 18));
    assert_null(find("q4_", 32, 18));
    assert_null(find("Q4_0", 32, 18));
    assert_null(find("f16", 1, 2));
    assert_null(find("q4_0", 32, 20));
    assert_null(find("q4_0", 64, 18));
    assert_null(zt_widener_find(&bare, &data));
}

/* --- values --- */

static uint32_t random_bits(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 32);
}

static void assert_same(const float *left, const float *right, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true((isnan(left[i]) && isnan(right[i])) ||
                    memcmp(&left[i], &right[i], sizeof(float)) == 0);
}

/* Blocks of any bits at an odd address, right before the end of an allocation. */
TEST(any_bits_are_widened_alike_by_both_instruction_sets)
{
    uint64_t seed = 23;

    for (size_t i = 0; i < KIND_COUNT; i++) {
        const size_t bytes = (size_t)BLOCKS_TRIED * kinds[i].bytes;
        const size_t elements = (size_t)BLOCKS_TRIED * kinds[i].elements;
        uint8_t *blocks = malloc(bytes + 1);
        float *portable = malloc(elements * sizeof(float));
        float *found = malloc(elements * sizeof(float));

        for (size_t j = 0; j <= bytes; j++)
            blocks[j] = (uint8_t)random_bits(&seed);
        kinds[i].kernel->portable(blocks + 1, BLOCKS_TRIED, portable);
        zt_widen_blocks(find(kinds[i].name, kinds[i].elements, kinds[i].bytes), blocks + 1,
                        BLOCKS_TRIED, found);
        assert_same(found, portable, elements);
        free(found);
        free(portable);
        free(blocks);
    }
}

TEST(signs_of_q1_0_are_the_bits_from_the_lowest_on)
{
    static const uint8_t block[18] = {0x00, 0x42, 0x05, [17] = 0x80};
    float values[128];

    zt_widen_blocks(find("q1_0", 128, 18), block, 1, values);
    for (unsigned i = 0; i < 128; i++)
        assert_true(values[i] == (i == 0 || i == 2 || i == 127 ? 3.0F : -3.0F));
}

TEST(codes_of_q2_0_are_one_less)
{
    static const uint8_t block[18] = {0x00, 0x42, 0xe4, [17] = 0x1b};
    static const float ascending[] = {-3, 0, 3, 6};
    float values[64];

    zt_widen_blocks(find("q2_0", 64, 18), block, 1, values);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(values[i] == ascending[i]);
        assert_true(values[4 + i] == -3);
        assert_true(values[60 + i] == ascending[3 - i]);
    }
}
