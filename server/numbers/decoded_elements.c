/* Finds or makes the source of a component's decoded bytes, as derived/export_bytes.c does. */
#include "numbers/decoded_elements.h"

#include <string.h>

#include "derived/decoded.h"
#include "numbers/component_statistics.h"
#include "zt/decode.h"

/* A component whose frames can be decoded one by one, and which would not fit into the cache. */
static bool is_read_by_frames(const struct server *server, const struct zt_component *component)
{
    return component->encoding == ZT_ENCODING_ZSTD_SEEKABLE && !component->big_endian &&
           component->decoded_length != ZT_LENGTH_UNKNOWN &&
           component->decoded_length >
               (uint64_t)config_number(&server->config->limits.decoded_bytes);
}

static enum zt_status decode(struct server *server, struct generation *generation, uint32_t number,
                             uint64_t expected, struct decoded_elements *elements,
                             struct zt_error *error)
{
    const enum zt_status status =
        decoded_get(server->decoded, generation, number, &elements->decoded, error);

    if (status == ZT_OK && elements->decoded->length != expected)
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                       "its decoded length does not match its shape");
    return status;
}

/* Fills in where the decoded bytes are. stored->decoded is borrowed, or one of those that elements
 * close. */
static enum zt_status open_bytes(struct server *server, struct generation *generation,
                                 struct decoded_elements *elements, struct zt_stored_tensor *stored,
                                 struct zt_error *error)
{
    const struct zt_component *component = stored->component;
    const struct zt_files files = generation_files(generation);
    struct zt_source *file = zt_files_source(&files, component);
    struct zt_slice view;
    uint64_t expected;
    enum zt_status status;

    if (zt_component_is_plain(component)) {
        stored->decoded = file;
        stored->base = component->offset;
        return ZT_OK;
    }
    if (zt_slice_of_view(NULL, component, &view)) {
        status = zt_slice_source(&view, file, component->offset, &elements->source, error);
    } else if (is_read_by_frames(server, component)) {
        elements->is_sequential = true;
        status = zt_frames_source(component, file, &elements->source, error);
    } else {
        expected = zt_elements_bytes(stored->object, component, NULL,
                                     zt_object_elements(stored->model, stored->object));
        status = decode(server, generation, (uint32_t)(component - stored->model->components),
                        expected, elements, error);
    }
    if (status == ZT_OK)
        stored->decoded = elements->decoded != NULL ? elements->decoded->source : elements->source;
    return status;
}

enum zt_status decoded_elements_open(struct server *server, struct generation *generation,
                                     const struct statistics_query *order,
                                     struct decoded_elements *out_elements, struct zt_error *error)
{
    const struct zt_model *model = generation->model;
    struct zt_stored_tensor stored = {.model = model,
                                      .object = &model->objects[order->object],
                                      .component = &model->components[order->component]};
    struct decoded_elements elements;
    enum zt_status status;

    memset(&elements, 0, sizeof(elements));
    zt_error_clear(error);
    status = open_bytes(server, generation, &elements, &stored, error);
    if (status == ZT_OK)
        status = zt_elements_open(&stored, order->slice, &elements.elements, error);
    if (status != ZT_OK) {
        decoded_elements_close(&elements);
        return status;
    }
    *out_elements = elements;
    return ZT_OK;
}

void decoded_elements_close(struct decoded_elements *elements)
{
    zt_elements_close(&elements->elements);
    memo_release(elements->decoded);
    zt_source_close(elements->source);
    memset(elements, 0, sizeof(*elements));
}
