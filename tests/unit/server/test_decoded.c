/* The cache of decoded components: right bytes from memory and from files, shared decoding, bounds,
 * failures. */
#include "model_world.h"

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

static struct generation *make_case(struct world *world, const char *path,
                                    struct component_case made)
{
    struct bytes stored = {NULL, 0};
    struct container container = {0};
    struct generation *generation;
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
    generation = generation_open(&world->server, path, NULL);
    assert_non_null(generation);
    assert_non_null(generation->model);
    return generation;
}

static struct generation *make(struct world *world, const char *path, size_t length,
                               size_t cut_bytes)
{
    return make_case(world, path, (struct component_case){length, cut_bytes, false});
}

static enum decoded_answer ask(struct world *world, struct generation *generation,
                               struct decoded **out_decoded, struct zt_error *error)
{
    struct flag flag;
    enum decoded_answer answer;

    flag_init(&flag);
    while ((answer = decoded_ask(world->server.decoded, generation, 0, &flag.waiter, out_decoded,
                                 error)) == DECODED_PENDING)
        flag_wait(&flag);
    return answer;
}

static void assert_plain(const struct decoded *decoded, size_t length)
{
    uint8_t *bytes = malloc(length + 1);

    assert_int_equal(decoded->length, length);
    assert_int_equal(zt_source_size(decoded->source), length);
    assert_int_equal(zt_source_read_at(decoded->source, 0, bytes, length, NULL), ZT_OK);
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != plain_byte(i))
            fail_msg("byte %zu is wrong", i);
    free(bytes);
}

static void small_components_are_kept_in_memory_and_large_ones_in_a_file(void **state)
{
    struct world *world = *state;
    static const size_t lengths[] = {1, 1000, (size_t)4 << 20, LARGE_BYTES};
    struct zt_error error;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct generation *generation = make(world, "m.zt", lengths[i], 0);
        struct decoded *decoded = NULL;

        assert_int_equal(ask(world, generation, &decoded, &error), DECODED_READY);
        assert_plain(decoded, lengths[i]);
        assert_int_equal(zt_source_descriptor(decoded->source) >= 0, lengths[i] == LARGE_BYTES);
        decoded_release(decoded);
        generation_release(generation);
    }
    world_command(world, "test \"$(ls -A .ztserve | grep -v digests)\" = verified");
}

/* Blocks are reserved before they are written. */
static void a_file_occupies_no_more_than_its_bytes_once_it_is_complete(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", LARGE_BYTES, 0);
    struct decoded *decoded = NULL;
    struct zt_error error;
    struct stat metadata;

    assert_int_equal(ask(world, generation, &decoded, &error), DECODED_READY);
    assert_int_equal(fstat(zt_source_descriptor(decoded->source), &metadata), 0);
    assert_int_equal(metadata.st_size, LARGE_BYTES);
    assert_true((uint64_t)metadata.st_blocks * 512 < LARGE_BYTES + ((size_t)1 << 20));
    decoded_release(decoded);
    generation_release(generation);
}

/* A wrong length costs a file, but no memory and no bytes. */
static void the_declared_length_only_says_where_the_first_bytes_go(void **state)
{
    struct world *world = *state;
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

static void one_decoding_serves_many_requests(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", 5000, 0);
    struct decoded *first = NULL;
    struct decoded *second = NULL;
    struct zt_error error;

    assert_int_equal(ask(world, generation, &first, &error), DECODED_READY);
    assert_int_equal(ask(world, generation, &second, &error), DECODED_READY);
    assert_ptr_equal(first, second);
    decoded_release(first);
    decoded_release(second);
    /* Another generation of the same version finds the same entry. */
    generation_release(generation);
    generation = generation_open(&world->server, "m.zt", NULL);
    assert_int_equal(ask(world, generation, &second, &error), DECODED_READY);
    assert_ptr_equal(first, second);
    decoded_release(second);
    generation_release(generation);
}

static void entries_in_use_outlive_the_bound(void **state)
{
    struct world *world = *state;
    struct generation *generations[3];
    struct decoded *decoded[3];
    struct zt_error error;

    world->config.limits.decoded_cache_bytes = 6000;
    for (int i = 0; i < 3; i++) {
        char path[8];

        snprintf(path, sizeof(path), "m%d.zt", i);
        generations[i] = make(world, path, 4000, 0);
        assert_int_equal(ask(world, generations[i], &decoded[i], &error), DECODED_READY);
    }
    for (int i = 0; i < 3; i++)
        assert_plain(decoded[i], 4000);
    decoded_release(decoded[2]);
    decoded_release(decoded[0]);
    decoded_release(decoded[1]);
    for (int i = 0; i < 3; i++)
        generation_release(generations[i]);
}

static void a_bound_of_0_keeps_nothing(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", 4000, 0);
    struct decoded *decoded = NULL;
    struct zt_error error;

    world->config.limits.decoded_cache_bytes = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(world, generation, &decoded, &error), DECODED_READY);
        assert_plain(decoded, 4000);
        decoded_release(decoded);
    }
    generation_release(generation);
}

