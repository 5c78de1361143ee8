/* Quantized layouts: zTensor 1.x quantized_group; zt.quant_group/1, zt.mx/1 and gguf.<type>/1 of
 * zTensor 2.
 *
 * The sizes of their parts follow from attributes of the object. */
#include <assert.h>

#include "cbor/cbor_read.h"
#include "model/layout_rules.h"

/* --- attributes --- */

static bool attribute(struct zt_text map, const char *key, struct zt_cbor_item *out_item)
{
    struct zt_cbor_reader reader;
    struct zt_error ignored;

    return map.length > 0 && zt_cbor_map_find(map, key, &reader) &&
           zt_cbor_next(&reader, out_item, &ignored) == ZT_OK;
}

static bool attribute_uint(struct zt_text map, const char *key, uint64_t *out_value)
{
    struct zt_cbor_item item;

    if (!attribute(map, key, &item) || item.kind != ZT_CBOR_UINT)
        return false;
    *out_value = item.value;
    return true;
}

static bool attribute_text(struct zt_text map, const char *key, struct zt_text *out_text)
{
    struct zt_cbor_item item;

    if (!attribute(map, key, &item) || item.kind != ZT_CBOR_TEXT)
        return false;
    *out_text = zt_cbor_content(&item);
    return true;
}

static bool attribute_map(struct zt_text map, const char *key, struct zt_text *out_map)
{
    struct zt_cbor_item item;
    struct zt_cbor_reader reader;
    struct zt_error ignored;

    if (!attribute(map, key, &item) || item.kind != ZT_CBOR_MAP ||
        !zt_cbor_map_find(map, key, &reader))
        return false;
    return zt_cbor_pass_span(&reader, out_map, &ignored) == ZT_OK;
}

static bool attribute_is(struct zt_text map, const char *key, const char *value)
{
    struct zt_text text;

    return attribute_text(map, key, &text) && zt_text_is(text, value);
}

static struct zt_text attributes_of(const struct zt_layout_case *check)
{
    return (struct zt_text){(const char *)check->object->attributes,
                            check->object->attributes_length};
}

/* --- types --- */

static unsigned width_of(const struct zt_component *component)
{
    return zt_dtype_width((enum zt_dtype)component->dtype);
}

static bool is_float(const struct zt_component *component)
{
    return component->logical == ZT_LOGICAL_NONE && component->dtype <= ZT_BF16;
}

static bool is_exponent_scale(const struct zt_component *component)
{
    return component->dtype == ZT_U8 && component->logical == ZT_LOGICAL_F8_E8M0;
}

/* Checks that the part's size is a · b · c; rejects a product that does not fit in 64 bits. */
static enum zt_status expect_product(const struct zt_layout_case *check,
                                     const struct zt_component *component,
                                     const uint64_t factors[3])
{
    uint64_t bytes;

    if (!zt_shape_product(factors, 3, &bytes))
        return zt_layout_refuse(check, component, "a size that does not fit in 64 bits");
    return zt_layout_expect_bytes(check, component, bytes);
}

/* --- zTensor 1.x quantized_group --- */

/* Whether every dimension is a multiple of unit, so that packing or grouping along any axis leaves
 * no remainder. */
static bool divides_all(const struct zt_layout_case *check, uint64_t unit)
{
    assert(unit > 0);
    for (unsigned i = 0; i < check->object->rank; i++)
        if (check->shape[i] % unit != 0)
            return false;
    return true;
}

/* The specification does not state along which axis codes are packed or how remainders are padded.
 * So too few bytes are always wrong, and too many only if there is no remainder. */
static enum zt_status expect_at_least(const struct zt_layout_case *check,
                                      const struct zt_component *component, uint64_t least_bytes,
                                      bool exact)
{
    if (!exact && component->decoded_length > least_bytes)
        return ZT_OK;
    return zt_layout_expect_bytes(check, component, least_bytes);
}

static enum zt_status check_packed(const struct zt_layout_case *check,
                                   const struct zt_component *packed, uint64_t bits)
{
    unsigned word_bits = 8 * width_of(packed);
    uint64_t total_bits;

    if (packed->logical != ZT_LOGICAL_NONE || bits == 0 || bits > word_bits)
        return ZT_OK;
    if (__builtin_mul_overflow(check->elements, bits, &total_bits))
        return zt_layout_refuse(check, packed, "the number of codes does not fit in 64 bits");
    return expect_at_least(check, packed, total_bits / 8 + (total_bits % 8 != 0),
                           word_bits % bits == 0 && divides_all(check, word_bits / bits));
}

