/* For tests of the block cache: a store of made-up bytes that fetches on threads of its own, slowly
 * or wrongly as told, and a folder for the cache. */
#ifndef CACHE_WORLD_H
#define CACHE_WORLD_H

#include "support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/metrics.h"
#include "cache/cache.h"
#include "cache_inside.h"

#define MIB ((uint64_t)1 << 20)

/* The byte at a position of a version. */
static inline uint64_t world_word(uint64_t version, uint64_t index)
{
    uint64_t word =
        (index + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ version * UINT64_C(0xD6E8FEB86659FD93);

    word ^= word >> 32;
    word *= UINT64_C(0xD6E8FEB86659FD93);
    return word ^ word >> 29;
}

static inline void world_fill(uint64_t version, uint64_t offset, uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length;) {
        uint64_t at = offset + i;
        uint64_t word = world_word(version, at / 8);
        size_t skip = (size_t)(at % 8);
        size_t count = 8 - skip < length - i ? 8 - skip : length - i;

        memcpy(bytes + i, (const uint8_t *)&word + skip, count);
        i += count;
    }
}

static inline bool world_is(uint64_t version, uint64_t offset, const uint8_t *bytes, size_t length)
{
    uint8_t expected[4096];

    for (size_t i = 0; i < length; i += sizeof(expected)) {
        size_t count = length - i < sizeof(expected) ? length - i : sizeof(expected);

        world_fill(version, offset + i, expected, count);
        if (memcmp(expected, bytes + i, count) != 0)
            return false;
    }
    return true;
}

#define WORLD_THREADS 3
#define WORLD_SOURCES 8

struct world_origin {
    struct cache_origin base;
    uint64_t version;
};

struct world_fetch {
    struct cache_fetch *fetch;
    struct world_origin *origin;
    struct world_fetch *next;
};

static struct {
    char folder[64];
    struct cache *cache;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct world_fetch *first;
    struct world_fetch **last;
    pthread_t threads[WORLD_THREADS];
    bool is_held; /* nothing comes while it is */
    bool is_over;
    atomic_uint delay_us;
    atomic_uint spoil; /* so many fetches bring wrong bytes */
    atomic_uint fail;  /* so many fail with fail_status */
    atomic_int fail_status;
    atomic_uint fetches;
    atomic_uint fetched_blocks;
    atomic_uint longest; /* blocks of a fetch */
    atomic_uint most_running_mib;
    atomic_uint running_mib;
    atomic_uint origins;
    struct zt_source *sources[WORLD_SOURCES]; /* open ones */
} world;

static inline void world_answer(struct world_fetch *task)
{
    struct cache_fetch *fetch = task->fetch;
    uint64_t version = task->origin->version;
    unsigned delay = atomic_load(&world.delay_us);
    enum zt_status status = ZT_OK;

    if (delay > 0)
        usleep(delay);
    if (atomic_load(&world.fail) > 0) {
        atomic_fetch_sub(&world.fail, 1);
        status = (enum zt_status)atomic_load(&world.fail_status);
    } else
        world_fill(version, fetch->offset, fetch->bytes, (size_t)fetch->length);
    if (status == ZT_OK && atomic_load(&world.spoil) > 0) {
        atomic_fetch_sub(&world.spoil, 1);
        fetch->bytes[fetch->length / 2] ^= 1;
    }
    atomic_fetch_sub(&world.running_mib, (unsigned)((fetch->length + MIB - 1) / MIB));
    free(task);
    fetch->done(fetch, status, NULL);
}

static inline void *world_thread(void *argument)
{
    (void)argument;

    pthread_mutex_lock(&world.lock);
    while (true) {
        struct world_fetch *task = world.first;

        if (task == NULL || world.is_held) {
            if (world.is_over)
                break;
            pthread_cond_wait(&world.changed, &world.lock);
            continue;
        }
        world.first = task->next;
        if (world.first == NULL)
            world.last = &world.first;
        pthread_mutex_unlock(&world.lock);
        world_answer(task);
        pthread_mutex_lock(&world.lock);
    }
    pthread_mutex_unlock(&world.lock);
    return NULL;
}

