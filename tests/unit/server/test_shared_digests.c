/* Digests that replicas share: what one has found is kept with the version in the store, and read
 * by the next; what is kept there may be anything. The store is a folder that has facts. */
#include "model_world.h"

#include "verify/component_digests.h"
#include "verify/digest_work.h"

enum { A, B, C, D };

#define PIECE 65536
#define LARGE (3 * PIECE + 100)
/* Of the small component in the file: the next multiple of 64 behind the large one. */
#define SMALL_OFFSET ((64 + LARGE + 63) / 64 * 64)

/* --- a store that is elsewhere: one fact, in memory --- */

static struct {
    pthread_mutex_t lock;
    struct store_claim_ops ops;
    char *text; /* NULL: there is none */
    size_t length;
    struct file_identity identity;
    char kind[64];
    unsigned reads;
    unsigned writes;
    enum zt_status failure; /* of both; ZT_OK: none */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum zt_status read_fact(struct store *store, const struct file_identity *identity,
                                const char *kind, char **out_text, size_t *out_length,
                                struct zt_error *error)
{
    enum zt_status status = shared.failure;

    (void)store;
    pthread_mutex_lock(&shared.lock);
    shared.reads++;
    if (status == ZT_OK && (shared.text == NULL || strcmp(kind, shared.kind) != 0 ||
                            !store_identity_equal(identity, &shared.identity)))
        status = ZT_NOT_FOUND;
    if (status == ZT_OK) {
        *out_text = malloc(shared.length + 1);
        assert_non_null(*out_text);
        memcpy(*out_text, shared.text, shared.length);
        *out_length = shared.length;
    }
    pthread_mutex_unlock(&shared.lock);
    return status == ZT_OK ? ZT_OK : zt_fail(error, status, NULL, ZT_NO_OFFSET, "no fact");
}

static enum zt_status write_fact(struct store *store, const struct file_identity *identity,
                                 const char *kind, const char *text, size_t length,
                                 struct zt_error *error)
{
    (void)store;
    if (shared.failure != ZT_OK)
        return zt_fail(error, shared.failure, NULL, ZT_NO_OFFSET, "no fact");
    pthread_mutex_lock(&shared.lock);
    free(shared.text);
    shared.text = malloc(length);
    assert_non_null(shared.text);
    memcpy(shared.text, text, length);
    shared.length = length;
    shared.identity = *identity;
    snprintf(shared.kind, sizeof(shared.kind), "%s", kind);
    shared.writes++;
    pthread_mutex_unlock(&shared.lock);
    return ZT_OK;
}

static enum zt_status no_claim(struct store *store, struct zt_text name, int64_t by_ms,
                               struct store_claim **out_claim, struct zt_error *error)
{
    (void)store;
    (void)name;
    (void)by_ms;
    (void)out_claim;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "no claims");
}

/* Before the first model is opened. */
static void put_elsewhere(struct world *world)
{
    shared.ops.claim = no_claim;
    shared.ops.read_fact = read_fact;
    shared.ops.write_fact = write_fact;
    world->server.store->claims = &shared.ops;
    world->config.writable = true;
    world->config.limits.digest_piece_bytes = PIECE;
}

static int set_up(void **state)
{
    free(shared.text);
    shared.text = NULL;
    shared.reads = 0;
    shared.writes = 0;
    shared.failure = ZT_OK;
    if (world_set_up(state) != 0)
        return -1;
    put_elsewhere(*state);
    return 0;
}

/* Another replica: it has the same store, and no state of its own. */
static void replace_replica(struct world *world)
{
    world_stop(world);
    world_command(world, "rm -rf .ztserve");
    world_start(world);
    put_elsewhere(world);
}

static unsigned count_of(const unsigned *counter)
{
    unsigned count;

    pthread_mutex_lock(&shared.lock);
    count = *counter;
    pthread_mutex_unlock(&shared.lock);
    return count;
}

static void wait_for_write(unsigned count)
{
    AWAIT(count_of(&shared.writes) == count);
}

static void wait_until_idle(struct world *world)
{
    workers_stop(world->server.workers);
    world->server.workers = workers_start(2);
    assert_non_null(world->server.workers);
}

/* What waits for a later moment to be saved is saved now. */
static void save_all(struct world *world)
{
    wait_until_idle(world);
    world_stop(world);
    world_start(world);
}

/* --- a model --- */

/* The objects "large", of several pieces, and "small". Their digests are not stated. */
static struct generation *open_model(struct world *world)
{
    struct container container = {0};
    struct generation *generation;
    char manifest[1024];
    char path[128];

    snprintf(manifest, sizeof(manifest),
             "{\"version\":\"1.2.0\",\"objects\":{\"large\":{\"shape\":[%d],\"format\":\"dense\","
             "\"components\":{\"data\":{\"dtype\":\"u8\",\"offset\":64,\"length\":%d}}},"
             "\"small\":{\"shape\":[16],\"format\":\"dense\",\"components\":{\"data\":{\"dtype\":"
             "\"u8\",\"offset\":%d,\"length\":16}}}}}",
             LARGE, LARGE, SMALL_OFFSET);
    snprintf(path, sizeof(path), "%s/m.zt", world->root);
    if (access(path, F_OK) != 0) {
        container_make(&container, CONTAINER_ZT1, SMALL_OFFSET - 64 + 16, manifest);
        world_write(world, "m.zt", container.bytes, container.length);
        container_free(&container);
    }
    world_wait_loaded(world);
    generation = world_find(world, "m");
    assert_non_null(generation);
    assert_non_null(generation->model);
    return generation;
}

