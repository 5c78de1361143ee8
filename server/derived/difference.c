/* Reads both components in order, a few blocks at once, which idle workers help to encode. */
#include "derived/difference.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/processors.h"
#include "derived/decoded_sink.h"
#include "disk/disk_space.h"
#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/xor.h"

/* Blocks that are encoded side by side; each takes about 2 MiB of memory. */
#define BLOCKS_MOST 8
/* How long a failure is remembered: the next request may find other copies of both. */
#define RETRY_MS 1000

struct block {
    struct zt_xor_encoder *encoder;
    uint8_t *bytes; /* of the component; the base's follow */
    size_t length;
    struct zt_text frame;
    struct zt_error error;
};

struct making {
    struct job job; /* first: the job is the structure */
    struct server *server;
    struct decoded *difference;
    struct difference_side component;
    struct difference_side base;
};

/* --- reading --- */

static enum zt_status open_decoder(const struct generation *generation, uint32_t index,
                                   struct zt_decoder **out_decoder, struct zt_error *error)
{
    const struct zt_component *component = &generation->model->components[index];
    const struct zt_files files = generation_files(generation);

    return zt_decoder_open(component, zt_files_source(&files, component), out_decoder, error);
}

/* Reads a block; a shorter one is the last. */
static enum zt_status read_block(struct zt_decoder *decoder, uint8_t *bytes, size_t *out_length,
                                 struct zt_error *error)
{
    size_t length = 0;
    size_t part = 1;

    while (part > 0 && length < ZT_XOR_BLOCK_BYTES) {
        const enum zt_status status =
            zt_decoder_read(decoder, bytes + length, ZT_XOR_BLOCK_BYTES - length, &part, error);

        if (status != ZT_OK)
            return status;
        length += part;
    }
    assert(length <= ZT_XOR_BLOCK_BYTES);
    *out_length = length;
    return ZT_OK;
}

static enum zt_status fail_stale(struct zt_error *error)
{
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file was changed while it was read");
}

static enum zt_status fail_stopping(struct zt_error *error)
{
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
}

static bool is_stopping(const struct server *server)
{
    return memo_is_stopping(decoded_cache_memo(server->decoded));
}

static bool goes_on(const struct zt_progress *progress, size_t length)
{
    return progress == NULL || progress->advance(progress->context, length);
}

enum zt_status difference_hash(const struct server *server, const struct generation *generation,
                               uint32_t component, const struct zt_progress *progress,
                               uint8_t out_sha256[DIFFERENCE_DIGEST_BYTES], struct zt_error *error)
{
    uint8_t *bytes = malloc(ZT_XOR_BLOCK_BYTES);
    struct zt_decoder *decoder = NULL;
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;
    size_t length = 1;
    enum zt_status status = bytes != NULL && zt_hasher_new(ZT_DIGEST_SHA256, &hasher) == ZT_OK
                                ? open_decoder(generation, component, &decoder, error)
                                : zt_fail_memory(error, "a digest");

    while (status == ZT_OK && length > 0) {
        status =
            is_stopping(server) ? fail_stopping(error) : read_block(decoder, bytes, &length, error);
        if (status == ZT_OK)
            zt_hasher_update(hasher, bytes, length);
        if (status == ZT_OK && !goes_on(progress, length))
            status = zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the work was stopped");
    }
    if (status == ZT_OK && !generation_is_unwritten(generation))
        status = fail_stale(error);
    if (status == ZT_OK) {
        zt_hasher_finish(hasher, &digest);
        memcpy(out_sha256, digest.bytes, DIFFERENCE_DIGEST_BYTES);
    }
    zt_hasher_free(hasher);
    zt_decoder_close(decoder);
    free(bytes);
    return status;
}

/* --- encoding --- */

static void free_blocks(struct block *blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        zt_xor_encoder_free(blocks[i].encoder);
        free(blocks[i].bytes);
    }
}

/* Makes as many blocks as can be encoded side by side, but no more than the component has. */
static enum zt_status make_blocks(const struct making *making, struct block *blocks,
                                  unsigned *out_count, struct zt_error *error)
{
    const uint64_t length =
        making->component.generation->model->components[making->component.component].decoded_length;
    const unsigned processors = processors_count();
    unsigned most = processors < BLOCKS_MOST ? processors : BLOCKS_MOST;

    if (length / ZT_XOR_BLOCK_BYTES < most)
        most = (unsigned)(length / ZT_XOR_BLOCK_BYTES) + 1;
    assert(most > 0 && most <= BLOCKS_MOST);
    for (*out_count = 0; *out_count < most; ++*out_count) {
        struct block *block = &blocks[*out_count];

        *block = (struct block){.bytes = malloc(2 * ZT_XOR_BLOCK_BYTES)};
        if (block->bytes == NULL || zt_xor_encoder_new(&block->encoder, error) != ZT_OK) {
            free(block->bytes);
            return zt_fail_memory(error, "a difference");
        }
    }
    return ZT_OK;
}

static bool encode_block(void *context, uint32_t index)
{
    struct block *block = &((struct block *)context)[index];

    assert(block->length <= ZT_XOR_BLOCK_BYTES);
    return zt_xor_encode(block->encoder, block->bytes, block->bytes + ZT_XOR_BLOCK_BYTES,
                         block->length, &block->frame, &block->error) == ZT_OK;
}

