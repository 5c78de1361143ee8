/* Choosing the widener of a component, by its type or its layout. */

#include "cbor/cbor_read.h"
#include "widen/kernels.h"
#include "zt/widen.h"

struct zt_widener {
    const char *name; /* a type, or what stands between "gguf." and "/1" in the layout's name */
    const struct zt_widen_kernel *kernel;
    uint16_t elements;
    uint16_t bytes;
};

static const struct zt_widener floats[] = {
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

static const struct zt_widener *find_named(const struct zt_widener *wideners, size_t count,
                                           struct zt_text name)
{
    for (size_t i = 0; i < count; i++)
        if (zt_text_is(name, wideners[i].name))
            return &wideners[i];
    return NULL;
}

static const struct zt_widener *find_float(const struct zt_component *component)
{
    const enum zt_dtype dtype = (enum zt_dtype)component->dtype;
    const char *logical = zt_logical_name((enum zt_logical)component->logical);
    const char *name = component->logical == ZT_LOGICAL_NONE ? zt_dtype_name(dtype) : logical;

    if (name == NULL)
        return NULL;
    return find_named(floats, sizeof(floats) / sizeof(floats[0]), zt_text_from(name));
}

const struct zt_widener *zt_widener_find(const struct zt_object *object,
                                         const struct zt_component *component)
{
    if (!zt_text_is(zt_component_name(component), "data"))
        return NULL;
    if (object->layout == ZT_LAYOUT_DENSE)
        return find_float(component);
    return NULL;
}

unsigned zt_widener_elements(const struct zt_widener *widener)
{
    return widener->elements;
}

unsigned zt_widener_bytes(const struct zt_widener *widener)
{
    return widener->bytes;
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