/* Has one replica find and write both digests; the block of "large" for comparison. */
static void find_both(struct world *world, uint8_t out_block[5 * SHA256_BYTES])
{
    struct generation *generation = open_model(world);

    stored_digest_want(&world->server, generation, A);
    stored_digest_want(&world->server, generation, B);
    AWAIT(digest_block(generation, A) != NULL);
    AWAIT(digest_block(generation, B) != NULL);
    memcpy(out_block, digest_block(generation, A), (size_t)5 * SHA256_BYTES);
    wait_for_write(1);
    generation_release(generation);
}

/* What a new replica knows of both components, without reading them. */
static void assert_recalled(struct world *world, bool first, bool second)
{
    struct generation *generation = open_model(world);

    wait_until_idle(world);
    assert_int_equal(digest_block(generation, A) != NULL, first);
    assert_int_equal(digest_block(generation, B) != NULL, second);
    generation_release(generation);
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, world_tear_down)

/* --- tests --- */

PREPARED(what_one_found_the_next_knows)
{
    uint8_t block[5 * SHA256_BYTES];
    struct generation *generation;

    find_both(world, block);
    assert_string_equal(shared.kind, "digests-65536");
    replace_replica(world);
    generation = open_model(world);
    AWAIT(digest_block(generation, A) != NULL);
    AWAIT(digest_block(generation, B) != NULL);
    assert_memory_equal(digest_block(generation, A), block, sizeof(block));
    generation_release(generation);
    /* It has nothing to add. */
    save_all(world);
    assert_int_equal(count_of(&shared.writes), 1);
}

PREPARED(recalled_digests_are_saved_here_too)
{
    uint8_t block[5 * SHA256_BYTES];

    find_both(world, block);
    replace_replica(world);
    assert_recalled(world, true, true);
    world_stop(world);
    shared.failure = ZT_UNAVAILABLE;
    shared.reads = 0;
    world_start(world);
    put_elsewhere(world);
    assert_recalled(world, true, true);
    assert_int_equal(shared.reads, 0);
}

PREPARED(server_that_takes_no_uploads_writes_nothing)
{
    struct generation *generation;

    world->config.writable = false;
    generation = open_model(world);
    stored_digest_want(&world->server, generation, A);
    AWAIT(digest_block(generation, A) != NULL);
    generation_release(generation);
    save_all(world);
    assert_int_equal(shared.writes, 0);
    assert_int_equal(shared.reads, 1);
}

PREPARED(folder_has_no_facts)
{
    struct generation *generation;

    world->server.store->claims = NULL;
    generation = open_model(world);
    stored_digest_want(&world->server, generation, A);
    AWAIT(digest_block(generation, A) != NULL);
    generation_release(generation);
    save_all(world);
    assert_int_equal(shared.writes, 0);
    assert_int_equal(shared.reads, 0);
}

PREPARED(store_that_is_away_costs_nothing)
{
    struct generation *generation;

    shared.failure = ZT_UNAVAILABLE;
    generation = open_model(world);
    stored_digest_want(&world->server, generation, A);
    AWAIT(digest_block(generation, A) != NULL);
    generation_release(generation);
    save_all(world);
}

PREPARED(fact_of_other_pieces_is_not_taken)
{
    uint8_t block[5 * SHA256_BYTES];

    find_both(world, block);
    replace_replica(world);
    world->config.limits.digest_piece_bytes = 2 * PIECE;
    assert_recalled(world, false, false);
    /* Nor under the other's name. */
    replace_replica(world);
    world->config.limits.digest_piece_bytes = 2 * PIECE;
    strcpy(shared.kind, "digests-131072");
    assert_recalled(world, false, false);
}

PREPARED(fact_of_another_version_is_not_taken)
{
    uint8_t block[5 * SHA256_BYTES];
    struct generation *generation;

    find_both(world, block);
    world_command(world, "touch -d 2020-01-01 m.zt");
    replace_replica(world);
    assert_recalled(world, false, false);
    /* Nor if somebody has put it under this one's name. */
    generation = open_model(world);
    shared.identity = generation->identity;
    generation_release(generation);
    replace_replica(world);
    assert_recalled(world, false, false);
    assert_true(count_of(&shared.reads) >= 3);
}

PREPARED(damaged_facts_are_not_taken)
{
    uint8_t block[5 * SHA256_BYTES];
    size_t length;
    char *whole;

    find_both(world, block);
    length = shared.length;
    whole = malloc(length);
    assert_non_null(whole);
    memcpy(whole, shared.text, length);
    /* Cut within the second record: the first is good. */
    shared.length = length - 1;
    replace_replica(world);
    assert_recalled(world, true, false);
    /* A digest that was flipped in the first, so that its hash is wrong. */
    memcpy(shared.text, whole, length);
    shared.length = length;
    shared.text[length / 2] ^= 1;
    replace_replica(world);
    assert_recalled(world, false, false);
    /* Nothing at all, and noise. */
    shared.length = 0;
    replace_replica(world);
    assert_recalled(world, false, false);
    memset(shared.text, 0xff, length);
    shared.length = length;
    replace_replica(world);
    assert_recalled(world, false, false);
    free(whole);
}
