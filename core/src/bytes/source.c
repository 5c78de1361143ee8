/* Sources: the calls through a source's functions, the bounds check that all kinds of source share,
 * and the two basic kinds, memory and regular files.
 *
 * A file's size is read when it is opened. If the file is truncated later, reads past its end fail
 * with ZT_IO; if it grows, the added bytes are not visible. */
#include "zt/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes/source_range.h"

uint64_t zt_source_size(const struct zt_source *source)
{
    return source->ops->size(source);
}

enum zt_status zt_source_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                 size_t length, struct zt_error *error)
{
    struct zt_error unused;

    assert(buffer != NULL || length == 0);
    return source->ops->read_at(source, offset, buffer, length, error != NULL ? error : &unused);
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

uint32_t zt_source_unit(const struct zt_source *source)
{
    return source->ops->unit != NULL ? source->ops->unit(source) : 0;
}

bool zt_source_is_remote(const struct zt_source *source)
{
    return source->ops->pin != NULL;
}

enum zt_status zt_source_pin(struct zt_source *source, uint64_t offset, uint64_t length, bool wait,
                             struct zt_pin *out_pin, struct zt_error *error)
{
    assert(zt_source_is_remote(source) && length > 0);
    return source->ops->pin(source, offset, length, wait, out_pin, error);
}

void zt_pin_release(struct zt_pin *pin)
{
    if (pin->release != NULL)
        pin->release(pin);
    *pin = (struct zt_pin){0};
}

void zt_source_advise(struct zt_source *source, uint64_t offset, uint64_t length)
{
    if (source->ops->advise != NULL && length > 0)
        source->ops->advise(source, offset, length);
}

bool zt_source_can_await(const struct zt_source *source)
{
    assert((source->ops->await == NULL) == (source->ops->take_arrived == NULL));
    return source->ops->await != NULL;
}

void zt_source_await(struct zt_source *source, uint64_t offset, uint64_t length, uint64_t least,
                     struct zt_source_waiter *waiter)
{
    assert(zt_source_can_await(source) && waiter->wake != NULL);
    assert(length > 0 && least > 0 && least <= length);
    zt_error_clear(&waiter->error);
    /* A source that passes the wait on to another is replaced by that. */
    waiter->source = source;
    source->ops->await(source, offset, length, least, waiter);
}

bool zt_source_forget(struct zt_source_waiter *waiter)
{
    struct zt_source *source = waiter->source;

    assert(source == NULL || waiter->wake != NULL);
    return source != NULL && source->ops->forget != NULL && source->ops->forget(source, waiter);
}

size_t zt_source_take_arrived(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length)
{
    assert(zt_source_can_await(source) && length > 0);
    return source->ops->take_arrived(source, offset, buffer, length);
}

uint64_t zt_source_pass(struct zt_source *source, uint64_t offset, uint64_t length)
{
    uint64_t passed =
        source->ops->pass != NULL ? source->ops->pass(source, offset, length) : length;

    assert(passed <= length);
    return passed;
}

bool zt_source_invalidate(struct zt_source *source, uint64_t offset, uint64_t length)
{
    if (source->ops->invalidate == NULL)
        return false;
    source->ops->invalidate(source, offset, length);
    return true;
}

/* On its way: enough for a store that answers after 100 ms to fill 5 Gbit/s. */
#define AHEAD_BYTES ((uint64_t)64 << 20)
/* Fetched pieces end at multiples of this. */
#define PIECE_BYTES ((uint64_t)8 << 20)

void zt_source_read_on(struct zt_source *source, uint64_t at, uint64_t left, uint64_t most)
{
    uint64_t end = at + (most > 0 && most < AHEAD_BYTES ? most : AHEAD_BYTES);

    if (source->ops->advise == NULL)
        return;
    /* Otherwise each call would add a small piece. */
    if (end - end % PIECE_BYTES > at)
        end -= end % PIECE_BYTES;
    assert(end > at);
    zt_source_advise(source, at, left < end - at ? left : end - at);
}

enum zt_status zt_source_check_range(uint64_t size, uint64_t offset, uint64_t length,
                                     struct zt_error *error)
{
    if (offset > size || length > size - offset)
        return zt_fail(error, ZT_IO, NULL, offset,
                       "%" PRIu64 " bytes at %" PRIu64 " are requested, but the source has %" PRIu64
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
    static const struct zt_source_ops ops = {
        .size = memory_size, .read_at = memory_read_at, .map = memory_map, .close = memory_close};
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

/* --- files: read with pread, mapped at the first call of map --- */

struct file_source {
    struct zt_source base;
    int descriptor;
    uint64_t size_bytes;
    /* Set once, by the thread that maps first. */
    _Atomic(void *) mapping;
};

static enum zt_status fail_errno(struct zt_error *error, int os_error, uint64_t offset,
                                 const char *what)
{
    zt_fail(error, ZT_IO, NULL, offset, "%s: %s", what, strerrordesc_np(os_error));
    if (error != NULL)
        error->os_error = os_error;
    return ZT_IO;
}

/* No system call failed, so there is no errno: os_error is set to EINVAL. */
static enum zt_status fail_kind(struct zt_error *error)
{
    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "not a regular file");
    if (error != NULL)
        error->os_error = EINVAL;
    return ZT_IO;
}

static uint64_t file_size(const struct zt_source *source)
{
    return ((const struct file_source *)source)->size_bytes;
}

static enum zt_status fail_short(const struct file_source *file, uint64_t offset,
                                 struct zt_error *error)
{
    struct stat metadata;
    uint64_t size = offset;

