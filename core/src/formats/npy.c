/* A single NumPy array (.npy): one object, "data", whose bytes follow the header to the end of the
 * file. */
#include "formats/formats.h"

#include <inttypes.h>

#include "formats/npy_header.h"

/* The header is the manifest: what the builder has read of it. */
static enum zt_status add_array(struct zt_builder *builder, struct zt_error *error)
{
    struct zt_model *model = builder->model;
    struct npy_place place = {.offset = 0};
    struct npy_header header;
    struct zt_component *component;
    enum zt_status status = npy_header_read(
        model->storage->manifest, (uint32_t)model->manifest_length, &place, &header, error);

    if (status != ZT_OK)
        return status;
    if (header.data_bytes != model->file_size - header.length_bytes)
        return zt_fail(error, ZT_INVALID, "npy §Data DataSize", header.length_bytes,
                       "%" PRIu64 " bytes follow the header, the array takes %" PRIu64,
                       model->file_size - header.length_bytes, header.data_bytes);
    status = npy_header_add(&header, builder, &component, error);
    if (status == ZT_OK)
        component->offset = header.length_bytes;
    return status;
}

static enum zt_status measure(struct zt_source *source, uint32_t *out_length,
                              struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    struct npy_place place = {.offset = 0};
    uint8_t preamble[NPY_PREAMBLE_MAX] = {0};
    enum zt_status status = zt_source_read_at(
        source, 0, preamble, size < sizeof(preamble) ? (size_t)size : sizeof(preamble), error);

    return status == ZT_OK ? npy_header_measure(preamble, size, &place, out_length, error) : status;
}

enum zt_status npy_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error)
{
    struct zt_builder builder;
    struct zt_model *model = NULL;
    uint32_t length = 0;
    enum zt_status status = measure(source, &length, error);

    if (status == ZT_OK)
        status = zt_builder_init(&builder, source, 0, length, error);
    if (status != ZT_OK)
        return status;
    builder.model->format = ZT_FORMAT_NPY;
    builder.model->format_name = "npy";
    status = add_array(&builder, error);
    if (status == ZT_OK)
        status = zt_builder_finish(&builder, "npy §Header Fields", &model, error);
    if (status != ZT_OK) {
        zt_builder_abandon(&builder);
        return status;
    }
    npy_settle_shapes(model);
    *out_model = model;
    return ZT_OK;
}
