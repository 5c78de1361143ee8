#include "client/incoming.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "zt/digest.h"

#define HASH_BYTES ((size_t)1 << 20)
/* st_blocks counts in these. */
#define BLOCK_UNIT 512

static struct incoming *cast(const struct zt_source *source)
{
    return (struct incoming *)(uintptr_t)source;
}

static enum zt_status fail_io(struct zt_error *error, const char *what)
{
    const int number = errno;

    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s: %s", what, strerrordesc_np(number));
    error->os_error = number;
    return ZT_IO;
}

/* --- reading --- */

/* Waits, under the lock, until a range is there. is_wanted: it is to be brought next. */
static enum zt_status await(struct incoming *incoming, uint64_t offset, uint64_t length,
                            bool is_wanted, struct zt_error *error)
{
    struct piece_map *map = &incoming->map;

    while (!incoming->has_failed && !piece_map_has(map, offset, length)) {
        for (uint32_t i = piece_map_at(map, offset);
             is_wanted && i <= piece_map_at(map, offset + length - 1); i++)
            if (map->states[i] == PIECE_MISSING) {
                incoming->cursor = i;
                break;
            }
        pthread_cond_wait(&incoming->changed, &incoming->lock);
    }
    if (!incoming->has_failed)
        return ZT_OK;
    *error = incoming->error;
    return error->status;
}

static enum zt_status read_file(const struct incoming *incoming, uint64_t offset, uint8_t *to,
                                size_t length, struct zt_error *error)
{
    while (length > 0) {
        const ssize_t got = pread(incoming->descriptor, to, length, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_io(error, "the part file cannot be read");
        if (got == 0)
            return zt_fail(error, ZT_IO, NULL, offset, "the part file has been cut short");
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return ZT_OK;
}

static enum zt_status obtain(struct incoming *incoming, uint64_t offset, void *buffer,
                             size_t length, bool is_wanted, struct zt_error *error)
{
    enum zt_status status;

    if (offset > incoming->map.size || length > incoming->map.size - offset)
        return zt_fail(error, ZT_IO, NULL, offset, "the file ends before");
    pthread_mutex_lock(&incoming->lock);
    status = await(incoming, offset, length, is_wanted, error);
    pthread_mutex_unlock(&incoming->lock);
    return status == ZT_OK ? read_file(incoming, offset, buffer, length, error) : status;
}

static enum zt_status read_at(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error)
{
    return obtain(cast(source), offset, buffer, length, true, error);
}

static uint64_t size(const struct zt_source *source)
{
    return cast(source)->map.size;
}

static const uint8_t *map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

/* The source is the incoming's, and ends with it. */
static void close_source(struct zt_source *source)
{
    (void)source;
}

enum zt_status incoming_hash(struct incoming *incoming, uint8_t out_sha256[32],
                             struct zt_error *error)
{
    uint8_t *block = malloc(HASH_BYTES);
    struct zt_hasher *hasher = NULL;
    enum zt_status status = ZT_OK;
    struct zt_digest digest;

    if (block == NULL || zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        status = zt_fail_memory(error, "a digest");
    for (uint64_t at = 0; status == ZT_OK && at < incoming->map.size;) {
        const uint64_t left = incoming->map.size - at;
        const size_t length = left < HASH_BYTES ? (size_t)left : HASH_BYTES;

        status = obtain(incoming, at, block, length, false, error);
        if (status == ZT_OK)
            zt_hasher_update(hasher, block, length);
        at += length;
    }
    if (status == ZT_OK) {
        zt_hasher_finish(hasher, &digest);
        memcpy(out_sha256, digest.bytes, 32);
    }
    zt_hasher_free(hasher);
    free(block);
    return status;
}

/* --- the part file --- */

static enum zt_status check_room(const struct incoming *incoming, struct zt_error *error)
{
    struct statvfs disk;
    struct stat file;
    uint64_t there;
    uint64_t room;

    if (fstat(incoming->descriptor, &file) != 0 || fstatvfs(incoming->descriptor, &disk) != 0)
        return ZT_OK;
    there = (uint64_t)file.st_blocks * BLOCK_UNIT;
    room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (there < incoming->map.size && incoming->map.size - there > room)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the disk has room for %" PRIu64 " bytes, the file has %" PRIu64 " more",
                       room, incoming->map.size - there);
    return ZT_OK;
}

enum zt_status incoming_open(struct incoming *incoming, int descriptor, uint64_t size_bytes,
                             struct zt_error *error)
{
    static const struct zt_source_ops ops = {
        .size = size, .read_at = read_at, .map = map, .close = close_source};
    enum zt_status status;

    memset(incoming, 0, sizeof(*incoming));
    incoming->source.ops = &ops;
    incoming->descriptor = descriptor;
    piece_map_init(&incoming->map, size_bytes);
    status = check_room(incoming, error);
    if (status != ZT_OK)
        return status;
    pthread_mutex_init(&incoming->lock, NULL);
    pthread_cond_init(&incoming->changed, NULL);
    return ZT_OK;
}

enum zt_status incoming_begin(struct incoming *incoming, struct zt_error *error)
{
    struct stat file;

    /* Pieces that a cut has taken do not count. */
    if (incoming->map.here > 0 &&
        (fstat(incoming->descriptor, &file) != 0 || (uint64_t)file.st_size != incoming->map.size))
        piece_map_init(&incoming->map, incoming->map.size);
    if (incoming->map.here == 0 && ftruncate(incoming->descriptor, 0) != 0)
        return fail_io(error, "the part file cannot be written");
    if (ftruncate(incoming->descriptor, (off_t)incoming->map.size) != 0)
        return fail_io(error, "the part file cannot be written");
    return ZT_OK;
}

void incoming_close(struct incoming *incoming)
{
    pthread_cond_destroy(&incoming->changed);
    pthread_mutex_destroy(&incoming->lock);
}

enum zt_status incoming_write(struct incoming *incoming, uint64_t offset, const void *bytes,
                              size_t length, struct zt_error *error)
{
    const uint8_t *from = bytes;

    assert(offset <= incoming->map.size && length <= incoming->map.size - offset);
    while (length > 0) {
        const ssize_t written = pwrite(incoming->descriptor, from, length, (off_t)offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail_io(error, "the part file cannot be written");
        from += written;
        offset += (uint64_t)written;
        length -= (size_t)written;
    }
    return ZT_OK;
}

void incoming_take_piece(struct incoming *incoming, uint32_t piece, bool is_told)
{
    pthread_mutex_lock(&incoming->lock);
    piece_map_set(&incoming->map, piece, PIECE_HERE);
    if (is_told)
        pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}

void incoming_fail(struct incoming *incoming, const struct zt_error *error)
{
    pthread_mutex_lock(&incoming->lock);
    if (!incoming->has_failed)
        incoming->error = *error;
    incoming->has_failed = true;
    pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}
