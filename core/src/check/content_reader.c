/* Reading a component's decoded bytes in small steps through one buffer, for the content rules. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "check/content.h"

#define BUFFER_SIZE ((size_t)64 << 10)

static const char *data_rule(const struct zt_content *content)
{
    switch (content->model->format) {
    case ZT_FORMAT_ZT01:
        return "zt0.1 §3 LayoutData";
    case ZT_FORMAT_ZT1:
        return "zt1 §3 LayoutData";
    case ZT_FORMAT_MAG:
        return "mag §Data LayoutData";
    case ZT_FORMAT_SAFETENSORS:
        return "safetensors §Data LayoutData";
    case ZT_FORMAT_GGUF:
        return "gguf §Data LayoutData";
    case ZT_FORMAT_NPZ:
        return "npz §Data LayoutData";
    case ZT_FORMAT_NPY:
        return "npy §Data LayoutData";
    case ZT_FORMAT_PYTORCH:
        return "pt §Data LayoutData";
    case ZT_FORMAT_ONNX:
        return "onnx §Data LayoutData";
    case ZT_FORMAT_ZT2:
        break;
    }
    return "zt2 §6 LayoutData";
}

static enum zt_status with_names(const struct zt_content *content,
                                 const struct zt_component *component, enum zt_status status)
{
    if (status != ZT_OK)
        zt_error_at(content->error, zt_object_name(content->object), zt_component_name(component));
    return status;
}

enum zt_status zt_content_fail(const struct zt_content *content,
                               const struct zt_component *component, const char *format, ...)
{
    char message[sizeof(content->error->message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    zt_fail(content->error, ZT_INVALID, data_rule(content), component->offset, "%s", message);
    return with_names(content, component, ZT_INVALID);
}

const struct zt_component *zt_content_find(const struct zt_content *content, const char *name)
{
    return zt_object_find(content->model, content->object, (struct zt_text){name, strlen(name)});
}

static enum zt_status open_decoder(struct zt_content_reader *reader)
{
    const struct zt_component *component = reader->component;
    struct zt_error *error = reader->content->error;
    struct zt_source *source = zt_files_source(reader->content->files, component);

    if (source == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, component->offset,
                       "the shard that holds the component is missing");
    reader->buffer = malloc(BUFFER_SIZE);
    if (reader->buffer == NULL)
        return zt_fail_memory(error, "reading");
    return zt_decoder_open(component, source, &reader->decoder, error);
}

enum zt_status zt_content_reader_open(struct zt_content_reader *reader,
                                      const struct zt_content *content,
                                      const struct zt_component *component)
{
    enum zt_status status;

    memset(reader, 0, sizeof(*reader));
    reader->content = content;
    reader->component = component;
    reader->width = zt_dtype_width((enum zt_dtype)component->dtype);
    reader->is_signed = component->dtype >= ZT_I64 && component->dtype <= ZT_I8;
    status = open_decoder(reader);
    if (status != ZT_OK)
        zt_content_reader_close(reader);
    return with_names(content, component, status);
}

/* Fills the buffer until it holds `wanted` bytes or the component ends. */
static enum zt_status fill(struct zt_content_reader *reader, size_t wanted)
{
    size_t held = reader->length - reader->position;

    assert(reader->position <= reader->length && wanted <= BUFFER_SIZE);
    if (held >= wanted)
        return ZT_OK;
    memmove(reader->buffer, reader->buffer + reader->position, held);
    reader->position = 0;
    reader->length = held;
    while (reader->length < wanted) {
        size_t got = 0;
        enum zt_status status =
            zt_decoder_read(reader->decoder, reader->buffer + reader->length,
                            BUFFER_SIZE - reader->length, &got, reader->content->error);

        if (status != ZT_OK)
            return with_names(reader->content, reader->component, status);
        if (got == 0)
            break;
        reader->length += got;
        assert(reader->length <= BUFFER_SIZE);
    }
    return ZT_OK;
}

enum zt_status zt_content_reader_bytes(struct zt_content_reader *reader, void *bytes, size_t length,
                                       bool *out_got)
{
    enum zt_status status;

    assert(length <= ZT_CONTENT_RECORD_MAX);
    status = fill(reader, length);
    if (status != ZT_OK)
        return status;
    *out_got = reader->length - reader->position >= length;
    if (*out_got) {
        memcpy(bytes, reader->buffer + reader->position, length);
        reader->position += length;
    }
    return ZT_OK;
}

enum zt_status zt_content_reader_index(struct zt_content_reader *reader, uint64_t *out_index,
                                       bool *out_got)
{
    uint8_t bytes[8] = {0};
    uint64_t value;
    enum zt_status status = zt_content_reader_bytes(reader, bytes, reader->width, out_got);

    assert(reader->width <= sizeof(bytes));
    if (status != ZT_OK || !*out_got)
        return status;
    value = zt_load_le64(bytes);
    if (reader->is_signed && bytes[reader->width - 1] & 0x80)
        return zt_content_fail(reader->content, reader->component, "an index is negative");
    *out_index = value;
    return ZT_OK;
}

enum zt_status zt_content_reader_run(struct zt_content_reader *reader, const uint8_t **out_bytes,
                                     size_t *out_length)
{
    enum zt_status status = fill(reader, 1);

    if (status != ZT_OK)
        return status;
    *out_bytes = reader->buffer + reader->position;
    *out_length = reader->length - reader->position;
    reader->position = reader->length;
    return ZT_OK;
}

enum zt_status zt_content_reader_drain(struct zt_content_reader *reader, uint64_t *out_bytes)
{
    const uint8_t *bytes;
    uint64_t total = 0;
    size_t length;
    enum zt_status status;

    do {
        status = zt_content_reader_run(reader, &bytes, &length);
        if (status != ZT_OK)
            return status;
        total += length;
    } while (length > 0);
    if (out_bytes != NULL)
        *out_bytes = total;
    return ZT_OK;
}

void zt_content_reader_close(struct zt_content_reader *reader)
{
    zt_decoder_close(reader->decoder);
    free(reader->buffer);
    reader->decoder = NULL;
    reader->buffer = NULL;
}