enum zt_status zt_layout_check_quantized_group(const struct zt_layout_case *check)
{
    static const char *const names[] = {"packed_weight", "scales", "zeros"};
    const struct zt_component *parts[3] = {NULL};
    struct zt_text attributes = attributes_of(check);
    enum zt_status status = zt_layout_parts(check, names, 3, parts);
    uint64_t bits;
    uint64_t group_size;
    uint64_t scale_bytes;

    if (status != ZT_OK)
        return status;
    if (!attribute_uint(attributes, "bits", &bits) ||
        !attribute_uint(attributes, "group_size", &group_size))
        return ZT_OK;
    status = check_packed(check, parts[0], bits);
    if (status != ZT_OK || group_size == 0 || !is_float(parts[1]))
        return status;
    if (__builtin_mul_overflow(check->elements / group_size, (uint64_t)width_of(parts[1]),
                               &scale_bytes))
        return zt_layout_refuse(check, parts[1], "the number of scales does not fit in 64 bits");
    return expect_at_least(check, parts[1], scale_bytes, divides_all(check, group_size));
}

/* --- zt.quant_group/1 --- */

enum zero_form { ZERO_NONE, ZERO_PLAIN, ZERO_PACKED };

struct quantization {
    uint64_t axis;
    uint64_t group_size;
    uint64_t per_word;
    enum zero_form zero;
};

/* The word into which codes are packed must be the data's type, or the unsigned type of the same
 * width. */
static bool word_matches(struct zt_text packing, const struct zt_component *data)
{
    struct zt_text word;
    enum zt_dtype dtype;

    if (!attribute_text(packing, "word", &word) || !zt_dtype_from_name(word, &dtype))
        return false;
    if (dtype < ZT_U64 || dtype > ZT_U8 || data->dtype < ZT_I64 || data->dtype > ZT_U8)
        return false;
    return zt_dtype_width(dtype) == width_of(data);
}

static enum zt_status read_packing(const struct zt_layout_case *check,
                                   const struct zt_component *data, struct quantization *quant)
{
    struct zt_text attributes = attributes_of(check);
    struct zt_text packing;
    uint64_t bits;

    if (!attribute_uint(attributes, "bits", &bits) || bits < 2 || bits > 8 || bits == 7)
        return zt_layout_refuse(check, NULL, "\"bits\" is not one of 2, 3, 4, 5, 6, 8");
    if (!attribute_map(attributes, "packing", &packing) || !word_matches(packing, data))
        return zt_layout_refuse(check, data, "\"packing\" has no \"word\" that is the data's type");
    if (!attribute_is(packing, "order", "lsb_first") &&
        !attribute_is(packing, "order", "msb_first"))
        return zt_layout_refuse(check, NULL,
                                "the \"order\" of \"packing\" is neither lsb_first nor msb_first");
    if (8 * width_of(data) % bits != 0)
        return zt_layout_refuse(check, data, "codes of this many \"bits\" do not fill a word");
    if (!attribute_uint(packing, "per_word", &quant->per_word) ||
        quant->per_word != 8 * width_of(data) / bits)
        return zt_layout_refuse(check, NULL,
                                "\"per_word\" is not a word's bits divided by \"bits\"");
    return ZT_OK;
}

static enum zt_status read_groups(const struct zt_layout_case *check, struct quantization *quant)
{
    struct zt_text attributes = attributes_of(check);

    if (!attribute_uint(attributes, "axis", &quant->axis) || quant->axis >= check->object->rank)
        return zt_layout_refuse(check, NULL, "\"axis\" is not a dimension of the shape");
    if (!attribute_uint(attributes, "group_size", &quant->group_size))
        return zt_layout_refuse(check, NULL, "\"group_size\" is missing or not a whole number");
    if (quant->group_size > 0 && check->shape[quant->axis] % quant->group_size != 0)
        return zt_layout_refuse(check, NULL,
                                "\"group_size\" does not divide the dimension of \"axis\"");
    return ZT_OK;
}

static enum zt_status read_zero_point(const struct zt_layout_case *check,
                                      struct quantization *quant)
{
    struct zt_text zero_point;
    struct zt_cbor_item value;

