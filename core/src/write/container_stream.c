/* Writing zTensor as a stream: each component's bytes are hashed, compressed if required by the
 * options, and passed on at once. */
#include "write/container_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/layout.h"
#include "zt/encode.h"

/* The largest alignment minus one byte. */
#define PADDING_MAX 65535

struct zt_container_stream {
    const struct zt_container *container;
    const struct zt_sink *out;
    struct zt_placed placed;
    bool with_digests;
    bool found_lengths; /* some lengths were unknown at the start */
    uint64_t offset;
    uint32_t current;
    struct zt_hasher *hasher;
    struct zt_sink packed; /* receives the encoder's output */
    struct zt_encoder *encoder;
};

static enum zt_status put(struct zt_container_stream *stream, const void *bytes, size_t length,
                          struct zt_error *error)
{
    enum zt_status status;

    if (length == 0)
        return ZT_OK;
    status = stream->out->take(stream->out->context, bytes, length, error);
    if (status == ZT_OK)
        stream->offset += length;
    return status;
}

static enum zt_status pad(struct zt_container_stream *stream, uint64_t alignment,
                          struct zt_error *error)
{
    static const uint8_t zeros[PADDING_MAX] = {0};

    assert(alignment > 0 && alignment - 1 <= PADDING_MAX);
    return put(stream, zeros, (size_t)(zt_align(stream->offset, alignment) - stream->offset),
               error);
}

/* Receives bytes as they will be stored. */
static enum zt_status put_stored(void *context, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    struct zt_container_stream *stream = context;

    if (stream->hasher != NULL && stream->container->digest_covers_stored)
        zt_hasher_update(stream->hasher, bytes, length);
    return put(stream, bytes, length, error);
}

enum zt_status zt_container_stream_begin(const struct zt_projection *projection,
                                         const struct zt_writer_options *options,
                                         const struct zt_sink *out,
                                         struct zt_container_stream **out_stream,
                                         struct zt_error *error)
{
    struct zt_container_stream *stream = calloc(1, sizeof(*stream));
    enum zt_status status;

    if (stream == NULL)
        return zt_fail_memory(error, "writing");
    stream->container = zt_container_of(projection->target);
    stream->out = out;
    stream->packed = (struct zt_sink){put_stored, stream};
    /* zTensor 2 is always written with digests. */
    stream->with_digests = !options->without_digests || projection->target != ZT_TARGET_ZT1;
    status = zt_placed_init(&stream->placed, projection->model, error);
    if (status == ZT_OK && options->zstd)
        status =
            zt_encoder_open(&(struct zt_encoder_options){.encoding = stream->container->encoding,
                                                         .level = options->zstd_level,
                                                         .threads = options->zstd_threads},
                            &stream->packed, &stream->encoder, error);
    if (status == ZT_OK)
        status = put(stream, stream->container->magic, sizeof(stream->container->magic), error);
    if (status != ZT_OK) {
        zt_container_stream_free(stream);
        return status;
    }
    *out_stream = stream;
    return ZT_OK;
}

enum zt_status zt_container_stream_component(struct zt_container_stream *stream, uint32_t component,
                                             struct zt_error *error)
{
    struct zt_component *placed = &stream->placed.components[component];
    enum zt_status status;

    assert(component < stream->placed.model.component_count && stream->hasher == NULL);
    status = pad(stream, stream->container->data_alignment, error);
    if (status == ZT_OK && stream->with_digests &&
        zt_hasher_new(stream->container->digest, &stream->hasher) != ZT_OK)
        status = zt_fail_memory(error, "writing");
    if (status != ZT_OK)
        return status;
    stream->found_lengths = stream->found_lengths || placed->decoded_length == ZT_LENGTH_UNKNOWN;
    stream->current = component;
    placed->offset = stream->offset;
    placed->decoded_length = 0;
    if (stream->encoder != NULL) {
        placed->encoding = (uint8_t)stream->container->encoding;
        placed->encoding_name = stream->container->encoding_name;
        placed->encoding_length = (uint32_t)strlen(placed->encoding_name);
    }
    return ZT_OK;
}

enum zt_status zt_container_stream_append(struct zt_container_stream *stream, const void *bytes,
                                          size_t length, struct zt_error *error)
{
    assert(stream->placed.components[stream->current].offset > 0);
    stream->placed.components[stream->current].decoded_length += length;
    if (stream->hasher != NULL && !stream->container->digest_covers_stored)
        zt_hasher_update(stream->hasher, bytes, length);
    if (stream->encoder != NULL)
        return zt_encoder_append(stream->encoder, bytes, length, error);
    return put_stored(stream, bytes, length, error);
}

enum zt_status zt_container_stream_end(struct zt_container_stream *stream, struct zt_error *error)
{
    struct zt_component *placed = &stream->placed.components[stream->current];
    struct zt_digest digest;
    enum zt_status status =
        stream->encoder != NULL ? zt_encoder_finish(stream->encoder, error) : ZT_OK;

    if (status != ZT_OK)
        return status;
    assert(stream->offset >= placed->offset);
    placed->length = stream->offset - placed->offset;
    if (stream->hasher == NULL)
        return ZT_OK;
    zt_hasher_finish(stream->hasher, &digest);
    zt_placed_set_digest(&stream->placed, stream->current, &digest);
    zt_hasher_free(stream->hasher);
    stream->hasher = NULL;
    return ZT_OK;
}

/* Lengths that were unknown at the start may turn out to break the rules of their layout. */
static enum zt_status check_layouts(const struct zt_container_stream *stream,
                                    struct zt_error *error)
{
    const struct zt_model *model = &stream->placed.model;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        status = zt_layout_check(model, &model->objects[i], stream->container->layouts, error);
    return status;
}

enum zt_status zt_container_stream_finish(struct zt_container_stream *stream,
                                          struct zt_error *error)
{
    struct zt_buffer end = {0};
    enum zt_status status = stream->found_lengths ? check_layouts(stream, error) : ZT_OK;

    assert(stream->hasher == NULL);
    if (status == ZT_OK)
        status = pad(stream, stream->container->manifest_alignment, error);
    if (status == ZT_OK)
        status = stream->container->put_end(&stream->placed.model, stream->offset, &end, error);
    if (status == ZT_OK)
        status = put(stream, end.bytes, end.length, error);
    zt_buffer_free(&end);
    return status;
}

void zt_container_stream_free(struct zt_container_stream *stream)
{
    if (stream == NULL)
        return;
    zt_encoder_close(stream->encoder);
    zt_hasher_free(stream->hasher);
    zt_placed_free(&stream->placed);
    free(stream);
}