static void broken_streams_are_corrupt_and_not_decoded_again(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", 5000, 3);
    struct decoded *decoded = NULL;
    struct zt_error error;

    for (int i = 0; i < 3; i++) {
        zt_error_clear(&error);
        assert_int_equal(ask(world, generation, &decoded, &error), DECODED_FAILED);
        assert_int_equal(error.status, ZT_CORRUPT);
        assert_true(error.message[0] != '\0');
    }
    assert_null(decoded);
    generation_release(generation);
}

static void a_component_above_the_limit_fails(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", 5000, 0);
    struct decoded *decoded = NULL;
    struct zt_error error;

    world->config.limits.decoded_bytes = 4999;
    assert_int_equal(ask(world, generation, &decoded, &error), DECODED_FAILED);
    assert_int_equal(error.status, ZT_LIMIT);
    world->config.limits.decoded_bytes = 5000;
    assert_int_equal(ask(world, generation, &decoded, &error), DECODED_READY);
    decoded_release(decoded);
    generation_release(generation);
}

static void a_component_above_the_limit_fails_even_without_a_stated_length(void **state)
{
    struct world *world = *state;
    struct generation *generation =
        make_case(world, "m.zt", (struct component_case){8000, 0, true});
    struct decoded *decoded = NULL;
    struct zt_error error;

    assert_true(generation->model->components[0].decoded_length == ZT_LENGTH_UNKNOWN);
    world->config.limits.decoded_bytes = 7999;
    assert_int_equal(ask(world, generation, &decoded, &error), DECODED_FAILED);
    assert_int_equal(error.status, ZT_LIMIT);
    generation_release(generation);
    generation = make_case(world, "n.zt", (struct component_case){7992, 0, true});
    assert_int_equal(ask(world, generation, &decoded, &error), DECODED_READY);
    assert_plain(decoded, 7992);
    decoded_release(decoded);
    generation_release(generation);
}

static void files_are_made_elsewhere_without_a_state_folder(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", LARGE_BYTES, 0);
    struct decoded *decoded = NULL;
    struct zt_error error;

    strcpy(world->config.state.dir, "/nonexistent/state");
    assert_int_equal(ask(world, generation, &decoded, &error), DECODED_READY);
    assert_plain(decoded, LARGE_BYTES);
    decoded_release(decoded);
    generation_release(generation);
}

static void nothing_begins_after_stop(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", 5000, 0);
    struct decoded *decoded = NULL;
    struct zt_error error;

    decoded_cache_stop(world->server.decoded);
    assert_int_equal(ask(world, generation, &decoded, &error), DECODED_FAILED);
    assert_int_equal(error.status, ZT_IO);
    generation_release(generation);
}

struct crowd {
    struct world *world;
    struct generation *generations[4];
};

static void *ask_all(void *argument)
{
    struct crowd *crowd = argument;
    struct decoded *decoded = NULL;
    struct zt_error error;

    for (int i = 0; i < 200; i++) {
        if (ask(crowd->world, crowd->generations[i % 4], &decoded, &error) != DECODED_READY)
            return crowd;
        assert_plain(decoded, (size_t)(1000 + i % 4));
        decoded_release(decoded);
    }
    return NULL;
}

