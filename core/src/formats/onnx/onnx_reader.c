/* ONNX: the reader. onnx.c walks the message for it. */
#include "formats/onnx/onnx.h"

/* protobuf: the length of a message fits in 31 bits. */
#define MESSAGE_MAX_BYTES ((UINT64_C(1) << 31) - 1)

/* The manifest is fetched piece by piece when it is read. */
static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    (void)state;
    if (zt_source_size(source) > MESSAGE_MAX_BYTES)
        return zt_fail(error, ZT_INVALID, "onnx §Model TooLarge", 0,
                       "the message has 2 GiB or more");
    *out_place = (struct zt_manifest_place){0, 0};
    return ZT_OK;
}

static enum zt_status read_message(void *state, struct zt_builder *builder, struct zt_error *error)
{
    return onnx_read(state, builder, error);
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_ONNX,
    .name = "onnx",
    .duplicate_rule = ONNX_DUPLICATE_NAME,
    .locate = locate,
    .read = read_message,
};

enum zt_status onnx_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error)
{
    return zt_reader_open(&reader, source, source, out_model, error);
}
