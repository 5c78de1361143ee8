/* Safetensors files for tests. */
#include "safetensors_file.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

#define LENGTH_BYTES 8

void safetensors_make(struct container *container, const char *header, size_t data_length)
{
    const char *mark = strchr(header, '^');
    size_t header_length = strlen(header) - (mark != NULL);
    uint8_t *to;

    container_free(container);
    container->length = LENGTH_BYTES + header_length + data_length;
    container->bytes = malloc(container->length);
    assert_non_null(container->bytes);
    container->manifest_offset = LENGTH_BYTES;
    container->manifest_length = header_length;
    container->mark = mark != NULL ? LENGTH_BYTES + (uint64_t)(mark - header) : ZT_NO_OFFSET;
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        container->bytes[i] = (uint8_t)((uint64_t)header_length >> 8 * i);
    to = container->bytes + LENGTH_BYTES;
    for (const char *from = header; *from != '\0'; from++)
        if (from != mark)
            *to++ = *from == '\'' ? '"' : (uint8_t)*from;
    for (size_t i = 0; i < data_length; i++)
        *to++ = (uint8_t)(i % 251);
}

void safetensors_refused(const char *header, size_t data_length, const char *rule)
{
    struct container container = {0};

    safetensors_make(&container, header, data_length);
    container_assert_refused(&container, rule, container.mark);
    container_free(&container);
}
