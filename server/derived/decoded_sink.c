/* Collects decoded bytes. Memory grows with the decoded bytes and never with a declared length. */
#include "derived/decoded_sink.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/state_place.h"
#include "zt/model.h"

/* Longer results go to a file: they are worth a descriptor, and can be sent with sendfile. */
#define MEMORY_MAX ((size_t)4 << 20)
/* Blocks are reserved in steps of this size: allocating them page by page takes nearly half the
 * time of a write. */
#define RESERVED_STEP ((uint64_t)16 << 20)

void decoded_sink_init(struct decoded_sink *sink, const struct config *config,
                       uint64_t declared_length)
{
    *sink = (struct decoded_sink){.config = config, .declared_length = declared_length, .file = -1};
}

void decoded_sink_free(struct decoded_sink *sink)
{
    free(sink->bytes);
    if (sink->file >= 0) {
        disk_claim_end(&sink->space);
        close(sink->file);
    }
    decoded_sink_init(sink, sink->config, sink->declared_length);
}

static enum zt_status fail_file(struct zt_error *error, const char *what)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return disk_space_fail(error);
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

static bool is_declared(const struct decoded_sink *sink)
{
    return sink->declared_length != ZT_LENGTH_UNKNOWN;
}

static uint64_t reserve_of(const struct decoded_sink *sink)
{
    const int64_t stated = config_number(&sink->config->upload.reserve_bytes);

    return disk_space_reserve(
        sink->file, stated == CONFIG_RESERVE_AUTOMATIC ? DISK_RESERVE_AUTOMATIC : (uint64_t)stated);
}

/* Finds the next step to reserve. If the length is unknown, claims space for a full step, or only
 * for the needed bytes if the step does not fit. A known length is claimed already, and the step
 * does not exceed it. */
static enum zt_status claim_step(struct decoded_sink *sink, uint64_t end, uint64_t *out_step,
                                 struct zt_error *error)
{
    const uint64_t at = sink->reserved;
    const uint64_t reserve = reserve_of(sink);
    const uint64_t left =
        is_declared(sink) && sink->declared_length > at ? sink->declared_length - at : UINT64_MAX;

    *out_step = left < RESERVED_STEP ? left : RESERVED_STEP;
    if (disk_claim_cover(&sink->space, at, *out_step, reserve, NULL) == ZT_OK)
        return ZT_OK;
    *out_step = end - at;
    return disk_claim_cover(&sink->space, at, *out_step, reserve, error);
}

/* Reserves blocks up to end. If the file system cannot reserve blocks, it allocates them when they
 * are written. */
static enum zt_status reserve_blocks(struct decoded_sink *sink, uint64_t end,
                                     struct zt_error *error)
{
    while (sink->reserved < end) {
        uint64_t step;

        if (claim_step(sink, end, &step, error) != ZT_OK)
            return ZT_LIMIT;
        (void)fallocate(sink->file, FALLOC_FL_KEEP_SIZE, (off_t)sink->reserved, (off_t)step);
        disk_claim_spend(&sink->space, sink->reserved, step);
        sink->reserved += step;
    }
    return ZT_OK;
}

/* Appends bytes to the file; end is the resulting length. */
static enum zt_status write_whole(struct decoded_sink *sink, uint64_t end, const uint8_t *bytes,
                                  size_t length, struct zt_error *error)
{
    if (reserve_blocks(sink, end, error) != ZT_OK)
        return ZT_LIMIT;
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
    enum zt_status status = ZT_OK;

    sink->file = open_unnamed(sink->config);
    if (sink->file < 0)
        return fail_file(error, "no file for");
    disk_claim_init(&sink->space, sink->file, 0);
    if (is_declared(sink))
        status = disk_claim_ahead(&sink->space, sink->declared_length, reserve_of(sink), error);
    if (status == ZT_OK)
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
    return is_declared(sink) && sink->declared_length > MEMORY_MAX;
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
        disk_claim_end(&sink->space);
        /* Frees the blocks after the last byte. */
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
