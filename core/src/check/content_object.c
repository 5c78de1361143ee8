/* The content rules of an object (docs/rules/data.md): what its bytes must be beyond their digest.
 * Those of sparse layouts (zTensor 2 types and layouts; 1.2 section 3) are in content_sparse.c and
 * content_zt01.c. Encoded components that no layout's rule reads are decoded once, so that an
 * object that passes can be read. */
#include <assert.h>

#include "check/content.h"
#include "zt/verify.h"

static bool is_bool(const struct zt_component *component)
{
    return component->dtype == ZT_BOOL || component->logical == ZT_LOGICAL_BOOL;
}

/* Whether the last byte holds only one element, so that its other nibble must be 0. */
static bool has_spare_nibble(const struct zt_content *content, const struct zt_component *component)
{
    return content->object->layout == ZT_LAYOUT_DENSE && component->logical == ZT_LOGICAL_F4_E2M1 &&
           zt_object_elements(content->model, content->object) % 2 == 1;
}

static enum zt_status check_bools(const struct zt_content *content,
                                  const struct zt_component *component, const uint8_t *bytes,
                                  size_t length)
{
    uint8_t seen = 0;

    for (size_t i = 0; i < length; i++)
        seen |= bytes[i];
    for (size_t i = 0; seen > 1 && i < length; i++)
        if (bytes[i] > 1)
            return zt_content_fail(content, component, "a bool is 0x%02x", bytes[i]);
    return ZT_OK;
}

static enum zt_status check_nibble(const struct zt_content *content,
                                   const struct zt_component *component, uint8_t last_byte)
{
    if (last_byte >> 4 == 0)
        return ZT_OK;
    return zt_content_fail(content, component, "the high nibble after the last element is 0x%x",
                           last_byte >> 4);
}

/* Checks the last byte of plain data without reading the bytes before it. */
static enum zt_status check_plain_nibble(const struct zt_content *content,
                                         const struct zt_component *component)
{
    struct zt_source *source = zt_files_source(content->files, component);
    uint8_t last = 0;
    enum zt_status status;

    assert(source != NULL && zt_component_is_plain(component));
    if (component->length == 0)
        return ZT_OK;
    status = zt_source_read_at(source, component->offset + component->length - 1, &last, 1,
                               content->error);
    return status == ZT_OK ? check_nibble(content, component, last) : status;
}

static enum zt_status check_whole(const struct zt_content *content,
                                  const struct zt_component *component, bool has_bools)
{
    struct zt_content_reader reader;
    const uint8_t *bytes;
    uint8_t last = 0;
    size_t length;
    enum zt_status status = zt_content_reader_open(&reader, content, component);

    if (status != ZT_OK)
        return status;
    do {
        status = zt_content_reader_run(&reader, &bytes, &length);
        if (status == ZT_OK && has_bools)
            status = check_bools(content, component, bytes, length);
        if (status == ZT_OK && length > 0)
            last = bytes[length - 1];
    } while (status == ZT_OK && length > 0);
    if (status == ZT_OK && has_spare_nibble(content, component))
        status = check_nibble(content, component, last);
    zt_content_reader_close(&reader);
    return status;
}

/* Checks the rules of a component's type, and that the component decodes. */
static enum zt_status check_component(const struct zt_content *content,
                                      const struct zt_component *component)
{
    /* The components of an unknown layout may have any content. */
    bool has_bools = is_bool(component) && content->object->layout != ZT_LAYOUT_OTHER;
    bool has_nibble = has_spare_nibble(content, component);

    if (has_nibble && zt_files_source(content->files, component) != NULL &&
        zt_component_is_plain(component))
        return check_plain_nibble(content, component);
    if (has_bools || has_nibble)
        return check_whole(content, component, has_bools);
    /* The elements of a view are within the file, as opening has checked. */
    if (component->encoding == ZT_ENCODING_RAW || component->encoding == ZT_ENCODING_STRIDED ||
        component->encoding == ZT_ENCODING_UNKNOWN)
        return ZT_OK;
    return check_whole(content, component, false);
}

static enum zt_status check_layout(const struct zt_content *content)
{
    switch ((enum zt_layout)content->object->layout) {
    case ZT_LAYOUT_SPARSE_CSR:
        return zt_content_csr(content);
    case ZT_LAYOUT_SPARSE_COO:
        return zt_content_coo(content);
    case ZT_LAYOUT_ZT01_COO:
        return zt_content_zt01_coo(content);
    case ZT_LAYOUT_ZT01_CSR:
        return zt_content_zt01_csr(content);
    default:
        return ZT_OK;
    }
}

static bool is_named(const struct zt_component *component, const char *name)
{
    return zt_text_is(zt_component_name(component), name);
}

/* Whether the layout's rule reads a component to its end. */
static bool is_read_by_layout(const struct zt_object *object, const struct zt_component *component)
{
    switch ((enum zt_layout)object->layout) {
    case ZT_LAYOUT_SPARSE_CSR:
        return is_named(component, "indices") || is_named(component, "indptr");
    case ZT_LAYOUT_SPARSE_COO:
        return is_named(component, "coords");
    case ZT_LAYOUT_ZT01_COO:
    case ZT_LAYOUT_ZT01_CSR:
        return is_named(component, "data");
    default:
        return false;
    }
}

enum zt_status zt_object_check(const struct zt_model *model, const struct zt_object *object,
                               const struct zt_files *files, struct zt_error *error)
{
    const struct zt_content content = {model, object, zt_object_shape(model, object), files, error};
    const struct zt_component *components = zt_object_components(model, object);
    enum zt_status status = check_layout(&content);

    for (uint32_t i = 0; status == ZT_OK && i < object->component_count; i++)
        if (!is_read_by_layout(object, &components[i]))
            status = check_component(&content, &components[i]);
    return status;
}
