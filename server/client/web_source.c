/* Caches blocks of one size in slots. A slot whose block is being fetched belongs to the exchange;
 * the others are reused, least recently read first. */
#include "client/web_source.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A manifest's head or tail costs one request; the whole cache takes 16 MiB. */
#define BLOCK_BYTES ((uint64_t)1 << 18)
#define SLOTS       64
#define AHEAD_MOST  24
#define NO_BLOCK    UINT64_MAX

enum slot_state { SLOT_EMPTY, SLOT_FLYING, SLOT_READY, SLOT_FAILED };

struct web_source;

struct slot {
    struct web_source *owner;
    enum slot_state state;
    uint64_t block;
    uint64_t used; /* by the source's count of reads */
    unsigned waiting;
    uint8_t *bytes;
    struct remote_exchange exchange;
    struct zt_error error;
};

struct web_source {
    struct zt_source source;
    struct client *client;
    struct web_file file;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[SLOTS];
    uint64_t reads;
    uint64_t next_block; /* of a sequential reader */
    unsigned ahead;
};

static struct web_source *cast(const struct zt_source *source)
{
    return (struct web_source *)(uintptr_t)source;
}

static uint64_t block_length(const struct web_source *web, uint64_t block)
{
    const uint64_t left = web->file.size - block * BLOCK_BYTES;

    assert(block * BLOCK_BYTES < web->file.size);
    return left < BLOCK_BYTES ? left : BLOCK_BYTES;
}

/* --- fetching a block --- */

static bool accept(struct remote_exchange *exchange)
{
    const struct slot *slot = exchange->context;

    return web_file_is_same(&slot->owner->file, &exchange->head);
}

static void done(struct remote_exchange *exchange)
{
    struct slot *slot = exchange->context;
    struct web_source *web = slot->owner;

    pthread_mutex_lock(&web->lock);
    assert(slot->state == SLOT_FLYING);
    slot->state = SLOT_READY;
    if (exchange->status != ZT_OK || exchange->head.status != 206) {
        slot->state = SLOT_FAILED;
        if (web_file_failure(&web->file, exchange, &slot->error) == ZT_UNAVAILABLE)
            slot->error.status = ZT_IO;
    }
    remote_exchange_free(exchange);
    pthread_cond_broadcast(&web->changed);
    pthread_mutex_unlock(&web->lock);
}

/* Fills in the request; the caller sends it without the lock. */
static void prepare(struct web_source *web, struct slot *slot, uint64_t block)
{
    const uint64_t length = block_length(web, block);

    assert(slot->state != SLOT_FLYING && slot->waiting == 0 && slot->bytes != NULL);
    slot->owner = web;
    slot->state = SLOT_FLYING;
    slot->block = block;
    slot->used = ++web->reads;
    web_file_prepare(web->client, &web->file, block * BLOCK_BYTES, block * BLOCK_BYTES + length - 1,
                     &slot->exchange);
    slot->exchange.into = slot->bytes;
    slot->exchange.into_length = length;
    slot->exchange.accept = accept;
    slot->exchange.done = done;
    slot->exchange.context = slot;
}

static struct slot *find(struct web_source *web, uint64_t block)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (web->slots[i].state != SLOT_EMPTY && web->slots[i].block == block)
            return &web->slots[i];
    return NULL;
}

/* The least recently used slot that is free, with memory; NULL if there is none. */
static struct slot *take_slot(struct web_source *web)
{
    struct slot *oldest = NULL;

    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &web->slots[i];

        if (slot->state != SLOT_FLYING && slot->waiting == 0 &&
            (oldest == NULL || slot->used < oldest->used))
            oldest = slot;
    }
    if (oldest != NULL && oldest->bytes == NULL)
        oldest->bytes = malloc(BLOCK_BYTES);
    return oldest != NULL && oldest->bytes != NULL ? oldest : NULL;
}

/* Returns true if a slot will become free by itself. */
static bool some_slot_is_busy(const struct web_source *web)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (web->slots[i].state == SLOT_FLYING || web->slots[i].waiting > 0)
            return true;
    return false;
}

/* Called under the lock, which it releases while it begins the request: afterwards the slot may
 * hold another block already. Returns false if there is no slot. */