static inline void world_fetch_one(struct cache_origin *base, struct cache_fetch *fetch)
{
    struct world_origin *origin = (struct world_origin *)base;
    struct world_fetch *task = malloc(sizeof(*task));
    unsigned blocks = (unsigned)((fetch->length + MIB - 1) / MIB);
    unsigned running = atomic_fetch_add(&world.running_mib, blocks) + blocks;

    *task = (struct world_fetch){.fetch = fetch, .origin = origin};
    atomic_fetch_add(&world.fetches, 1);
    atomic_fetch_add(&world.fetched_blocks, blocks);
    if (blocks > atomic_load(&world.longest))
        atomic_store(&world.longest, blocks);
    if (running > atomic_load(&world.most_running_mib))
        atomic_store(&world.most_running_mib, running);
    pthread_mutex_lock(&world.lock);
    *world.last = task;
    world.last = &task->next;
    pthread_cond_signal(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static inline void world_close_origin(struct cache_origin *base)
{
    struct world_origin *origin = (struct world_origin *)base;

    atomic_fetch_sub(&world.origins, 1);
    free(origin);
}

static inline void world_key(uint64_t version, uint8_t key[CACHE_KEY_BYTES])
{
    uint64_t words[2] = {world_word(version, 1u << 30), version};

    memcpy(key, words, sizeof(words));
}

/* Replaces one of the open sources. */
static inline void world_put(const struct zt_source *before, struct zt_source *after)
{
    size_t i = 0;

    pthread_mutex_lock(&world.lock);
    while (i < WORLD_SOURCES && world.sources[i] != before)
        i++;
    if (i < WORLD_SOURCES)
        world.sources[i] = after;
    pthread_mutex_unlock(&world.lock);
    assert_true(i < WORLD_SOURCES);
}

static inline struct zt_source *world_open(uint64_t version, uint64_t size)
{
    struct world_origin *origin = calloc(1, sizeof(*origin));
    struct zt_source *source = NULL;
    uint8_t key[CACHE_KEY_BYTES];

    world_key(version, key);
    *origin = (struct world_origin){.base = {.fetch = world_fetch_one, .close = world_close_origin},
                                    .version = version};
    atomic_fetch_add(&world.origins, 1);
    assert_ok(cache_file_open(world.cache, key, size, &origin->base, &source, NULL));
    world_put(NULL, source);
    return source;
}

/* What a test leaves open is closed at its end. */
static inline void world_close(struct zt_source *source)
{
    world_put(source, NULL);
    zt_source_close(source);
}

/* Reads and compares. */
static inline enum zt_status world_read(struct zt_source *source, uint64_t version, uint64_t offset,
                                        size_t length)
{
    uint8_t *bytes = malloc(length + 1);
    enum zt_status status = zt_source_read_at(source, offset, bytes, length, NULL);

    if (status == ZT_OK && !world_is(version, offset, bytes, length))
        status = ZT_CORRUPT;
    free(bytes);
    return status;
}

/* Pins and releases. */
static inline enum zt_status world_pin(struct zt_source *source, uint64_t offset, uint64_t length,
                                       bool wait)
{
    struct zt_pin pin = {0};
    const enum zt_status status = zt_source_pin(source, offset, length, wait, &pin, NULL);

    if (status == ZT_OK)
        zt_pin_release(&pin);
    return status;
}

/* What a pinned range reads as through the view's descriptor. */
static inline bool world_pin_is(const struct zt_pin *pin, uint64_t version, uint64_t offset,
                                size_t length)
{
    uint8_t *bytes = malloc(length + 1);
    bool is_right =
        pread(zt_source_descriptor(pin->view), bytes, length, (off_t)offset) == (ssize_t)length &&
        world_is(version, offset, bytes, length);

    free(bytes);
    return is_right;
}

static inline void world_hold(bool is_held)
{
    pthread_mutex_lock(&world.lock);
    world.is_held = is_held;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static inline void world_start(uint64_t max_bytes)
{
    const struct cache_options options = {.folder = world.folder, .max_bytes = max_bytes};

    assert_ok(cache_open(&options, &world.cache, NULL));
}

static inline void world_stop(void)
{
    cache_close(world.cache);
    world.cache = NULL;
    assert_int_equal(atomic_load(&world.origins), 0);
}

static inline int world_begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    strcpy(world.folder, "/tmp/test_cacheXXXXXX");
    assert_non_null(mkdtemp(world.folder));
    pthread_mutex_init(&world.lock, NULL);
    pthread_cond_init(&world.changed, NULL);
    world.last = &world.first;
    for (size_t i = 0; i < WORLD_THREADS; i++)
        pthread_create(&world.threads[i], NULL, world_thread, NULL);
    world_start(0);
    return 0;
}

static inline void world_remove_folder(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", world.folder);
    assert_int_equal(system(command), 0);
}

static inline int world_end(void **state)
{
    (void)state;
    world_hold(false);
    for (size_t i = 0; i < WORLD_SOURCES; i++)
        if (world.sources[i] != NULL)
            world_close(world.sources[i]);
    if (world.cache != NULL)
        world_stop();
    pthread_mutex_lock(&world.lock);
    world.is_over = true;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
    for (size_t i = 0; i < WORLD_THREADS; i++)
        pthread_join(world.threads[i], NULL);
    pthread_cond_destroy(&world.changed);
    pthread_mutex_destroy(&world.lock);
    world_remove_folder();
    return 0;
}

/* The path of a file of a version: suffix "blocks" or "index". */
static inline void world_path(uint64_t version, const char *suffix, char out_path[160])
{
    uint8_t key[CACHE_KEY_BYTES];
    char name[2 * CACHE_KEY_BYTES + 1];

    world_key(version, key);
    for (size_t i = 0; i < CACHE_KEY_BYTES; i++)
        snprintf(name + 2 * i, 3, "%02x", key[i]);
    snprintf(out_path, 160, "%s/%s.%s", world.folder, name, suffix);
}

static inline struct cache_figures world_figures(void)
{
    return cache_figures_of(world.cache);
}

/* What a fetch brings is pinned until it is on the disk, which may be after it was read. */
static inline void world_becomes_unpinned(void)
{
    AWAIT(world_figures().pinned_bytes == 0);
}

#endif
