/* The cache of decoded components: right bytes from memory and from files, shared decoding, bounds,
 * failures. */
#include "model_world.h"
#include "tests.h"

#include <sys/stat.h>

#include "derived/decoded_sink.h"
#include "handmade.h"

#define LARGE_BYTES ((size_t)6 << 20)

static uint8_t plain_byte(size_t at)
{
    return (uint8_t)(at * 31 + (at >> 8));
}

#define MANIFEST(object) "{\"version\":\"1.2.0\",\"objects\":{\"x\":{" object "}}}"
#define DENSE                                               \
    "\"shape\":[%zu],\"format\":\"dense\",\"components\":{" \
    "\"data\":{\"dtype\":\"u8\",\"offset\":64,\"length\":%zu,\"encoding\":\"zstd\"}}"
/* The decoded length of its first component, the coordinates, is stated nowhere. */
#define SPARSE                                                                           \
    "\"shape\":[%zu],\"format\":\"sparse_coo\",\"components\":{"                         \
    "\"coords\":{\"dtype\":\"u64\",\"offset\":64,\"length\":%zu,\"encoding\":\"zstd\"}," \
    "\"values\":{\"dtype\":\"u8\",\"offset\":64,\"length\":0}}"

struct component_case {
    size_t length;    /* decoded, of component 0, which is stored as zstd */
    size_t cut_bytes; /* missing from the end of its stream */
    bool is_sparse;
};

/* Of most tests; released after each. */
static struct generation *generation;
static struct decoded *decoded;
static struct zt_error error;

static struct generation *make_case(struct world *world, const char *path,
                                    struct component_case made)
{
    struct bytes stored = {NULL, 0};
    struct container container = {0};
    struct generation *opened;
    uint8_t *plain = malloc(made.length + 1);
    char manifest[512];

    for (size_t i = 0; i < made.length; i++)
        plain[i] = plain_byte(i);
    bytes_append_zstd(&stored, plain, made.length, true);
    stored.length -= made.cut_bytes;
    if (made.is_sparse)
        snprintf(manifest, sizeof(manifest), MANIFEST(SPARSE), made.length, stored.length);
    else
        snprintf(manifest, sizeof(manifest), MANIFEST(DENSE), made.length, stored.length);
    container_make(&container, CONTAINER_ZT1, stored.length, manifest);
    memcpy(container.bytes + CONTAINER_DATA, stored.at, stored.length);
    world_write(world, path, container.bytes, container.length);
    container_free(&container);
    bytes_free(&stored);
    free(plain);
    opened = generation_open(&world->server, path, NULL);
    assert_non_null(opened);
    assert_non_null(opened->model);
    return opened;
}

static struct generation *make(struct world *world, const char *path, size_t length,
                               size_t cut_bytes)
{
    return make_case(world, path, (struct component_case){length, cut_bytes, false});
}

static enum memo_answer await_answer(struct world *world, struct decoded *of,
                                     struct generation *from, struct zt_error *out_error)
{
    enum memo_answer answer;
    struct flag flag;

    flag_init(&flag);
    while ((answer = decoded_ask(world->server.decoded, of, from, 0, &flag.waiter, out_error)) ==
           MEMO_PENDING)
        flag_wait(&flag);
    return answer;
}

/* *out_decoded is held unless it has failed. */
static enum memo_answer ask(struct world *world, struct generation *from,
                            struct decoded **out_decoded, struct zt_error *out_error)
{
    struct decoded *held = decoded_hold(world->server.decoded, from, 0);
    enum memo_answer answer;

    assert_non_null(held);
    answer = await_answer(world, held, from, out_error);
    if (answer == MEMO_READY)
        *out_decoded = held;
    else
        memo_release(held);
    return answer;
}

static void assert_plain(const struct decoded *of, size_t length)
{
    uint8_t *bytes = malloc(length + 1);

    assert_int_equal(of->length, length);
    assert_int_equal(zt_source_size(of->source), length);
    assert_int_equal(zt_source_read_at(of->source, 0, bytes, length, NULL), ZT_OK);
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != plain_byte(i))
            fail_msg("byte %zu is wrong", i);
    free(bytes);
}

static void release(void)
{
    if (decoded != NULL)
        memo_release(decoded);
    decoded = NULL;
    generation_release(generation);
    generation = NULL;
}

/* A model "m" of one component in the place of the one before, decoded. */
static void assert_decodes(struct world *world, struct component_case made)
{
    release();
    generation = make_case(world, "m.zt", made);
    assert_int_equal(ask(world, generation, &decoded, &error), MEMO_READY);
    assert_plain(decoded, made.length);
}

static void assert_fails(struct world *world, enum zt_status status)
{
    zt_error_clear(&error);
    assert_int_equal(ask(world, generation, &decoded, &error), MEMO_FAILED);
    assert_int_equal(error.status, status);
    assert_true(error.message[0] != '\0');
}

static int tear_down(void **state)
{
    release();
    return world_tear_down(state);
}

AROUND_EACH_TEST(world_set_up, tear_down)

