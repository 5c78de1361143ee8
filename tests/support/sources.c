/* Sources for tests. */
#include "sources.h"

#include <string.h>

/* Copies what a read of length bytes at offset has in common with count bytes at place. */
static void overlay(void *buffer, uint64_t offset, size_t length, uint64_t place, const void *bytes,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (place + i >= offset && place + i - offset < length)
            ((uint8_t *)buffer)[place + i - offset] = ((const uint8_t *)bytes)[i];
}

static uint64_t sparse_size(const struct zt_source *source)
{
    return ((const struct sparse_source *)source)->size;
}

static enum zt_status sparse_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    struct sparse_source *sparse = (struct sparse_source *)source;

    (void)error;
    sparse->read_bytes += length;
    memset(buffer, 0, length);
    overlay(buffer, offset, length, 0, sparse->head, sparse->head_length);
    overlay(buffer, offset, length, sparse->size - sparse->tail_length, sparse->tail,
            sparse->tail_length);
    return ZT_OK;
}

const struct zt_source_ops sparse_source_ops = {.size = sparse_size, .read_at = sparse_read_at};

static uint64_t counting_size(const struct zt_source *source)
{
    return zt_source_size(((const struct counting_source *)source)->inner);
}

static enum zt_status counting_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                       size_t length, struct zt_error *error)
{
    struct counting_source *counting = (struct counting_source *)source;

    counting->reads++;
    counting->bytes += length;
    if (counting->failing_from > 0 && offset + length > counting->failing_from)
        return zt_fail(error, ZT_IO, NULL, offset, "no more");
    return zt_source_read_at(counting->inner, offset, buffer, length, error);
}

const uint8_t *source_without_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void close_nothing(struct zt_source *source)
{
    (void)source;
}

const struct zt_source_ops counting_source_ops = {.size = counting_size,
                                                  .read_at = counting_read_at,
                                                  .map = source_without_map,
                                                  .close = close_nothing};
