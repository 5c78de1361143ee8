/* Files written into memory. */
#include "support.h"

#include "written.h"

#include <stdlib.h>
#include <string.h>

#include "container.h"

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
