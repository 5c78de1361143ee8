/* Widening of small floats: every value of each type, compared with its sign, exponent and fraction
 * put together by ldexp; and widened sources, read in every way. */
#include "tests.h"

#include <math.h>
#include <string.h>

#include "zt/widen.h"

#define HALVES 65536

/* --- wideners by the type of a component --- */

static const struct zt_widener *widener_of(enum zt_dtype dtype, enum zt_logical logical)
{
    const struct zt_object object = {.layout = ZT_LAYOUT_DENSE};
    const struct zt_component component = {
        .name = "data", .name_length = 4, .dtype = (uint8_t)dtype, .logical = (uint8_t)logical};

    return zt_widener_find(&object, &component);
}

TEST(only_small_floats_and_f32_are_widened)
{
    for (int dtype = 0; dtype < ZT_DTYPE_COUNT; dtype++)
        for (int logical = 0; logical < ZT_LOGICAL_COUNT; logical++) {
            const bool is_plain = logical == ZT_LOGICAL_NONE && dtype >= ZT_F32 && dtype <= ZT_BF16;
            const bool is_small = logical >= ZT_LOGICAL_F8_E4M3FN && logical <= ZT_LOGICAL_F4_E2M1;
            const struct zt_widener *widener =
                widener_of((enum zt_dtype)dtype, (enum zt_logical)logical);

            assert_true((widener != NULL) == (is_plain || is_small));
        }
}

TEST(other_layouts_and_parts_are_not_widened)
{
    struct zt_object object = {.layout = ZT_LAYOUT_SPARSE_CSR};
    struct zt_component component = {.name = "values", .name_length = 6, .dtype = ZT_F16};

    assert_null(zt_widener_find(&object, &component));
    object.layout = ZT_LAYOUT_DENSE;
    assert_null(zt_widener_find(&object, &component));
}

/* --- values --- */

/* How a type is made. Without infinities or NaNs, `special` is beyond any magnitude. */
struct form {
    enum zt_dtype dtype;
    enum zt_logical logical;
    int bits;
    int fraction_bits;
    int bias;
    uint32_t infinity; /* magnitudes */
    uint32_t first_nan;
    bool is_fnuz;
};

#define NEVER UINT32_MAX

static const struct form forms[] = {
    {ZT_F16, ZT_LOGICAL_NONE, 16, 10, 15, 0x7c00, 0x7c01, false},
    {ZT_BF16, ZT_LOGICAL_NONE, 16, 7, 127, 0x7f80, 0x7f81, false},
    {ZT_U8, ZT_LOGICAL_F8_E4M3FN, 8, 3, 7, NEVER, 0x7f, false},
    {ZT_U8, ZT_LOGICAL_F8_E5M2, 8, 2, 15, 0x7c, 0x7d, false},
    {ZT_U8, ZT_LOGICAL_F8_E4M3FNUZ, 8, 3, 8, NEVER, NEVER, true},
    {ZT_U8, ZT_LOGICAL_F8_E5M2FNUZ, 8, 2, 16, NEVER, NEVER, true},
};

/* NaN where the value is a NaN. */
static float value_of(uint32_t code, const struct form *form)
{
    const uint32_t sign = code >> (form->bits - 1);
    const uint32_t magnitude = code & ((1u << (form->bits - 1)) - 1);
    const int exponent = (int)(magnitude >> form->fraction_bits);
    const double fraction = magnitude & ((1u << form->fraction_bits) - 1);
    const double leading = exponent > 0 ? 1 << form->fraction_bits : 0;
    double value =
        ldexp(leading + fraction, (exponent > 0 ? exponent : 1) - form->bias - form->fraction_bits);

    if (magnitude >= form->first_nan || (form->is_fnuz && sign == 1 && magnitude == 0))
        return NAN;
    if (magnitude == form->infinity)
        value = INFINITY;
    return (float)(sign == 1 ? -value : value);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void assert_same(float actual, float expected)
{
    if (isnan(expected))
        assert_true(isnan(actual));
    else
        assert_int_equal(bits_of(actual), bits_of(expected));
}

/* The bytes of all values of a type, in order. */
static size_t all_codes(const struct form *form, uint8_t out_codes[2 * HALVES])
{
    const size_t count = (size_t)1 << form->bits;

    for (size_t i = 0; i < count; i++) {
        if (form->bits == 8) {
            out_codes[i] = (uint8_t)i;
            continue;
        }
        out_codes[2 * i] = (uint8_t)i;
        out_codes[2 * i + 1] = (uint8_t)(i >> 8);
    }
    return count;
}

TEST(every_value_of_each_type_is_exact)
{
    static uint8_t codes[2 * HALVES];
    static float values[HALVES];

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const struct zt_widener *widener = widener_of(forms[i].dtype, forms[i].logical);
        const size_t count = all_codes(&forms[i], codes);

        assert_int_equal(zt_widener_elements(widener), 1);
        assert_int_equal(zt_widener_bytes(widener), forms[i].bits / 8);
        zt_widen_blocks(widener, codes, count, values);
        for (size_t code = 0; code < count; code++)
            assert_same(values[code], value_of((uint32_t)code, &forms[i]));
    }
}

