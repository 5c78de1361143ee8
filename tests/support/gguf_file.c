/* GGUF files for tests. */
#include "gguf_file.h"

#include <string.h>

#include "support.h"

#define TENSOR_COUNT_AT 8
#define PAIR_COUNT_AT   16

void gguf_put(struct gguf_file *file, uint64_t value, unsigned length_bytes)
{
    for (unsigned i = 0; i < length_bytes; i++) {
        uint8_t byte = (uint8_t)(value >> 8 * i);

        zt_buffer_append(&file->bytes, &byte, 1);
    }
}

void gguf_begin(struct gguf_file *file)
{
    zt_buffer_append(&file->bytes, "GGUF", 4);
    gguf_put(file, 3, 4);
    gguf_put(file, 0, 8);
    gguf_put(file, 0, 8);
}

void gguf_put_string(struct gguf_file *file, const char *text)
{
    gguf_put(file, strlen(text), 8);
    zt_buffer_append(&file->bytes, text, strlen(text));
}

void gguf_put_key(struct gguf_file *file, const char *key, uint32_t type)
{
    gguf_put_string(file, key);
    gguf_put(file, type, 4);
    file->pairs++;
}

void gguf_put_tensor(struct gguf_file *file, const char *name, unsigned rank, const uint64_t *dims,
                     uint32_t type)
{
    gguf_put_string(file, name);
    gguf_put(file, rank, 4);
    for (unsigned i = 0; i < rank; i++)
        gguf_put(file, dims[i], 8);
    gguf_put(file, type, 4);
    file->tensors++;
}

void gguf_put_offset(struct gguf_file *file, uint64_t offset)
{
    gguf_put(file, offset, 8);
}

void gguf_finish(struct gguf_file *file, unsigned alignment, size_t data_length,
                 struct container *container)
{
    container_free(container);
    container->manifest_length = file->bytes.length;
    container->mark = ZT_NO_OFFSET;
    while (data_length > 0 && file->bytes.length % alignment != 0)
        gguf_put(file, 0, 1);
    for (size_t i = 0; i < data_length; i++)
        gguf_put(file, i % 251, 1);
    assert_false(file->bytes.failed);
    for (unsigned i = 0; i < 8; i++) {
        file->bytes.bytes[TENSOR_COUNT_AT + i] = (uint8_t)(file->tensors >> 8 * i);
        file->bytes.bytes[PAIR_COUNT_AT + i] = (uint8_t)(file->pairs >> 8 * i);
    }
    container->bytes = file->bytes.bytes;
    container->length = file->bytes.length;
    memset(file, 0, sizeof(*file));
}

void gguf_assert_refused(struct gguf_file *file, size_t data_length, const char *rule,
                         uint64_t offset)
{
    struct container container = {0};

    gguf_finish(file, 32, data_length, &container);
    container_assert_refused(&container, rule, offset);
    container_free(&container);
}