    if (!attribute_map(attributes_of(check), "zero_point", &zero_point))
        return zt_layout_refuse(check, NULL, "\"zero_point\" is missing or not a map");
    quant->zero = ZERO_NONE;
    if (attribute_is(zero_point, "form", "none"))
        return ZT_OK;
    if (attribute_is(zero_point, "form", "implied")) {
        if (attribute(zero_point, "value", &value) &&
            (value.kind == ZT_CBOR_UINT || value.kind == ZT_CBOR_NINT))
            return ZT_OK;
        return zt_layout_refuse(check, NULL,
                                "an implied \"zero_point\" has no whole number as \"value\"");
    }
    if (!attribute_is(zero_point, "form", "tensor"))
        return zt_layout_refuse(check, NULL,
                                "the \"form\" of \"zero_point\" is not none, implied or tensor");
    quant->zero = attribute_is(zero_point, "packing", "plain") ? ZERO_PLAIN : ZERO_PACKED;
    if (quant->zero == ZERO_PACKED && !attribute_is(zero_point, "packing", "same_as_data"))
        return zt_layout_refuse(
            check, NULL, "the \"packing\" of \"zero_point\" is neither same_as_data nor plain");
    return ZT_OK;
}

static enum zt_status check_scale_form(const struct zt_layout_case *check,
                                       const struct zt_component *scales)
{
    struct zt_text attributes = attributes_of(check);

    if (attribute_is(attributes, "scale_form", "e8m0_exponent")) {
        if (!is_exponent_scale(scales))
            return zt_layout_refuse(check, scales, "exponent scales are not f8_e8m0 over u8");
        return ZT_OK;
    }
    if (!attribute_is(attributes, "scale_form", "f32_factors") &&
        !attribute_is(attributes, "scale_form", "f16_factors"))
        return zt_layout_refuse(check, NULL,
                                "\"scale_form\" is not f32_factors, f16_factors or e8m0_exponent");
    if (!is_float(scales))
        return zt_layout_refuse(check, scales, "scales that are factors are not of a float type");
    return ZT_OK;
}

/* Checks that the part's size is that of the codes, packed into words of width bytes without a
 * remainder. */
static enum zt_status expect_words(const struct zt_layout_case *check,
                                   const struct zt_component *component, uint64_t codes,
                                   uint64_t per_word, uint64_t width)
{
    assert(per_word > 0);
    if (codes % per_word != 0)
        return zt_layout_refuse(check, component, "codes that do not fill the last word");
    return expect_product(check, component, (const uint64_t[3]){codes / per_word, width, 1});
}

static enum zt_status check_quant_sizes(const struct zt_layout_case *check,
                                        const struct quantization *quant,
                                        const struct zt_component *const parts[3])
{
    const uint64_t word_width = width_of(parts[0]);
    uint64_t along;
    uint64_t groups;
    uint64_t lanes;
    enum zt_status status;

    assert(quant->axis < check->object->rank && quant->per_word > 0);
    along = check->shape[quant->axis];
    groups = quant->group_size == 0 ? along : along / quant->group_size;
    lanes = along == 0 ? 0 : check->elements / along;
    status = expect_words(check, parts[0], check->elements, quant->per_word, word_width);
    assert(quant->group_size == 0 || along % quant->group_size == 0);
    if (status == ZT_OK)
        status =
            expect_product(check, parts[1], (const uint64_t[3]){groups, lanes, width_of(parts[1])});
    if (status == ZT_OK && quant->zero == ZERO_PLAIN)
        status =
            expect_product(check, parts[2], (const uint64_t[3]){groups, lanes, width_of(parts[2])});
    if (status == ZT_OK &&
        quant->zero == ZERO_PACKED) /* groups · lanes is at most the number of elements */
        status = expect_words(check, parts[2], groups * lanes, quant->per_word, word_width);
    return status;
}

enum zt_status zt_layout_check_quant_group(const struct zt_layout_case *check)
{
    static const char *const names[] = {"data", "scales", "zeros"};
    const struct zt_component *parts[3] = {NULL};
    struct quantization quant = {0};
    enum zt_status status = read_zero_point(check, &quant);

