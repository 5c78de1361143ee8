#include "client/incoming.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* st_blocks counts in these. */
#define BLOCK_UNIT 512

/* --- reading --- */

/* Waits, under the lock, until a range has arrived. is_wanted: it is fetched next. */
static enum zt_status await(struct incoming *incoming, uint64_t offset, uint64_t length,
                            bool is_wanted, struct zt_error *error)
{
    struct piece_map *map = &incoming->map;

    assert(offset <= map->size && length <= map->size - offset);
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
        const ssize_t got = pread(incoming->file->descriptor, to, length, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return part_file_fail(error, "the part file cannot be read");
        if (got == 0)
            return zt_fail(error, ZT_IO, NULL, offset, "the part file has been truncated");
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return ZT_OK;
}

static enum zt_status read_when_here(struct incoming *incoming, uint64_t offset, void *buffer,
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

static struct incoming *incoming_of(const struct zt_source *source)
{
    return ((const struct incoming_source *)source)->incoming;
}

static enum zt_status read_wanted(struct zt_source *source, uint64_t offset, void *buffer,
                                  size_t length, struct zt_error *error)
{
    return read_when_here(incoming_of(source), offset, buffer, length, true, error);
}

static enum zt_status read_following(struct zt_source *source, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    return read_when_here(incoming_of(source), offset, buffer, length, false, error);
}

static uint64_t size(const struct zt_source *source)
{
    return incoming_of(source)->map.size;
}

static const uint8_t *map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

/* The sources end with the incoming file. */
static void close_source(struct zt_source *source)
{
    (void)source;
}

/* --- the part file --- */

static enum zt_status check_room(const struct incoming *incoming, struct zt_error *error)
{
    struct statvfs disk;
    struct stat file;
    uint64_t there;
    uint64_t room;

    if (fstat(incoming->file->descriptor, &file) != 0 ||
        fstatvfs(incoming->file->descriptor, &disk) != 0)
        return ZT_OK;
    there = (uint64_t)file.st_blocks * BLOCK_UNIT;
    room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (there < incoming->map.size && incoming->map.size - there > room)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the disk has room for %" PRIu64 " bytes, the file has %" PRIu64 " more",
                       room, incoming->map.size - there);
    return ZT_OK;
}

enum zt_status incoming_open(struct incoming *incoming, const struct part_file *file,
                             uint64_t size_bytes, struct zt_error *error)
{
    static const struct zt_source_ops wanted = {
        .size = size, .read_at = read_wanted, .map = map, .close = close_source};
    static const struct zt_source_ops following = {
        .size = size, .read_at = read_following, .map = map, .close = close_source};
    enum zt_status status;

    assert(file->descriptor >= 0);
    memset(incoming, 0, sizeof(*incoming));
    incoming->wanted = (struct incoming_source){{.ops = &wanted}, incoming};
    incoming->following = (struct incoming_source){{.ops = &following}, incoming};
    incoming->file = file;
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
    const uint64_t size_bytes = incoming->map.size;
    struct stat file;

    /* If the file was truncated, its pieces are gone. */
    if (incoming->map.here > 0 &&
        (fstat(incoming->file->descriptor, &file) != 0 || (uint64_t)file.st_size != size_bytes))
        piece_map_init(&incoming->map, size_bytes);
    if (incoming->map.here == 0 && part_file_truncate(incoming->file, 0, error) != ZT_OK)
        return error->status;
    return part_file_truncate(incoming->file, size_bytes, error);
}

void incoming_close(struct incoming *incoming)
{
    pthread_cond_destroy(&incoming->changed);
    pthread_mutex_destroy(&incoming->lock);
}

void incoming_take_piece(struct incoming *incoming, uint32_t piece, bool wakes_readers)
{
    pthread_mutex_lock(&incoming->lock);
    assert(piece < incoming->map.count && incoming->map.states[piece] == PIECE_FLYING);
    piece_map_set(&incoming->map, piece, PIECE_HERE);
    if (wakes_readers)
        pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}

void incoming_fail(struct incoming *incoming, const struct zt_error *error)
{
    assert(error->status != ZT_OK);
    pthread_mutex_lock(&incoming->lock);
    if (!incoming->has_failed)
        incoming->error = *error;
    incoming->has_failed = true;
    pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}