    if (fstat(file->descriptor, &metadata) == 0 && (uint64_t)metadata.st_size < size)
        size = (uint64_t)metadata.st_size;
    return zt_fail(error, ZT_IO, NULL, size, "the file was truncated to %" PRIu64 " bytes", size);
}

static enum zt_status file_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                   size_t length, struct zt_error *error)
{
    const struct file_source *file = (const struct file_source *)source;
    uint8_t *to = buffer;
    enum zt_status status = zt_source_check_range(file->size_bytes, offset, length, error);

    if (status != ZT_OK)
        return status;
    while (length > 0) {
        ssize_t got = pread(file->descriptor, to, length, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(error, errno, offset, "cannot read");
        if (got == 0)
            return fail_short(file, offset, error);
        assert((size_t)got <= length);
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return ZT_OK;
}

static const uint8_t *file_map(struct zt_source *source)
{
    struct file_source *file = (struct file_source *)source;
    void *mapping = atomic_load_explicit(&file->mapping, memory_order_acquire);
    void *mine;

    if (mapping != NULL || file->size_bytes == 0 || file->size_bytes > SIZE_MAX)
        return mapping;
    mine = mmap(NULL, (size_t)file->size_bytes, PROT_READ, MAP_SHARED, file->descriptor, 0);
    if (mine == MAP_FAILED)
        return NULL;
    if (atomic_compare_exchange_strong(&file->mapping, &mapping, mine))
        return mine;
    /* Another thread was first; close will unmap its mapping. */
    assert(mapping != NULL);
    munmap(mine, (size_t)file->size_bytes);
    return mapping;
}

static void file_close(struct zt_source *source)
{
    struct file_source *file = (struct file_source *)source;
    void *mapping = atomic_load(&file->mapping);

    if (mapping != NULL)
        munmap(mapping, (size_t)file->size_bytes);
    close(file->descriptor);
    free(file);
}

static int file_descriptor(const struct zt_source *source)
{
    return ((const struct file_source *)source)->descriptor;
}

static const struct zt_source_ops file_ops = {.size = file_size,
                                              .read_at = file_read_at,
                                              .map = file_map,
                                              .close = file_close,
                                              .descriptor = file_descriptor};

enum zt_status zt_source_from_descriptor(int descriptor, struct zt_source **out_source,
                                         struct zt_error *error)
{
    struct stat metadata;
    struct file_source *file;

    if (fstat(descriptor, &metadata) != 0)
        return fail_errno(error, errno, ZT_NO_OFFSET, "cannot stat");
    if (S_ISDIR(metadata.st_mode))
        return fail_errno(error, EISDIR, ZT_NO_OFFSET, "not a regular file");
    if (!S_ISREG(metadata.st_mode))
        return fail_kind(error);
    file = malloc(sizeof(*file));
    if (file == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a source");
    file->base.ops = &file_ops;
    file->descriptor = descriptor;
    file->size_bytes = (uint64_t)metadata.st_size;
    atomic_init(&file->mapping, NULL);
    *out_source = &file->base;
    return ZT_OK;
}

enum zt_status zt_source_open_file(const char *path, struct zt_source **out_source,
                                   struct zt_error *error)
{
    enum zt_status status;
    int descriptor;

    /* With O_NONBLOCK, opening a FIFO does not wait for a writer. Regular files are not
     * affected. */
    do {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0)
        return fail_errno(error, errno, ZT_NO_OFFSET, "cannot open");
    status = zt_source_from_descriptor(descriptor, out_source, error);
    if (status != ZT_OK)
        close(descriptor);
    return status;
}

int zt_source_descriptor(const struct zt_source *source)
{
    return source->ops->descriptor != NULL ? source->ops->descriptor(source) : -1;
}
