/* Choosing the widener of a component, by its type or its layout. */
#include <assert.h>

#include "cbor/cbor_read.h"
#include "widen/kernels.h"
#include "zt/widen.h"

struct zt_widener {
    const char *name; /* a type, or what stands between "gguf." and "/1" in the layout's name */
    const struct zt_widen_kernel *kernel;
    uint16_t elements;
    uint16_t bytes;
};

static const struct zt_widener float_types[] = {
    {"f32", &zt_widen_f32, 1, 4},
    {"f16", &zt_widen_f16, 1, 2},
    {"bf16", &zt_widen_bf16, 1, 2},
    {"f8_e4m3fn", &zt_widen_f8_e4m3fn, 1, 1},
    {"f8_e5m2", &zt_widen_f8_e5m2, 1, 1},
    {"f8_e4m3fnuz", &zt_widen_f8_e4m3fnuz, 1, 1},
    {"f8_e5m2fnuz", &zt_widen_f8_e5m2fnuz, 1, 1},
    {"f8_e8m0", &zt_widen_f8_e8m0, 1, 1},
    {"f4_e2m1", &zt_widen_f4_e2m1, 2, 1},
};

static const struct zt_widener integer_types[] = {
    {"i4", &zt_widen_i4, 2, 1},
    {"u4", &zt_widen_u4, 2, 1},
    {"i2", &zt_widen_i2, 4, 1},
    {"u2", &zt_widen_u2, 4, 1},
};

static const struct zt_widener block_types[] = {
    {"q4_0", &zt_widen_q4_0, 32, 18},        {"q4_1", &zt_widen_q4_1, 32, 20},
    {"q5_0", &zt_widen_q5_0, 32, 22},        {"q5_1", &zt_widen_q5_1, 32, 24},
    {"q8_0", &zt_widen_q8_0, 32, 34},        {"q2_k", &zt_widen_q2_k, 256, 84},
    {"q3_k", &zt_widen_q3_k, 256, 110},      {"q4_k", &zt_widen_q4_k, 256, 144},
    {"q5_k", &zt_widen_q5_k, 256, 176},      {"q6_k", &zt_widen_q6_k, 256, 210},
    {"iq2_xxs", &zt_widen_iq2_xxs, 256, 66}, {"iq2_xs", &zt_widen_iq2_xs, 256, 74},
    {"iq3_xxs", &zt_widen_iq3_xxs, 256, 98}, {"iq1_s", &zt_widen_iq1_s, 256, 50},
    {"iq4_nl", &zt_widen_iq4_nl, 32, 18},    {"iq3_s", &zt_widen_iq3_s, 256, 110},
    {"iq2_s", &zt_widen_iq2_s, 256, 82},     {"iq4_xs", &zt_widen_iq4_xs, 256, 136},
    {"iq1_m", &zt_widen_iq1_m, 256, 56},     {"tq1_0", &zt_widen_tq1_0, 256, 54},
    {"tq2_0", &zt_widen_tq2_0, 256, 66},     {"mxfp4", &zt_widen_mxfp4, 32, 17},
    {"nvfp4", &zt_widen_nvfp4, 64, 36},      {"q1_0", &zt_widen_q1_0, 128, 18},
    {"q2_0", &zt_widen_q2_0, 64, 18},
};

static const struct zt_widener *find_named(const struct zt_widener *wideners, size_t count,
                                           struct zt_text name)
{
    for (size_t i = 0; i < count; i++)
        if (zt_text_is(name, wideners[i].name))
            return &wideners[i];
    return NULL;
}

/* --- floats --- */

static const struct zt_widener *find_float(const struct zt_component *component)
{
    const enum zt_dtype dtype = (enum zt_dtype)component->dtype;
    const char *logical = zt_logical_name((enum zt_logical)component->logical);
    const char *name = component->logical == ZT_LOGICAL_NONE ? zt_dtype_name(dtype) : logical;

    if (name == NULL)
        return NULL;
    return find_named(float_types, sizeof(float_types) / sizeof(float_types[0]),
                      zt_text_from(name));
}

/* --- packed integers --- */

/* zTensor has no such types, so that only their texts say what they are. */
static const struct zt_widener *find_integers(const struct zt_component *component)
{
    if (component->logical != ZT_LOGICAL_UNKNOWN || component->dtype != ZT_U8)
        return NULL;
    return find_named(integer_types, sizeof(integer_types) / sizeof(integer_types[0]),
                      (struct zt_text){component->type, component->type_length});
}

/* --- blocks: gguf.<type>/1 --- */

static bool states(const struct zt_object *object, const char *key, uint64_t value)
{
    const struct zt_text attributes = {(const char *)object->attributes, object->attributes_length};
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_error ignored;

    return attributes.length > 0 && zt_cbor_map_find(attributes, key, &reader) &&
           zt_cbor_next(&reader, &item, &ignored) == ZT_OK && item.kind == ZT_CBOR_UINT &&
           item.value == value;
}

/* The name of the layout says how blocks are made up, and its attributes how large they are: an
 * object with other sizes than the type's holds other data. */
static const struct zt_widener *find_blocks(const struct zt_object *object)
{
    const struct zt_text head = zt_text_from("gguf.");
    const struct zt_text tail = zt_text_from("/1");
    const struct zt_widener *found;
    struct zt_text name = {object->format, object->format_length};

    assert(zt_text_starts_with(name, head) && zt_text_ends_with(name, tail));
    name = (struct zt_text){name.bytes + head.length, name.length - head.length - tail.length};
    found = find_named(block_types, sizeof(block_types) / sizeof(block_types[0]), name);
    if (found == NULL || !states(object, "elems_per_block", found->elements) ||
        !states(object, "block_bytes", found->bytes))
        return NULL;
    return found;
}

const struct zt_widener *zt_widener_find(const struct zt_object *object,
                                         const struct zt_component *component)
{
    if (!zt_text_is(zt_component_name(component), "data"))
        return NULL;
    if (object->layout == ZT_LAYOUT_DENSE)
        return find_float(component);
    return object->layout == ZT_LAYOUT_GGUF ? find_blocks(object) : NULL;
}

const struct zt_widener *zt_widener_find_numbers(const struct zt_object *object,
                                                 const struct zt_component *component)
{
    const struct zt_widener *found = zt_widener_find(object, component);

    if (found != NULL || object->layout != ZT_LAYOUT_DENSE ||
        !zt_text_is(zt_component_name(component), "data"))
        return found;
    return find_integers(component);
}

unsigned zt_widener_elements(const struct zt_widener *widener)
{
    return widener->elements;
}

unsigned zt_widener_bytes(const struct zt_widener *widener)
{
    return widener->bytes;
}

bool zt_widener_passes(const struct zt_widener *widener)
{
    return widener->kernel == &zt_widen_f32;
}

void zt_widen_blocks(const struct zt_widener *widener, const uint8_t *blocks, size_t count,
                     float *out_values)
{
    zt_widen_function *function = widener->kernel->portable;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        function = widener->kernel->avx2;
#endif
    function(blocks, count, out_values);
}