TEST_ON(struct world *world, small_components_are_kept_in_memory_and_large_ones_in_a_file)
{
    static const size_t lengths[] = {1, 1000, (size_t)4 << 20, LARGE_BYTES};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        assert_decodes(world, (struct component_case){.length = lengths[i]});
        assert_int_equal(zt_source_descriptor(decoded->source) >= 0, lengths[i] == LARGE_BYTES);
    }
    world_command(world, "test \"$(ls -A .ztserve | grep -v -e digests -e hashes)\" = verified");
}

/* Blocks are reserved before they are written. */
TEST_ON(struct world *world, a_file_occupies_no_more_than_its_bytes_once_it_is_complete)
{
    struct stat metadata;

    assert_decodes(world, (struct component_case){.length = LARGE_BYTES});
    assert_int_equal(fstat(zt_source_descriptor(decoded->source), &metadata), 0);
    assert_int_equal(metadata.st_size, LARGE_BYTES);
    assert_true((uint64_t)metadata.st_blocks * 512 < LARGE_BYTES + ((size_t)1 << 20));
}

/* A wrong length costs a file, but no memory and no bytes. */
TEST_ON(struct world *world, the_declared_length_only_says_where_the_first_bytes_go)
{
    static const uint64_t declared[] = {0, 3, LARGE_BYTES, ZT_LENGTH_UNKNOWN};

    for (size_t i = 0; i < sizeof(declared) / sizeof(declared[0]); i++) {
        struct zt_source *source = NULL;
        uint8_t *bytes = NULL;
        uint8_t read[3];
        struct decoded_sink sink;

        decoded_sink_init(&sink, &world->config, declared[i]);
        assert_int_equal(decoded_sink_add(&sink, "abc", 3, NULL), ZT_OK);
        assert_int_equal(decoded_sink_finish(&sink, &source, &bytes, NULL), ZT_OK);
        assert_int_equal(zt_source_descriptor(source) >= 0, declared[i] == LARGE_BYTES);
        assert_int_equal(zt_source_size(source), 3);
        assert_int_equal(zt_source_read_at(source, 0, read, 3, NULL), ZT_OK);
        assert_memory_equal(read, "abc", 3);
        zt_source_close(source);
        free(bytes);
    }
}

TEST_ON(struct world *world, one_decoding_serves_many_requests)
{
    struct decoded *second = NULL;

    assert_decodes(world, (struct component_case){.length = 5000});
    assert_int_equal(ask(world, generation, &second, &error), MEMO_READY);
    assert_ptr_equal(decoded, second);
    memo_release(second);
    /* Another generation of the same version finds the same entry. */
    generation_release(generation);
    generation = generation_open(&world->server, "m.zt", NULL);
    assert_int_equal(ask(world, generation, &second, &error), MEMO_READY);
    assert_ptr_equal(decoded, second);
    memo_release(second);
}

TEST_ON(struct world *world, entries_in_use_outlive_the_bound)
{
    struct generation *generations[3];
    struct decoded *held[3];

    world->config.limits.decoded_cache_bytes = 6000;
    for (int i = 0; i < 3; i++) {
        char path[8];

        snprintf(path, sizeof(path), "m%d.zt", i);
        generations[i] = make(world, path, 4000, 0);
        assert_int_equal(ask(world, generations[i], &held[i], &error), MEMO_READY);
    }
    for (int i = 0; i < 3; i++)
        assert_plain(held[i], 4000);
    memo_release(held[2]);
    memo_release(held[0]);
    memo_release(held[1]);
    for (int i = 0; i < 3; i++)
        generation_release(generations[i]);
}

TEST_ON(struct world *world, a_bound_of_0_keeps_nothing)
{
    world->config.limits.decoded_cache_bytes = 0;
    generation = make(world, "m.zt", 4000, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(world, generation, &decoded, &error), MEMO_READY);
        assert_plain(decoded, 4000);
        memo_release(decoded);
        decoded = NULL;
    }
}

TEST_ON(struct world *world, broken_streams_are_corrupt_and_not_decoded_again)
{
    generation = make(world, "m.zt", 5000, 3);
    for (int i = 0; i < 3; i++)
        assert_fails(world, ZT_CORRUPT);
    assert_null(decoded);
}

TEST_ON(struct world *world, a_component_above_the_limit_fails)
{
    generation = make(world, "m.zt", 5000, 0);
    world->config.limits.decoded_bytes = 4999;
    assert_fails(world, ZT_LIMIT);
    world->config.limits.decoded_bytes = 5000;
    assert_int_equal(ask(world, generation, &decoded, &error), MEMO_READY);
}

TEST_ON(struct world *world, a_component_above_the_limit_fails_even_without_a_stated_length)
{
    generation = make_case(world, "n.zt", (struct component_case){8000, 0, true});
    assert_true(generation->model->components[0].decoded_length == ZT_LENGTH_UNKNOWN);
    world->config.limits.decoded_bytes = 7999;
    assert_fails(world, ZT_LIMIT);
    assert_decodes(world, (struct component_case){7992, 0, true});
}

