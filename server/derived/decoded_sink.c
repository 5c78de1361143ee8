/* Collects decoded bytes. Memory grows with what is decoded, never with a declared length. */
#include "derived/decoded_sink.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/state_file.h"
#include "zt/model.h"

/* Longer results go to a file: it is worth a descriptor, and sendfile works on it. */
#define MEMORY_MAX ((size_t)4 << 20)
/* Blocks are asked for in such steps: finding them page by page takes nearly half of a write. */
#define RESERVED_STEP ((uint64_t)16 << 20)

void decoded_sink_init(struct decoded_sink *sink, const struct config *config,
                       uint64_t declared_length)
{
    *sink = (struct decoded_sink){.config = config, .declared_length = declared_length, .file = -1};
}

void decoded_sink_free(struct decoded_sink *sink)
{
    free(sink->bytes);
    if (sink->file >= 0)
        close(sink->file);
    decoded_sink_init(sink, sink->config, sink->declared_length);
}

static enum zt_status fail_file(struct zt_error *error, const char *what)
{
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s decoded bytes: %s", what,
                   strerrordesc_np(errno));
}

/* Opens a file in the state folder, else in /var/tmp, else in memory that can be swapped out. */
static int open_unnamed(const struct config *config)
{
    int folder = state_folder_open(config);
    int file = -1;

    if (folder >= 0) {
        file = openat(folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC | O_EXCL, 0600);
        close(folder);
    }
    if (file < 0)
        file = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC | O_EXCL, 0600);
    if (file < 0)
        file = memfd_create("decoded", MFD_CLOEXEC);
    return file;
}

/* A file system that cannot reserve blocks finds them when they are written. */
static void reserve_blocks(struct decoded_sink *sink, uint64_t end)
{
    while (sink->reserved < end) {
        (void)fallocate(sink->file, FALLOC_FL_KEEP_SIZE, (off_t)sink->reserved,
                        (off_t)RESERVED_STEP);
        sink->reserved += RESERVED_STEP;
    }
}

/* Appends bytes to the file; end is its length then. */
static enum zt_status write_whole(struct decoded_sink *sink, uint64_t end, const uint8_t *bytes,
                                  size_t length, struct zt_error *error)
{
    reserve_blocks(sink, end);
    while (length > 0) {
        ssize_t wrote = write(sink->file, bytes, length);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return fail_file(error, "cannot keep");
        bytes += wrote;
        length -= (size_t)wrote;
    }
    return ZT_OK;
}

static enum zt_status move_to_file(struct decoded_sink *sink, struct zt_error *error)
{
    enum zt_status status;

    sink->file = open_unnamed(sink->config);
    if (sink->file < 0)
        return fail_file(error, "no file for");
    status = write_whole(sink, sink->length, sink->bytes, (size_t)sink->length, error);
    free(sink->bytes);
    sink->bytes = NULL;
    sink->capacity = 0;
    return status;
}

static enum zt_status add_to_memory(struct decoded_sink *sink, const void *bytes, size_t length,
                                    struct zt_error *error)
{
    size_t used = (size_t)sink->length;

    assert(used <= sink->capacity && used + length <= MEMORY_MAX);
    if (zt_array_reserve(&sink->bytes, &sink->capacity, used + length, 1, MEMORY_MAX) != ZT_OK)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for decoded bytes");
    memcpy(sink->bytes + used, bytes, length);
    return ZT_OK;
}

static bool is_declared_long(const struct decoded_sink *sink)
{
    return sink->declared_length != ZT_LENGTH_UNKNOWN && sink->declared_length > MEMORY_MAX;
}

enum zt_status decoded_sink_add(struct decoded_sink *sink, const void *bytes, size_t length,
                                struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    if (length == 0)
        return ZT_OK;
    if (sink->file < 0 && (sink->length + length > MEMORY_MAX || is_declared_long(sink)))
        status = move_to_file(sink, error);
    if (status == ZT_OK)
        status = sink->file >= 0 ? write_whole(sink, sink->length + length, bytes, length, error)
                                 : add_to_memory(sink, bytes, length, error);
    if (status == ZT_OK)
        sink->length += length;
    return status;
}

enum zt_status decoded_sink_finish(struct decoded_sink *sink, struct zt_source **out_source,
                                   uint8_t **out_bytes, struct zt_error *error)
{
    enum zt_status status;

    if (sink->file >= 0) {
        /* Frees the blocks behind the last byte. */
        if (sink->reserved > sink->length && ftruncate(sink->file, (off_t)sink->length) != 0)
            return fail_file(error, "cannot keep");
        status = zt_source_from_descriptor(sink->file, out_source, error);
    } else {
        zt_array_trim(&sink->bytes, &sink->capacity, (size_t)sink->length, 1);
        status = zt_source_from_memory(sink->bytes, (size_t)sink->length, out_source, error);
    }
    if (status != ZT_OK)
        return status;
    *out_bytes = sink->bytes;
    decoded_sink_init(sink, sink->config, sink->declared_length);
    return ZT_OK;
}