/* Reads blocks of both; *out_count is less than count only at the end. */
static enum zt_status read_blocks(struct zt_decoder *const decoders[2], struct block *blocks,
                                  unsigned count, unsigned *out_count, struct zt_error *error)
{
    for (*out_count = 0; *out_count < count;) {
        struct block *block = &blocks[*out_count];
        size_t others;

        if (read_block(decoders[0], block->bytes, &block->length, error) != ZT_OK ||
            read_block(decoders[1], block->bytes + ZT_XOR_BLOCK_BYTES, &others, error) != ZT_OK)
            return error->status;
        if (block->length != others)
            return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                           "the base does not have the component's length");
        *out_count += block->length > 0 ? 1 : 0;
        if (block->length < ZT_XOR_BLOCK_BYTES)
            break;
    }
    assert(*out_count <= count);
    return ZT_OK;
}

static enum zt_status encode_all(const struct making *making, struct zt_decoder *const decoders[2],
                                 struct decoded_sink *sink, struct zt_error *error)
{
    struct block blocks[BLOCKS_MOST];
    unsigned count = 0;
    unsigned filled = 0;
    enum zt_status status = make_blocks(making, blocks, &count, error);
    const struct parallel_work work = {.run = encode_block, .context = blocks};

    do {
        struct parallel_work turn = work;
        uint32_t done;

        if (status == ZT_OK && !memo_is_wanted(making->difference))
            status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                             "no request waits for the difference any more");
        if (status == ZT_OK)
            status = read_blocks(decoders, blocks, count, &filled, error);
        if (status != ZT_OK)
            break;
        /* No bytes at all are one empty frame. */
        assert(filled <= count);
        turn.count = filled == 0 && sink->length == 0 ? 1 : filled;
        if (turn.count == 0)
            break;
        done = parallel_for(making->server->workers, &turn);
        if (done < turn.count) {
            *error = blocks[done].error;
            status = error->status;
        }
        for (unsigned i = 0; i < turn.count && status == ZT_OK; i++)
            status = decoded_sink_add(sink, blocks[i].frame.bytes, blocks[i].frame.length, error);
    } while (status == ZT_OK && filled == count);
    free_blocks(blocks, count);
    return status;
}

static enum zt_status encode(const struct making *making, struct zt_error *error)
{
    struct decoded *difference = making->difference;
    struct zt_decoder *decoders[2] = {NULL, NULL};
    struct decoded_sink sink;
    uint64_t length;
    enum zt_status status = open_decoder(making->component.generation, making->component.component,
                                         &decoders[0], error);

    decoded_sink_init(&sink, making->server->config, ZT_LENGTH_UNKNOWN);
    if (status == ZT_OK)
        status = open_decoder(making->base.generation, making->base.component, &decoders[1], error);
    if (status == ZT_OK)
        status = encode_all(making, decoders, &sink, error);
    if (status == ZT_OK && (!generation_is_unwritten(making->component.generation) ||
                            !generation_is_unwritten(making->base.generation)))
        status = fail_stale(error);
    length = sink.length;
    if (status == ZT_OK)
        status = decoded_sink_finish(&sink, &difference->source, &difference->bytes, error);
    if (status == ZT_OK)
        difference->length = length;
    zt_decoder_close(decoders[0]);
    zt_decoder_close(decoders[1]);
    decoded_sink_free(&sink);
    return status;
}

/* --- the job --- */

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;
    struct zt_error error;

    assert(making->difference != NULL);
    if (memo_begin(making->difference, job)) {
        const enum zt_status status = encode(making, &error);

        decoded_finish(making->difference, status, &error,
                       status != ZT_OK && disk_space_is_short(&error) ? 0 : RETRY_MS);
    }
    memo_release(making->difference);
    generation_release(making->component.generation);
    generation_release(making->base.generation);
    free(making);
}

static void begin(const struct making *begun, struct waiter *waiter)
{
    struct making *making = malloc(sizeof(*making));
    struct zt_error error;

    if (making == NULL) {
        zt_fail_memory(&error, "a difference");
        memo_await(begun->difference, waiter);
        memo_fail(begun->difference, &error, MEMO_NOT_KEPT, 0);
        memo_release(begun->difference);
        return;
    }
    *making = *begun;
    making->job.run = run_making;
    generation_hold(making->component.generation);
    generation_hold(making->base.generation);
    memo_submit(
        making->difference, waiter,
        &(struct memo_job){
            server_waiters(making->server), &making->job,
            making->component.generation->model->components[making->component.component].length});
}

struct decoded *difference_hold(struct decoded_cache *cache,
                                const struct difference_side *component,
                                const struct difference_side *base)
{
    struct {
        uint8_t sha256[2][DIFFERENCE_DIGEST_BYTES];
        uint64_t revision;
    } key = {.revision = zt_xor_revision()};

    _Static_assert(sizeof(key) != DECODED_KEY_BYTES, "decoded components have such keys");
    memcpy(key.sha256[0], component->sha256, DIFFERENCE_DIGEST_BYTES);
    memcpy(key.sha256[1], base->sha256, DIFFERENCE_DIGEST_BYTES);
    return memo_hold(decoded_cache_memo(cache), (struct zt_text){(const char *)&key, sizeof(key)});
}

enum memo_answer difference_ask(struct server *server, struct decoded *difference,
                                const struct difference_side *component,
                                const struct difference_side *base, struct waiter *waiter,
                                struct zt_error *error)
{
    const struct making begun = {
        .server = server, .difference = difference, .component = *component, .base = *base};
    enum memo_answer answer;

    assert(component->generation != NULL && base->generation != NULL);
    if (is_stopping(server)) {
        fail_stopping(error);
        return MEMO_FAILED;
    }
    answer = memo_ask(difference, 1, waiter, error);
    if (answer != MEMO_MAKE)
        return answer;
    begin(&begun, waiter);
    return MEMO_PENDING;
}
