/* Blocks of one size are values of a memo: each is fetched once for all readers, and the least
 * recently read ones are freed. */
#include "client/web_source.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memo.h"

/* A manifest's head or tail costs one request; the whole cache takes 16 MiB. */
#define BLOCK_BYTES ((uint64_t)1 << 18)
#define AHEAD_MOST  24u
#define KEPT_MOST   (64u - AHEAD_MOST)
#define NO_BLOCK    UINT64_MAX

static const struct memo_charge one = {BLOCK_BYTES, 1};

struct web_source {
    struct zt_source source;
    struct client *client;
    struct web_file file;
    struct memo *blocks; /* by their numbers */
    pthread_mutex_t lock;
    pthread_cond_t landed; /* a block is no longer flying */
    atomic_uint flying;    /* blocks that are being fetched; falls under the lock */
    uint64_t next_block;   /* of a sequential reader; under the lock, as ahead */
    unsigned ahead;
};

struct block {
    struct web_source *web;
    uint8_t *bytes;
    struct remote_exchange exchange;
};

static struct web_source *cast(const struct zt_source *source)
{
    return (struct web_source *)(uintptr_t)source;
}

static uint64_t block_length(const struct web_source *web, uint64_t number)
{
    const uint64_t left = web->file.size - number * BLOCK_BYTES;

    assert(number * BLOCK_BYTES < web->file.size);
    return left < BLOCK_BYTES ? left : BLOCK_BYTES;
}

static void free_block(void *value)
{
    free(((struct block *)value)->bytes);
}

/* --- fetching a block --- */

static bool accept(struct remote_exchange *exchange)
{
    const struct block *block = exchange->context;

    return web_file_is_same(&block->web->file, &exchange->head);
}

/* A failure is kept like a block, so that it is not tried again for each reader. */
static void done(struct remote_exchange *exchange)
{
    struct block *block = exchange->context;
    struct web_source *web = block->web;
    const bool is_here = exchange->status == ZT_OK && exchange->head.status == 206;
    struct zt_error error;

    if (!is_here && web_file_failure(&web->file, exchange, &error) == ZT_UNAVAILABLE)
        error.status = ZT_IO;
    remote_exchange_free(exchange);
    if (is_here)
        memo_done(block, one);
    else
        memo_fail(block, &error, one, MEMO_LASTING);
    memo_release(block);
    pthread_mutex_lock(&web->lock);
    atomic_fetch_sub(&web->flying, 1);
    pthread_cond_broadcast(&web->landed);
    pthread_mutex_unlock(&web->lock);
}

static void begin(struct web_source *web, struct block *block, uint64_t number)
{
    const uint64_t first = number * BLOCK_BYTES;
    const uint64_t length = block_length(web, number);

    block->web = web;
    block->bytes = malloc(length);
    if (block->bytes == NULL) {
        struct zt_error error;

        zt_fail_memory(&error, "a block of a file on a server");
        memo_fail(block, &error, MEMO_NOT_KEPT, 0);
        memo_release(block);
        return;
    }
    atomic_fetch_add(&web->flying, 1);
    web_file_prepare(web->client, &web->file, first, first + length - 1, &block->exchange);
    block->exchange.into = block->bytes;
    block->exchange.into_length = length;
    block->exchange.accept = accept;
    block->exchange.done = done;
    block->exchange.context = block;
    client_begin(web->client, &block->exchange);
}

/* Holds a block, and begins to fetch it if necessary. Returns NULL if out of memory. */
static struct block *hold(struct web_source *web, uint64_t number)
{
    struct block *block =
        memo_hold(web->blocks, (struct zt_text){(const char *)&number, sizeof(number)});

    if (block != NULL && memo_ask(block, 1, NULL, NULL) == MEMO_MAKE)
        begin(web, block, number);
    return block;
}

/* Reads twice as far ahead with each block that is read in order. */
static void read_ahead(struct web_source *web, uint64_t number)
{
    const uint64_t blocks = (web->file.size + BLOCK_BYTES - 1) / BLOCK_BYTES;
    uint64_t last = number;

    pthread_mutex_lock(&web->lock);
    if (number + 1 != web->next_block) {
        web->ahead = number == web->next_block ? web->ahead * 2 + 1 : 0;
        if (web->ahead > AHEAD_MOST)
            web->ahead = AHEAD_MOST;
        web->next_block = number + 1;
        last += web->ahead;
    }
    pthread_mutex_unlock(&web->lock);
    while (++number <= last && number < blocks && atomic_load(&web->flying) < AHEAD_MOST)
        memo_release(hold(web, number));
}

/* --- reading --- */

/* Waits until a block has been fetched, and holds it. Returns NULL with an error. */
static struct block *obtain(struct web_source *web, uint64_t number, struct zt_error *error)
{
    struct block *block = hold(web, number);
    enum memo_answer answer;

    if (block == NULL) {
        zt_fail_memory(error, "a block of a file on a server");
        return NULL;
    }
    read_ahead(web, number);
    answer = memo_get(block, 1, error);
    if (answer == MEMO_READY)
        return block;
    assert(answer == MEMO_FAILED);
    memo_release(block);
    return NULL;
}

static enum zt_status read_at(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error)
{
    struct web_source *web = cast(source);
    uint8_t *to = buffer;

    if (offset > web->file.size || length > web->file.size - offset)
        return zt_fail(error, ZT_IO, NULL, offset, "the file ends before");
    while (length > 0) {
        const uint64_t number = offset / BLOCK_BYTES;
        const uint64_t from = offset - number * BLOCK_BYTES;
        const uint64_t here = block_length(web, number) - from;
        const size_t count = here < length ? (size_t)here : length;
        struct block *block = obtain(web, number, error);

        if (block == NULL)
            return error->status;
        memcpy(to, block->bytes + from, count);
        memo_release(block);
        to += count;
        offset += count;
        length -= count;
    }
    return ZT_OK;
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
    while (atomic_load(&web->flying) > 0)
        pthread_cond_wait(&web->landed, &web->lock);
    pthread_mutex_unlock(&web->lock);
    memo_free(web->blocks);
    pthread_cond_destroy(&web->landed);
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
    static const struct memo_rules rules = {
        .value_bytes = sizeof(struct block),
        .free_value = free_block,
        .most = {KEPT_MOST * BLOCK_BYTES, KEPT_MOST},
    };
    struct web_source *web = calloc(1, sizeof(*web));

    assert(file->has_ranges && file->size != UINT64_MAX);
    if (web != NULL)
        web->blocks = memo_new(&rules);
    if (web == NULL || web->blocks == NULL) {
        free(web);
        return zt_fail_memory(error, "a file on a server");
    }
    web->source.ops = &ops;
    web->client = client;
    web->file = *file;
    web->next_block = NO_BLOCK;
    pthread_mutex_init(&web->lock, NULL);
    pthread_cond_init(&web->landed, NULL);
    *out_source = &web->source;
    return ZT_OK;
}