/* A failure under the lower limit would be kept for requests under the higher one. */
TEST_ON(struct world *world, a_limit_lowered_after_a_request_does_not_fail_it)
{
    generation = make_case(world, "m.zt", (struct component_case){8000, 0, true});
    world->config.limits.decoded_bytes = 8000;
    decoded = decoded_hold(world->server.decoded, generation, 0);
    assert_non_null(decoded);
    world->config.limits.decoded_bytes = 7999;
    assert_int_equal(await_answer(world, decoded, generation, &error), MEMO_READY);
    assert_plain(decoded, 8000);
}

TEST_ON(struct world *world, files_are_made_elsewhere_without_a_state_folder)
{
    strcpy(world->config.state.dir, "/nonexistent/state");
    assert_decodes(world, (struct component_case){.length = LARGE_BYTES});
}

TEST_ON(struct world *world, nothing_begins_after_stop)
{
    generation = make(world, "m.zt", 5000, 0);
    decoded_cache_stop(world->server.decoded);
    assert_fails(world, ZT_IO);
}

/* --- many threads --- */

struct crowd {
    struct world *world;
    struct generation *generations[4];
};

static void *ask_all(void *argument)
{
    struct crowd *crowd = argument;
    struct decoded *asked = NULL;
    struct zt_error failure;

    for (int i = 0; i < 200; i++) {
        if (ask(crowd->world, crowd->generations[i % 4], &asked, &failure) != MEMO_READY)
            return crowd;
        assert_plain(asked, (size_t)(1000 + i % 4));
        memo_release(asked);
    }
    return NULL;
}

static void *get_all(void *argument)
{
    struct crowd *crowd = argument;
    struct zt_error failure;

    for (int i = 0; i < 400; i++) {
        struct decoded *got = NULL;

        if (decoded_get(crowd->world->server.decoded, crowd->generations[i % 4], 0, &got,
                        &failure) != ZT_OK)
            return crowd;
        if (got->length != (uint64_t)(1000 + i % 4))
            return crowd;
        memo_release(got);
    }
    return NULL;
}

/* Four threads, of which every second may do something else, under a bound of the cache. */
static void run_crowd(struct world *world, int64_t bound, void *(*first)(void *),
                      void *(*second)(void *))
{
    struct crowd crowd = {.world = world};
    pthread_t threads[4];

    world->config.limits.decoded_cache_bytes = bound;
    for (int i = 0; i < 4; i++) {
        char path[8];

        snprintf(path, sizeof(path), "m%d.zt", i);
        crowd.generations[i] = make(world, path, (size_t)(1000 + i), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 == 0 ? first : second, &crowd), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;

        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    for (int i = 0; i < 4; i++)
        generation_release(crowd.generations[i]);
}

TEST_ON(struct world *world, many_threads_may_ask_under_a_small_bound)
{
    run_crowd(world, 2000, ask_all, ask_all);
}

TEST_ON(struct world *world, many_threads_may_get_and_ask)
{
    run_crowd(world, 0, get_all, ask_all);
}

/* A job that occupies a worker until it is released. */
struct blocker {
    struct job job;
    pthread_mutex_t *held;
};

static void block(struct job *job)
{
    struct blocker *blocker = (struct blocker *)job;

    pthread_mutex_lock(blocker->held);
    pthread_mutex_unlock(blocker->held);
}

TEST_ON(struct world *world, a_worker_never_waits_for_a_queued_job)
{
    /* Some of the jobs run only when the world is stopped. */
    static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    static struct blocker blockers[16];
    struct decoded *got = NULL;
    struct decoded *asked = NULL;
    struct flag flag;

    generation = make(world, "m.zt", 5000, 0);
    flag_init(&flag);
    pthread_mutex_lock(&held);
    for (size_t i = 0; i < sizeof(blockers) / sizeof(blockers[0]); i++) {
        blockers[i] = (struct blocker){.job = {.run = block}, .held = &held};
        workers_submit(world->server.workers, &blockers[i].job);
    }
    asked = decoded_hold(world->server.decoded, generation, 0);
    assert_non_null(asked);
    assert_int_equal(decoded_ask(world->server.decoded, asked, generation, 0, &flag.waiter, &error),
                     MEMO_PENDING);
    assert_int_equal(decoded_get(world->server.decoded, generation, 0, &got, &error), ZT_OK);
    assert_plain(got, 5000);
    /* The same decoding serves the request that was waiting. */
    flag_wait(&flag);
    assert_int_equal(decoded_ask(world->server.decoded, asked, generation, 0, &flag.waiter, &error),
                     MEMO_READY);
    assert_ptr_equal(asked, got);
    pthread_mutex_unlock(&held);
    memo_release(asked);
    memo_release(got);
}

TEST_ON(struct world *world, get_returns_failures)
{
    generation = make(world, "m.zt", 5000, 3);
    for (int i = 0; i < 2; i++) {
        zt_error_clear(&error);
        assert_int_equal(decoded_get(world->server.decoded, generation, 0, &decoded, &error),
                         ZT_CORRUPT);
        assert_true(error.message[0] != '\0');
    }
    world->config.limits.decoded_bytes = 4999;
    assert_int_equal(decoded_get(world->server.decoded, generation, 0, &decoded, &error), ZT_LIMIT);
    assert_null(decoded);
}
