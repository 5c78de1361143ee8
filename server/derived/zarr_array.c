/* A chunk refers to the stored file if zarr's codecs can decode it there; otherwise the server
 * decodes it. */
#include "derived/zarr_array.h"

#include <assert.h>
#include <string.h>

#include "zt/widen.h"

/* Returns NULL if the current zarr-python that reads references does not support the type. An array
 * of an unknown type makes the whole group unreadable. */
static const char *type_name(enum zt_dtype dtype, enum zt_logical logical)
{
    static const char *const names[ZT_DTYPE_COUNT] = {
        [ZT_F64] = "float64", [ZT_F32] = "float32", [ZT_F16] = "float16", [ZT_I64] = "int64",
        [ZT_I32] = "int32",   [ZT_I16] = "int16",   [ZT_I8] = "int8",     [ZT_U64] = "uint64",
        [ZT_U32] = "uint32",  [ZT_U16] = "uint16",  [ZT_U8] = "uint8",    [ZT_BOOL] = "bool",
    };

    switch (logical) {
    case ZT_LOGICAL_NONE:
        return names[dtype];
    case ZT_LOGICAL_BOOL:
        return "bool";
    case ZT_LOGICAL_COMPLEX64:
        return "complex64";
    case ZT_LOGICAL_COMPLEX128:
        return "complex128";
    default:
        return NULL;
    }
}

/* --- where the chunk is --- */

/* Returns the path of a component's file; NULL if it is not below /files. */
static const char *path_of(const struct generation *generation,
                           const struct zt_component *component)
{
    const struct shard_file *shard;

    if (component->shard == 0)
        return generation->own_path;
    assert(component->shard <= generation->shards.count);
    shard = &generation->shards.items[component->shard - 1];
    return shard->is_data ? NULL : shard->path;
}

static void find_chunk(const struct generation *generation, struct zarr_array *array)
{
    const struct zt_component *component = array->component;
    const bool is_zstd = component->encoding == ZT_ENCODING_ZSTD;

    if (array->is_widened || (component->encoding != ZT_ENCODING_RAW && !is_zstd))
        return;
    array->path = path_of(generation, component);
    if (array->path == NULL)
        return;
    array->zstd = is_zstd;
    array->big_endian = zt_component_is_swapped(component);
    array->transposed = zt_component_is_transposed(component);
}

/* --- objects --- */

static enum zt_status fail(struct zt_error *error, const struct zarr_array *array, const char *why)
{
    const enum zt_status status =
        zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "zarr cannot hold this object: %s", why);

    zt_error_at(error, zt_object_name(array->object), (struct zt_text){NULL, 0});
    return status;
}

static enum zt_status widen(struct zarr_array *array, uint64_t elements, struct zt_error *error)
{
    array->data_type = "float32";
    array->is_widened = true;
    if (zt_element_bytes(ZT_F32, ZT_LOGICAL_NONE, elements, &array->bytes) != ZT_OK)
        return fail(error, array, "its size does not fit in 64 bits");
    return ZT_OK;
}

/* --- names --- */

static bool is_dots(const char *part, size_t length)
{
    size_t dots = 0;

    while (dots < length && part[dots] == '.')
        dots++;
    return dots == length;
}

/* Names that zarr's core specification 3 ("Node names") forbids, and zarr.json, which is the
 * metadata file of every node. */
static const char *part_fault(const char *part, size_t length)
{
    static const char own[] = "zarr.json";

    if (length == 0)
        return "a part of its name is empty";
    if (is_dots(part, length))
        return "a part of its name consists only of dots";
    if (length >= 2 && memcmp(part, "__", 2) == 0)
        return "a part of its name begins with __, which is reserved";
    if (length == strlen(own) && memcmp(part, own, length) == 0)
        return "a part of its name is zarr.json";
    return NULL;
}

/* Returns why a name cannot be the path of a node (its parts are separated by slashes); NULL if it
 * can. */
static const char *name_fault(struct zt_text name)
{
    const char *at = name.bytes;
    const char *end = name.bytes + name.length;

    if (name.length == 0)
        return "its name is empty";
    if (memchr(name.bytes, '\\', name.length) != NULL ||
        memchr(name.bytes, '\0', name.length) != NULL)
        return "its name has a backslash, which is read as a slash, or U+0000";
    for (;;) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *fault = part_fault(at, (size_t)((slash != NULL ? slash : end) - at));

        if (fault != NULL || slash == NULL)
            return fault;
        at = slash + 1;
    }
}

/* --- arrays --- */

enum zt_status zarr_array_of(const struct generation *generation, const struct zt_object *object,
                             bool to_f32, struct zarr_array *out_array, struct zt_error *error)
{
    const struct zt_model *model = generation->model;
    const struct zt_component *component = zt_object_components(model, object);
    struct zarr_array array = {.object = object, .component = component};
    const struct zt_widener *widener;
    const char *fault = name_fault(zt_object_name(object));
    enum zt_status status;

    if (fault != NULL)
        return fail(error, &array, fault);
    if (object->component_count != 1)
        return fail(error, &array, "it is neither dense nor a quantized tensor");
    widener = zt_widener_find(object, component);
    if (to_f32 && widener != NULL && !zt_widener_passes(widener)) {
        status = widen(&array, zt_object_elements(model, object), error);
        if (status == ZT_OK)
            *out_array = array;
        return status;
    }
    if (object->layout != ZT_LAYOUT_DENSE)
        return fail(error, &array,
                    widener != NULL ? "it is quantized; dtype=f32 widens it" : "it is not dense");
    array.data_type = type_name(component->dtype, component->logical);
    if (array.data_type == NULL)
        return fail(error, &array,
                    widener != NULL ? "it has no such type; dtype=f32 widens it"
                                    : "it has no such type");
    if (zt_element_bytes(component->dtype, component->logical, zt_object_elements(model, object),
                         &array.bytes) != ZT_OK)
        return fail(error, &array, "its size does not fit in 64 bits");
    find_chunk(generation, &array);
    *out_array = array;
    return ZT_OK;
}