    if (status == ZT_OK)
        status = zt_layout_parts(check, names, quant.zero == ZERO_NONE ? 2 : 3, parts);
    if (status == ZT_OK)
        status = read_packing(check, parts[0], &quant);
    if (status == ZT_OK)
        status = read_groups(check, &quant);
    if (status == ZT_OK)
        status = check_scale_form(check, parts[1]);
    if (status == ZT_OK)
        status = check_quant_sizes(check, &quant, parts);
    return status;
}

/* --- zt.mx/1 --- */

static bool is_mx_element(const struct zt_component *data)
{
    if (data->logical == ZT_LOGICAL_NONE)
        return data->dtype == ZT_I8;
    return data->dtype == ZT_U8 &&
           (data->logical == ZT_LOGICAL_F4_E2M1 || data->logical == ZT_LOGICAL_F8_E4M3FN ||
            data->logical == ZT_LOGICAL_F8_E5M2);
}

static enum zt_status read_mx_block(const struct zt_layout_case *check, uint64_t *out_block_size)
{
    struct zt_text attributes = attributes_of(check);
    struct zt_cbor_item ignored;
    uint64_t axis = (uint64_t)check->object->rank - 1;
    uint64_t block_size;

    if (attribute(attributes, "axis", &ignored) && !attribute_uint(attributes, "axis", &axis))
        return zt_layout_refuse(check, NULL, "\"axis\" is not a whole number");
    if (axis >= check->object->rank)
        return zt_layout_refuse(check, NULL, "\"axis\" is not a dimension of the shape");
    if (!attribute_uint(attributes, "block_size", &block_size) || block_size < 2)
        return zt_layout_refuse(check, NULL, "\"block_size\" is not a whole number of 2 or more");
    if (check->shape[axis] % block_size != 0)
        return zt_layout_refuse(check, NULL,
                                "\"block_size\" does not divide the dimension of \"axis\"");
    *out_block_size = block_size;
    return ZT_OK;
}

enum zt_status zt_layout_check_mx(const struct zt_layout_case *check)
{
    static const char *const names[] = {"data", "scales"};
    const struct zt_component *parts[2] = {NULL};
    uint64_t block_size = 0;
    enum zt_status status = zt_layout_parts(check, names, 2, parts);

    if (status != ZT_OK)
        return status;
    if (!is_exponent_scale(parts[1]))
        return zt_layout_refuse(check, parts[1], "scales are not f8_e8m0 over u8");
    if (!attribute_is(attributes_of(check), "scale_form", "e8m0_exponent"))
        return zt_layout_refuse(check, NULL, "\"scale_form\" is not e8m0_exponent");
    if (!is_mx_element(parts[0]))
        return zt_layout_refuse(check, parts[0],
                                "data is not f4_e2m1, f8_e4m3fn or f8_e5m2 over u8, nor plain i8");
    status = read_mx_block(check, &block_size);
    if (status != ZT_OK)
        return status;
    assert(block_size > 0);
    status = zt_layout_expect_elements(check, parts[0], check->elements);
    if (status == ZT_OK)
        status = zt_layout_expect_bytes(check, parts[1], check->elements / block_size);
    return status;
}

/* --- gguf.<type>/1 --- */

enum zt_status zt_layout_check_gguf(const struct zt_layout_case *check)
{
    static const char *const names[] = {"data"};
    const struct zt_component *parts[1] = {NULL};
    struct zt_text attributes = attributes_of(check);
    enum zt_status status = zt_layout_parts(check, names, 1, parts);
    uint64_t per_block;
    uint64_t block_bytes;

    if (status != ZT_OK)
        return status;
    if (parts[0]->dtype != ZT_U8 || parts[0]->logical != ZT_LOGICAL_NONE)
        return zt_layout_refuse(check, parts[0], "blocks are not plain u8");
    if (!attribute_uint(attributes, "elems_per_block", &per_block) || per_block == 0)
        return zt_layout_refuse(check, NULL,
                                "\"elems_per_block\" is not a whole number of 1 or more");
    if (!attribute_uint(attributes, "block_bytes", &block_bytes) || block_bytes == 0)
        return zt_layout_refuse(check, NULL, "\"block_bytes\" is not a whole number of 1 or more");
    if (check->elements % per_block != 0)
        return zt_layout_refuse(check, NULL,
                                "\"elems_per_block\" does not divide the number of elements");
    return expect_product(check, parts[0],
                          (const uint64_t[3]){check->elements / per_block, block_bytes, 1});
}