static bool fetch_block(struct web_source *web, uint64_t block)
{
    struct slot *slot = take_slot(web);

    if (slot == NULL)
        return false;
    prepare(web, slot, block);
    pthread_mutex_unlock(&web->lock);
    client_begin(web->client, &slot->exchange);
    pthread_mutex_lock(&web->lock);
    return true;
}

/* Reads twice as far ahead with each block that is read in order. */
static void read_ahead(struct web_source *web, uint64_t block)
{
    const uint64_t blocks = (web->file.size + BLOCK_BYTES - 1) / BLOCK_BYTES;

    if (block + 1 == web->next_block)
        return;
    web->ahead = block == web->next_block ? web->ahead * 2 + 1 : 0;
    if (web->ahead > AHEAD_MOST)
        web->ahead = AHEAD_MOST;
    web->next_block = block + 1;
    for (uint64_t next = block + 1; next <= block + web->ahead && next < blocks; next++)
        if (find(web, next) == NULL && !fetch_block(web, next))
            return;
}

/* --- reading --- */

/* Waits, under the lock, until a block has been fetched. */
static enum zt_status obtain(struct web_source *web, uint64_t block, struct slot **out_slot,
                             struct zt_error *error)
{
    struct slot *slot;

    while ((slot = find(web, block)) == NULL)
        if (!fetch_block(web, block)) {
            if (!some_slot_is_busy(web))
                return zt_fail_memory(error, "a block of a file on a server");
            pthread_cond_wait(&web->changed, &web->lock);
        }
    slot->waiting++; /* from here on the slot keeps its block */
    read_ahead(web, block);
    while (slot->state == SLOT_FLYING)
        pthread_cond_wait(&web->changed, &web->lock);
    /* Other readers may wait for a free slot. */
    assert(slot->waiting > 0 && slot->block == block);
    if (--slot->waiting == 0)
        pthread_cond_broadcast(&web->changed);
    slot->used = ++web->reads;
    if (slot->state == SLOT_FAILED) {
        *error = slot->error;
        return error->status;
    }
    *out_slot = slot;
    return ZT_OK;
}

static enum zt_status read_at(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error)
{
    struct web_source *web = cast(source);
    enum zt_status status = ZT_OK;
    uint8_t *to = buffer;

    if (offset > web->file.size || length > web->file.size - offset)
        return zt_fail(error, ZT_IO, NULL, offset, "the file ends before");
    pthread_mutex_lock(&web->lock);
    while (length > 0 && status == ZT_OK) {
        const uint64_t block = offset / BLOCK_BYTES;
        const uint64_t from = offset - block * BLOCK_BYTES;
        const uint64_t here = block_length(web, block) - from;
        const size_t count = here < length ? (size_t)here : length;
        struct slot *slot = NULL;

        status = obtain(web, block, &slot, error);
        if (status != ZT_OK)
            break;
        assert(slot != NULL);
        memcpy(to, slot->bytes + from, count);
        to += count;
        offset += count;
        length -= count;
    }
    pthread_mutex_unlock(&web->lock);
    return status;
}

static uint64_t size(const struct zt_source *source)
{
    return cast(source)->file.size;
}

static const uint8_t *map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void close_source(struct zt_source *source)
{
    struct web_source *web = cast(source);

    pthread_mutex_lock(&web->lock);
    while (some_slot_is_busy(web))
        pthread_cond_wait(&web->changed, &web->lock);
    pthread_mutex_unlock(&web->lock);
    for (unsigned i = 0; i < SLOTS; i++)
        free(web->slots[i].bytes);
    pthread_cond_destroy(&web->changed);
    pthread_mutex_destroy(&web->lock);
    free(web);
}

static const struct zt_source_ops ops = {
    .size = size, .read_at = read_at, .map = map, .close = close_source};

const struct web_file *web_source_file(const struct zt_source *source)
{
    return source->ops == &ops ? &cast(source)->file : NULL;
}

enum zt_status web_source_open(struct client *client, const struct web_file *file,
                               struct zt_source **out_source, struct zt_error *error)
{
    struct web_source *web = calloc(1, sizeof(*web));

    assert(file->has_ranges && file->size != UINT64_MAX);
    if (web == NULL)
        return zt_fail_memory(error, "a file on a server");
    web->source.ops = &ops;
    web->client = client;
    web->file = *file;
    web->next_block = NO_BLOCK;
    pthread_mutex_init(&web->lock, NULL);
    pthread_cond_init(&web->changed, NULL);
    *out_source = &web->source;
    return ZT_OK;
}