/* The NaNs of IEEE 754's formats are their leading bits. */
TEST(payloads_of_nans_are_kept)
{
    static const uint8_t half[] = {0x01, 0xfe};
    static const uint8_t signaling[] = {0x01, 0x7c};
    static const uint8_t bfloat[] = {0x85, 0xff};
    float value;

    zt_widen_blocks(widener_of(ZT_F16, ZT_LOGICAL_NONE), half, 1, &value);
    assert_int_equal(bits_of(value), 0xffc02000);
    zt_widen_blocks(widener_of(ZT_F16, ZT_LOGICAL_NONE), signaling, 1, &value);
    assert_int_equal(bits_of(value), 0x7f802000);
    zt_widen_blocks(widener_of(ZT_BF16, ZT_LOGICAL_NONE), bfloat, 1, &value);
    assert_int_equal(bits_of(value), 0xff850000);
}

TEST(exponents_are_powers_of_two)
{
    uint8_t codes[256];
    float values[256];

    for (unsigned i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    zt_widen_blocks(widener_of(ZT_U8, ZT_LOGICAL_F8_E8M0), codes, 256, values);
    for (int i = 0; i < 255; i++)
        assert_same(values[i], ldexpf(1, i - 127));
    assert_true(isnan(values[255]));
}

TEST(halves_of_bytes_are_two_values)
{
    static const float magnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const struct zt_widener *widener = widener_of(ZT_U8, ZT_LOGICAL_F4_E2M1);
    uint8_t codes[256];
    float values[512];

    assert_int_equal(zt_widener_elements(widener), 2);
    assert_int_equal(zt_widener_bytes(widener), 1);
    for (unsigned i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    zt_widen_blocks(widener, codes, 256, values);
    for (unsigned i = 0; i < 512; i++) {
        const unsigned code = i % 2 == 0 ? i / 2 % 16 : i / 2 / 16;
        const float magnitude = magnitudes[code % 8];

        assert_same(values[i], code < 8 ? magnitude : -magnitude);
    }
}

TEST(f32_passes_unchanged)
{
    static const uint8_t bytes[] = {1, 0, 0x80, 0x7f, 0xdb, 0x0f, 0x49, 0x40};
    uint8_t values[sizeof(bytes)];

    zt_widen_blocks(widener_of(ZT_F32, ZT_LOGICAL_NONE), bytes, 2, (float *)(void *)values);
    assert_memory_equal(values, bytes, sizeof(bytes));
}

/* --- sources --- */

#define LEAD_BYTES 3

/* Reads part of a source into a buffer that begins anywhere, and compares it with the whole. */
static void assert_reads(struct zt_source *source, const uint8_t *whole, size_t offset,
                         size_t length)
{
    static uint8_t buffer[4 * HALVES + 8];
    struct zt_error error;

    for (size_t shift = 0; shift < 2; shift++) {
        assert_ok(zt_source_read_at(source, offset, buffer + shift, length, &error));
        assert_memory_equal(buffer + shift, whole + offset, length);
    }
}

TEST(sources_read_alike_from_any_place)
{
    static uint8_t stored[LEAD_BYTES + 2 * HALVES];
    static float values[HALVES];
    const struct zt_widener *widener = widener_of(ZT_F16, ZT_LOGICAL_NONE);
    const uint8_t *whole = (const uint8_t *)values;
    struct zt_source *memory;
    struct zt_source *source;
    struct zt_error error;

    all_codes(&forms[0], stored + LEAD_BYTES);
    zt_widen_blocks(widener, stored + LEAD_BYTES, HALVES, values);
    memory = memory_source(stored, sizeof(stored));
    assert_ok(zt_widened_open(widener, memory, LEAD_BYTES, HALVES, &source, &error));
    assert_int_equal(zt_source_size(source), sizeof(values));
    assert_reads(source, whole, 0, sizeof(values));
    for (size_t offset = 0; offset < 9; offset++)
        for (size_t length = 0; length < 9; length++)
            assert_reads(source, whole, offset, length);
    assert_reads(source, whole, 1, sizeof(values) - 2);
    assert_reads(source, whole, 4, sizeof(values) - 7);
    assert_reads(source, whole, sizeof(values), 0);
    assert_int_equal(zt_source_read_at(source, sizeof(values) - 1, values, 2, &error), ZT_IO);
    zt_source_close(source);
    zt_source_close(memory);
}

TEST(an_odd_last_half_byte_is_cut)
{
    static const uint8_t stored[] = {0x21, 0xf3};
    static const float expected[] = {0.5F, 1, 1.5F};
    struct zt_source *source;
    struct zt_error error;
    float values[3];
    struct zt_source *memory = memory_source(stored, sizeof(stored));

    assert_ok(
        zt_widened_open(widener_of(ZT_U8, ZT_LOGICAL_F4_E2M1), memory, 0, 3, &source, &error));
    assert_ok(zt_source_read_at(source, 0, values, sizeof(values), &error));
    assert_memory_equal(values, expected, sizeof(expected));
    assert_int_equal(zt_source_read_at(source, 8, values, 8, &error), ZT_IO);
    zt_source_close(source);
    zt_source_close(memory);
}

TEST(more_elements_than_fit_are_refused)
{
    struct zt_source *source;
    struct zt_error error;
    struct zt_source *memory = memory_source("", 0);

    assert_int_equal(zt_widened_open(widener_of(ZT_F16, ZT_LOGICAL_NONE), memory, 0,
                                     UINT64_MAX / 4 + 1, &source, &error),
                     ZT_LIMIT);
    zt_source_close(memory);
}
