/* Sources: the calls through a source's functions, the bounds check that all kinds of source share,
 * and sources over memory. Files are in source_file.c. */
#include "zt/source.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/source_range.h"

uint64_t zt_source_size(const struct zt_source *source)
{
    return source->ops->size(source);
}

enum zt_status zt_source_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                 size_t length, struct zt_error *error)
{
    assert(buffer != NULL || length == 0);
    return source->ops->read_at(source, offset, buffer, length, error);
}

const uint8_t *zt_source_map(struct zt_source *source)
{
    return source->ops->map(source);
}

void zt_source_close(struct zt_source *source)
{
    if (source != NULL)
        source->ops->close(source);
}

enum zt_status zt_source_check_range(uint64_t size, uint64_t offset, uint64_t length,
                                     struct zt_error *error)
{
    if (offset > size || length > size - offset)
        return zt_fail(error, ZT_IO, NULL, offset,
                       "%" PRIu64 " bytes at %" PRIu64 " are wanted, the source has %" PRIu64
                       " bytes",
                       length, offset, size);
    return ZT_OK;
}

/* --- memory --- */

struct memory_source {
    struct zt_source base;
    const uint8_t *bytes;
    size_t length;
};

static const struct memory_source *as_memory(const struct zt_source *source)
{
    return (const struct memory_source *)source;
}

static uint64_t memory_size(const struct zt_source *source)
{
    return as_memory(source)->length;
}

static enum zt_status memory_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    const struct memory_source *memory = as_memory(source);
    enum zt_status status = zt_source_check_range(memory->length, offset, length, error);

    if (status != ZT_OK)
        return status;
    if (length > 0)
        memcpy(buffer, memory->bytes + offset, length);
    return ZT_OK;
}

static const uint8_t *memory_map(struct zt_source *source)
{
    return as_memory(source)->bytes;
}

static void memory_close(struct zt_source *source)
{
    free(source);
}

enum zt_status zt_source_from_memory(const void *bytes, size_t length,
                                     struct zt_source **out_source, struct zt_error *error)
{
    static const struct zt_source_ops ops = {memory_size, memory_read_at, memory_map, memory_close};
    struct memory_source *memory;

    assert(bytes != NULL || length == 0);
    memory = malloc(sizeof(*memory));
    if (memory == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a source");
    memory->base.ops = &ops;
    memory->bytes = bytes;
    memory->length = length;
    *out_source = &memory->base;
    return ZT_OK;
}
