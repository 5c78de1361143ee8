/* Copies bytes of an upload or of a stored file into an upload: inside the file system if possible
 * (copy_file_range, which shares blocks on some file systems), otherwise through memory. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/store_local.h"
#include "zt/shards.h"

/* Bytes per call. Space is claimed before each call. */
#define STEP_BYTES   ((uint64_t)16 << 20)
#define BUFFER_BYTES ((size_t)256 << 10)

struct copy {
    int from;                 /* -1: none */
    struct zt_source *source; /* NULL: from */
    struct staged_file *to;
    uint64_t from_offset;
    uint64_t to_offset;
    uint64_t left;
};

static void advance(struct copy *copy, uint64_t length)
{
    assert(length <= copy->left);
    copy->from_offset += length;
    copy->to_offset += length;
    copy->left -= length;
}

static enum zt_status fail_short(const struct copy *copy, struct zt_error *error)
{
    return zt_fail(error, ZT_IO, NULL, copy->from_offset, "cannot copy: the file is too short");
}

/* Errors of file systems and sandboxes that do not support copying. */
static bool is_refused(int os_error)
{
    return os_error == EXDEV || os_error == EINVAL || os_error == ENOSYS ||
           os_error == EOPNOTSUPP || os_error == EPERM || os_error == ETXTBSY;
}

/* *out_refused: the rest must be copied through memory. */
static enum zt_status copy_inside(struct copy *copy, bool *out_refused, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    while (copy->left > 0 && status == ZT_OK) {
        off_t from = (off_t)copy->from_offset;
        off_t to = (off_t)copy->to_offset;
        size_t most = (size_t)(copy->left < STEP_BYTES ? copy->left : STEP_BYTES);
        ssize_t done;

        status = staged_file_cover(copy->to, copy->to_offset, most, error);
        if (status != ZT_OK)
            break;
        done = copy_file_range(copy->from, &from, copy->to->descriptor, &to, most, 0);
        if (done < 0 && errno == EINTR)
            continue;
        *out_refused = done < 0 && is_refused(errno);
        if (done < 0)
            return *out_refused ? ZT_OK : store_fail_errno(error, errno, "cannot copy");
        if (done == 0)
            return fail_short(copy, error);
        disk_claim_spend(&copy->to->space, copy->to_offset, (uint64_t)done);
        advance(copy, (uint64_t)done);
    }
    return status;
}

/* Reads at most most bytes, and at least one. */
static enum zt_status read_some(const struct copy *copy, void *buffer, size_t most,
                                size_t *out_length, struct zt_error *error)
{
    ssize_t done;

    *out_length = most;
    if (copy->source != NULL)
        return zt_source_read_at(copy->source, copy->from_offset, buffer, most, error);
    do {
        done = pread(copy->from, buffer, most, (off_t)copy->from_offset);
    } while (done < 0 && errno == EINTR);
    *out_length = (size_t)(done > 0 ? done : 0);
    if (done == 0)
        return fail_short(copy, error);
    return done > 0 ? ZT_OK : store_fail_errno(error, errno, "cannot copy");
}

static enum zt_status copy_through_memory(struct copy *copy, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    char *buffer = malloc(BUFFER_BYTES);

    assert(copy->left > 0);
    if (buffer == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to copy with");
    while (copy->left > 0 && status == ZT_OK) {
        size_t most = copy->left < BUFFER_BYTES ? (size_t)copy->left : BUFFER_BYTES;
        size_t length;

        status = read_some(copy, buffer, most, &length, error);
        if (status == ZT_OK)
            status = staged_file_write_at(copy->to, copy->to_offset, buffer, length, error);
        if (status == ZT_OK)
            advance(copy, length);
    }
    free(buffer);
    return status;
}

static enum zt_status run(struct copy *copy, struct zt_error *error)
{
    bool refused = copy->from < 0;
    enum zt_status status = ZT_OK;

    if (copy->left > INT64_MAX || copy->from_offset > INT64_MAX - copy->left ||
        copy->to_offset > INT64_MAX - copy->left)
        return zt_fail(error, ZT_LIMIT, NULL, copy->to_offset, "past the end of any file");
    if (!refused)
        status = copy_inside(copy, &refused, error);
    return status == ZT_OK && refused && copy->left > 0 ? copy_through_memory(copy, error) : status;
}

enum zt_status staged_file_copy(struct staged_file *from, uint64_t from_offset,
                                struct staged_file *to, uint64_t to_offset, uint64_t length,
                                struct zt_error *error)
{
    struct copy copy = {from->descriptor, NULL, to, from_offset, to_offset, length};

    assert(from != to);
    return run(&copy, error);
}

enum zt_status staged_file_copy_source(struct zt_source *source, uint64_t offset,
                                       struct staged_file *to, uint64_t to_offset, uint64_t length,
                                       struct zt_error *error)
{
    struct copy copy = {zt_source_descriptor(source), source, to, offset, to_offset, length};

    return run(&copy, error);
}

enum zt_status staged_file_digest(struct staged_file *file, enum zt_digest_algorithm algorithm,
                                  const struct zt_progress *progress, struct zt_digest *out_digest,
                                  struct zt_error *error)
{
    struct zt_source *source;
    enum zt_status status = staged_file_read_back(file, &source, error);

    assert(file->descriptor >= 0);
    return status == ZT_OK ? zt_source_digest(source, algorithm, progress, out_digest, error)
                           : status;
}