static void many_threads_may_ask_under_a_small_bound(void **state)
{
    struct world *world = *state;
    struct crowd crowd = {.world = world};
    pthread_t threads[4];

    world->config.limits.decoded_cache_bytes = 2000;
    for (int i = 0; i < 4; i++) {
        char path[8];

        snprintf(path, sizeof(path), "m%d.zt", i);
        crowd.generations[i] = make(world, path, (size_t)(1000 + i), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all, &crowd), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;

        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    for (int i = 0; i < 4; i++)
        generation_release(crowd.generations[i]);
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

static void a_worker_never_waits_for_a_queued_job(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", 5000, 0);
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    struct blocker blockers[16];
    struct decoded *got = NULL;
    struct decoded *asked = NULL;
    struct zt_error error;
    struct flag flag;

    flag_init(&flag);
    pthread_mutex_lock(&held);
    for (size_t i = 0; i < sizeof(blockers) / sizeof(blockers[0]); i++) {
        blockers[i] = (struct blocker){.job = {.run = block}, .held = &held};
        workers_submit(world->server.workers, &blockers[i].job);
    }
    assert_int_equal(
        decoded_ask(world->server.decoded, generation, 0, &flag.waiter, &asked, &error),
        DECODED_PENDING);
    assert_int_equal(decoded_get(world->server.decoded, generation, 0, &got, &error), ZT_OK);
    assert_plain(got, 5000);
    /* The same decoding serves the request that was waiting. */
    flag_wait(&flag);
    assert_int_equal(ask(world, generation, &asked, &error), DECODED_READY);
    assert_ptr_equal(asked, got);
    pthread_mutex_unlock(&held);
    decoded_release(asked);
    decoded_release(got);
    generation_release(generation);
}

static void get_returns_failures(void **state)
{
    struct world *world = *state;
    struct generation *generation = make(world, "m.zt", 5000, 3);
    struct decoded *decoded = NULL;
    struct zt_error error;

    for (int i = 0; i < 2; i++) {
        zt_error_clear(&error);
        assert_int_equal(decoded_get(world->server.decoded, generation, 0, &decoded, &error),
                         ZT_CORRUPT);
        assert_true(error.message[0] != '\0');
    }
    world->config.limits.decoded_bytes = 4999;
    assert_int_equal(decoded_get(world->server.decoded, generation, 0, &decoded, &error), ZT_LIMIT);
    assert_null(decoded);
    generation_release(generation);
}

static void *get_all(void *argument)
{
    struct crowd *crowd = argument;
    struct zt_error error;

    for (int i = 0; i < 400; i++) {
        struct decoded *decoded = NULL;

        if (decoded_get(crowd->world->server.decoded, crowd->generations[i % 4], 0, &decoded,
                        &error) != ZT_OK)
            return crowd;
        if (decoded->length != (uint64_t)(1000 + i % 4))
            return crowd;
        decoded_release(decoded);
    }
    return NULL;
}

static void many_threads_may_get_and_ask(void **state)
{
    struct world *world = *state;
    struct crowd crowd = {.world = world};
    pthread_t threads[4];

    world->config.limits.decoded_cache_bytes = 0;
    for (int i = 0; i < 4; i++) {
        char path[8];

        snprintf(path, sizeof(path), "m%d.zt", i);
        crowd.generations[i] = make(world, path, (size_t)(1000 + i), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 == 0 ? get_all : ask_all, &crowd),
                         0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;

        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    for (int i = 0; i < 4; i++)
        generation_release(crowd.generations[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(small_components_are_kept_in_memory_and_large_ones_in_a_file),
        WORLD_TEST(a_file_occupies_no_more_than_its_bytes_once_it_is_complete),
        WORLD_TEST(the_declared_length_only_says_where_the_first_bytes_go),
        WORLD_TEST(one_decoding_serves_many_requests),
        WORLD_TEST(entries_in_use_outlive_the_bound),
        WORLD_TEST(a_bound_of_0_keeps_nothing),
        WORLD_TEST(broken_streams_are_corrupt_and_not_decoded_again),
        WORLD_TEST(a_component_above_the_limit_fails),
        WORLD_TEST(a_component_above_the_limit_fails_even_without_a_stated_length),
        WORLD_TEST(files_are_made_elsewhere_without_a_state_folder),
        WORLD_TEST(nothing_begins_after_stop),
        WORLD_TEST(many_threads_may_ask_under_a_small_bound),
        WORLD_TEST(a_worker_never_waits_for_a_queued_job),
        WORLD_TEST(get_returns_failures),
        WORLD_TEST(many_threads_may_get_and_ask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
