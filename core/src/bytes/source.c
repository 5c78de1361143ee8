/* Sources, seen from outside: the four functions, and the error that every kind of source gives
 * alike.
 *
 * The kinds themselves are in source_file.c and source_memory.c. */
#include <inttypes.h>

#include "bytes/source_range.h"
#include "zt/source.h"

uint64_t zt_source_size(const struct zt_source *source)
{
    return source->ops->size(source);
}

enum zt_status zt_source_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                 size_t length, struct zt_error *error)
{
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
