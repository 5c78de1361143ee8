/* A single NumPy array (.npy): one object, "data", whose bytes follow the header to the end of the
 * file. The header is the manifest. */
#include "formats/formats.h"

#include <inttypes.h>

#include "base/cut_off.h"
#include "numpy/npy_header.h"

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    struct npy_place place = {.is_file = true};
    uint8_t preamble[NPY_PREAMBLE_MAX] = {0};
    uint32_t length = 0;
    enum zt_status status = zt_source_read_at(
        source, 0, preamble, size < sizeof(preamble) ? (size_t)size : sizeof(preamble), error);

    (void)state;
    if (status == ZT_OK)
        status = npy_header_measure(preamble, size, &place, &length, error);
    if (status == ZT_OK)
        *out_place = (struct zt_manifest_place){.offset = 0, .length = length};
    return status;
}

static enum zt_status read_array(void *state, struct zt_builder *builder, struct zt_error *error)
{
    struct zt_model *model = builder->model;
    struct npy_place place = {.offset = 0};
    struct npy_header header;
    enum zt_status status = npy_header_read(
        model->storage->manifest, (uint32_t)model->manifest_length, &place, &header, error);

    (void)state;
    if (status != ZT_OK)
        return status;
    if (header.data_bytes != model->file_size - header.length_bytes)
        return zt_fail(error, ZT_INVALID, "npy §Data DataSize", header.length_bytes,
                       "%s%" PRIu64 " bytes follow the header, but the array takes %" PRIu64,
                       header.data_bytes > model->file_size - header.length_bytes ? CUT_OFF : "",
                       model->file_size - header.length_bytes, header.data_bytes);
    return npy_array_add(&header, zt_text_from("data"), header.length_bytes, builder, error);
}

static enum zt_status attach_shape(void *state, struct zt_model *model, struct zt_error *error)
{
    (void)state;
    (void)error;
    npy_attach_shapes(model);
    return ZT_OK;
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_NPY,
    .name = "npy",
    .duplicate_rule = "npy §Header Fields",
    .locate = locate,
    .read = read_array,
    .check = attach_shape,
};

enum zt_status npy_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error)
{
    return zt_reader_open(&reader, NULL, source, out_model, error);
}
