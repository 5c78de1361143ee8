/* Files written into memory. */
#include "support.h"

#include "written.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "handmade.h"

#define DENSE(dtype, at, length, shape)                                                          \
    "{'shape':" shape ",'format':'dense','components':{'data':{'dtype':'" dtype "','offset':" at \
    ",'length':" length "}}}"
#define PLAIN                                                                                  \
    "{'version':'1.2.0','attributes':{'steps':7},'objects':{'a':" DENSE(                       \
        "f32", "64", "24",                                                                     \
        "[2,3]") ",'b':" DENSE("i32", "128", "300",                                            \
                               "[75,1]") ",'c':" DENSE("f32", "64", "24",                      \
                                                       "[6]") ",'d':" DENSE("f16", "448", "2", \
                                                                            "[1]") "}}"
#define PLAIN_DATA 512

void written_open(struct written *written, struct zt_buffer bytes)
{
    struct zt_error error;

    written->bytes = bytes;
    assert_int_equal(zt_source_from_memory(bytes.bytes, bytes.length, &written->source, &error),
                     ZT_OK);
    if (zt_model_open(written->source, &written->model, &error) != ZT_OK)
        fail_msg("%s: %s", error.rule != NULL ? error.rule : "no rule", error.message);
}

void written_from_text(struct written *written, size_t data_length, const char *manifest)
{
    struct container container = {0};
    struct zt_buffer bytes = {0};

    container_make(&container, CONTAINER_ZT1, data_length, manifest);
    zt_buffer_append(&bytes, container.bytes, container.length);
    container_free(&container);
    written_open(written, bytes);
}

void written_unknown_length(struct written *written, size_t values_length)
{
    static const char manifest[] =
        "{'version':'1.1.0','objects':{'x':{'shape':[9],'format':'sparse_coo','components':{'"
        "coords':{'dtype':'u64','offset':64,'length':16},'values':{'dtype':'u8','offset':128,'"
        "length':%zu,'encoding':'zstd'}}}}}";
    struct container container = {0};
    struct zt_buffer bytes = {0};
    struct bytes packed = {NULL, 0};
    char text[512];

    bytes_append_zstd(&packed, "\1\2\3\4", values_length, false);
    snprintf(text, sizeof(text), manifest, packed.length);
    container_make(&container, CONTAINER_ZT1, 256, text);
    memset(container.bytes + 64, 0, 16);
    container.bytes[64] = 5;
    memcpy(container.bytes + 128, packed.at, packed.length);
    zt_buffer_append(&bytes, container.bytes, container.length);
    container_free(&container);
    bytes_free(&packed);
    written_open(written, bytes);
}

void written_plain(struct written *written)
{
    written_from_text(written, PLAIN_DATA, PLAIN);
}

void written_free(struct written *written)
{
    zt_model_free(written->model);
    zt_source_close(written->source);
    zt_buffer_free(&written->bytes);
    memset(written, 0, sizeof(*written));
}

static enum zt_status take(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    struct failing_sink *sink = context;

    assert_true(length > 0);
    if (++sink->calls == sink->failing_call)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the sink is full");
    assert_true(sink->failing_call == 0 || sink->calls < sink->failing_call);
    zt_buffer_append(&sink->bytes, bytes, length);
    return ZT_OK;
}

struct zt_sink failing_sink(struct failing_sink *state)
{
    return (struct zt_sink){take, state};
}

enum zt_status written_convert(const struct written *from, enum zt_target target,
                               const struct zt_writer_options *options, struct zt_buffer *out_bytes,
                               struct zt_error *error)
{
    struct failing_sink state = {0};
    struct zt_sink sink = failing_sink(&state);
    struct zt_source *files[] = {from->source};
    struct zt_conversion conversion = {.source = from->model, .files = files};
    struct zt_projection *projection = NULL;
    enum zt_status status = zt_model_project(from->model, target, &projection, error);

    if (options != NULL)
        conversion.options = *options;
    conversion.projection = projection;
    if (status == ZT_OK)
        status = zt_model_convert(&conversion, &sink, error);
    zt_projection_free(projection);
    if (status == ZT_OK)
        *out_bytes = state.bytes;
    else
        zt_buffer_free(&state.bytes);
    return status;
}

void written_make(struct written *written, const struct written *from, enum zt_target target,
                  const struct zt_writer_options *options)
{
    struct zt_buffer bytes = {0};
    struct zt_error error;

    if (written_convert(from, target, options, &bytes, &error) != ZT_OK)
        fail_msg("%s [%s]", error.message, error.object);
    written_open(written, bytes);
}

size_t written_decode(const struct written *written, const char *object, const char *component,
                      void *buffer, size_t capacity)
{
    const struct zt_object *found =
        zt_model_find(written->model, (struct zt_text){object, strlen(object)});
    struct zt_decoder *decoder;
    struct zt_error error;
    size_t total = 0;
    size_t length = 1;
    const struct zt_component *part;

    assert_non_null(found);
    part = zt_object_find(written->model, found, (struct zt_text){component, strlen(component)});
    assert_non_null(part);
    assert_int_equal(zt_decoder_open(part, written->source, &decoder, &error), ZT_OK);
    while (length > 0) {
        assert_true(total < capacity);
        assert_int_equal(
            zt_decoder_read(decoder, (uint8_t *)buffer + total, capacity - total, &length, &error),
            ZT_OK);
        total += length;
    }
    zt_decoder_close(decoder);
    return total;
}

static void assert_same_object(const struct written *a, const struct written *b,
                               const struct zt_object *object)
{
    const struct zt_object *other = zt_model_find(b->model, zt_object_name(object));
    uint8_t bytes[2][1024];
    char name[64] = {0};
    size_t length;

    assert_non_null(other);
    assert_int_equal(object->rank, other->rank);
    assert_memory_equal(zt_object_shape(a->model, object), zt_object_shape(b->model, other),
                        object->rank * sizeof(uint64_t));
    assert_int_equal(zt_object_components(a->model, object)->dtype,
                     zt_object_components(b->model, other)->dtype);
    memcpy(name, object->name, object->name_length);
    length = written_decode(a, name, "data", bytes[0], sizeof(bytes[0]));
    assert_int_equal(written_decode(b, name, "data", bytes[1], sizeof(bytes[1])), length);
    assert_memory_equal(bytes[0], bytes[1], length);
}

void assert_same_model(const struct written *a, const struct written *b)
{
    assert_int_equal(a->model->object_count, b->model->object_count);
    for (uint32_t i = 0; i < a->model->object_count; i++)
        assert_same_object(a, b, &a->model->objects[i]);
}
