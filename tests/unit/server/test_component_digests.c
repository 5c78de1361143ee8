/* Digests computed in the background, saved, and components found by them. */
#include "model_world.h"
#include "tests.h"

#include "verify/blob_index.h"
#include "verify/component_digests.h"
#include "verify/digest_work.h"
#include "verify/held_component.h"
#include "zt/verify.h"

enum { A, B, C, D };

#define PIECE 65536
#define LARGE (3 * PIECE + 100)

/* Of the model "m"; released after the test. */
static struct generation *generation;

/* One object "large" of several pieces, without a digest (or with the text given), and the empty
 * "none". */
static void write_large(const struct world *world, const char *path, const char *digest)
{
    struct container container = {0};
    char manifest[1024];

    snprintf(manifest, sizeof(manifest),
             "{\"version\":\"1.2.0\",\"objects\":{\"large\":{\"shape\":[%d],\"format\":\"dense\","
             "\"components\":{"
             "\"data\":{\"dtype\":\"u8\",\"offset\":64,\"length\":%d%s%s%s}}},"
             "\"none\":{\"shape\":[0],\"format\":\"dense\",\"components\":{\"data\":{\"dtype\":"
             "\"u8\",\"offset\":64,"
             "\"length\":0}}}}}",
             LARGE, LARGE, digest != NULL ? ",\"digest\":\"" : "", digest != NULL ? digest : "",
             digest != NULL ? "\"" : "");
    container_make(&container, CONTAINER_ZT1, LARGE, manifest);
    world_write(world, path, container.bytes, container.length);
    container_free(&container);
}

/* Of bytes [first, first + length) of the data that containers are made with. */
static void expected(uint64_t first, uint64_t length, uint8_t out_sha256[32])
{
    uint8_t *bytes = malloc(length + 1);
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    for (uint64_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)((first + i) % 251);
    assert_int_equal(zt_hasher_new(ZT_DIGEST_SHA256, &hasher), ZT_OK);
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, &digest);
    memcpy(out_sha256, digest.bytes, 32);
    zt_hasher_free(hasher);
    free(bytes);
}

static void await_digest(uint32_t component)
{
    AWAIT(digest_block(generation, component) != NULL);
}

static void compute(struct world *world, uint32_t component)
{
    stored_digest_want(&world->server, generation, component);
    await_digest(component);
}

static void assert_none(uint32_t component)
{
    uint8_t found[32];

    assert_null(digest_block(generation, component));
    assert_false(stored_digest_whole(generation, component, found));
}

/* Stopping the workers runs all that is queued. */
static void wait_until_idle(struct world *world)
{
    workers_stop(world->server.workers);
    world->server.workers = workers_start(2);
    assert_non_null(world->server.workers);
}

/* As wanted, and after all jobs. */
static void want_in_vain(struct world *world, uint32_t component)
{
    stored_digest_want(&world->server, generation, component);
    wait_until_idle(world);
    assert_none(component);
}

static void assert_whole(uint32_t component, uint64_t first, uint64_t length)
{
    uint8_t wanted[32];
    uint8_t found[32];

    expected(first, length, wanted);
    assert_true(stored_digest_whole(generation, component, found));
    assert_memory_equal(found, wanted, 32);
}

static void assert_piece(uint64_t first, uint64_t length)
{
    uint8_t wanted[32];
    uint8_t found[32];

    expected(first, length, wanted);
    assert_true(stored_digest_piece(generation, A, first, length, found));
    assert_memory_equal(found, wanted, 32);
}

static void assert_all_of_large(void)
{
    assert_whole(A, 0, LARGE);
    assert_piece(0, LARGE);
    for (uint64_t i = 0; i < 3; i++)
        assert_piece(i * PIECE, PIECE);
    assert_piece((uint64_t)3 * PIECE, 100);
}

static void find(struct world *world)
{
    generation_release(generation);
    generation = world_find(world, "m");
    assert_non_null(generation);
}

static void find_large(struct world *world, const char *digest)
{
    world->config.limits.digest_piece_bytes = PIECE;
    write_large(world, "m.zt", digest);
    world_wait_loaded(world);
    catalog_refresh(world->server.catalog);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    find(world);
}

/* With the digest of its first bytes as that of the whole. */
static void find_large_with_digest(struct world *world, uint64_t length)
{
    char text[ZT_DIGEST_TEXT_SIZE] = "sha256:";
    uint8_t sha256[32];

    expected(0, length, sha256);
    for (int i = 0; i < 32; i++)
        sprintf(text + 7 + 2 * i, "%02x", sha256[i]);
    find_large(world, text);
}

static void find_model(struct world *world, bool sound)
{
    world_add(world, "m.zt", sound);
    find(world);
}

/* Ends what knows the digests, runs a command, and begins again. */
static void restart(struct world *world, const char *command)
{
    generation_release(generation);
    generation = NULL;
    world_stop(world);
    world_command(world, command);
    world_start(world);
    world_wait_loaded(world);
    generation = world_find(world, "m");
}

static void await_saved(const struct world *world)
{
    world_command(world, "for i in $(seq 3000); do test -s .ztserve/digests/* && exit 0; "
                         "sleep 0.01; done; exit 1");
}

static int tear_down(void **state)
{
    generation_release(generation);
    generation = NULL;
    return world_tear_down(state);
}

AROUND_EACH_TEST(world_set_up, tear_down)

TEST_ON(struct world *world, digests_of_the_whole_and_of_pieces_are_computed)
{
    uint8_t found[32];

    find_large(world, NULL);
    assert_false(stored_digest_whole(generation, A, found));
    for (int i = 0; i < 3; i++)
        stored_digest_want(&world->server, generation, A);
    compute(world, B);
    await_digest(A);
    assert_all_of_large();
    assert_whole(B, 0, 0);
}

TEST_ON(struct world *world, only_exact_pieces_have_a_digest)
{
    static const uint64_t ranges[][2] = {
        {1, PIECE},      {0, PIECE - 1}, {0, 2 * PIECE},     {PIECE, LARGE - PIECE},
        {3 * PIECE, 99}, {LARGE, 0},     {3 * PIECE, PIECE}, {4 * PIECE, UINT64_MAX}};
    uint8_t found[32];

    find_large(world, NULL);
    compute(world, A);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        assert_false(stored_digest_piece(generation, A, ranges[i][0], ranges[i][1], found));
}

TEST_ON(struct world *world, verified_components_are_read_without_being_asked_for)
{
    find_large_with_digest(world, LARGE);
    assert_none(A);
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    assert_whole(A, 0, LARGE);
    await_digest(A);
    assert_all_of_large();
}

TEST_ON(struct world *world, corrupt_components_have_no_digest)
{
    find_model(world, false);
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    want_in_vain(world, B);
}

/* The verdict "verified" is about bytes that have rotted since: what the second reading finds must
 * not be kept. */
TEST_ON(struct world *world, bytes_that_rotted_since_become_corrupt)
{
    find_large_with_digest(world, LARGE - 1);
    verifier_learn(world->server.verifier, generation,
                   (const unsigned char[]){ZT_VERDICT_VERIFIED, ZT_VERDICT_UNDIGESTED}, 2);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_VERIFIED);
    want_in_vain(world, A);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_CORRUPT);
}

TEST_ON(struct world *world, digests_outlive_the_process)
{
    find_large(world, NULL);
    compute(world, B);
    await_saved(world);
    compute(world, A);
    restart(world, "true");
    assert_all_of_large();
    assert_whole(B, 0, 0);
}

TEST_ON(struct world *world, a_torn_record_is_ignored)
{
    find_large(world, NULL);
    compute(world, B);
    await_saved(world);
    compute(world, A);
    restart(world, "truncate -s -1 .ztserve/digests/*");
    assert_whole(B, 0, 0);
    assert_null(digest_block(generation, A));
    compute(world, A);
    restart(world, "true");
    assert_all_of_large();
}

TEST_ON(struct world *world, a_changed_record_is_not_believed)
{
    find_large(world, NULL);
    compute(world, A);
    /* A byte of the whole's digest, after the header and two numbers. */
    restart(world,
            "printf x | dd of=$(ls .ztserve/digests/*) bs=1 seek=80 conv=notrunc 2>/dev/null");
    assert_null(digest_block(generation, A));
}

TEST_ON(struct world *world, pieces_of_another_size_are_computed_again)
{
    find_large(world, NULL);
    compute(world, A);
    world->config.limits.digest_piece_bytes = 2 * PIECE;
    restart(world, "true");
    assert_null(digest_block(generation, A));
    compute(world, A);
    assert_piece((uint64_t)2 * PIECE, PIECE + 100);
}

TEST_ON(struct world *world, another_version_starts_without_digests)
{
    struct generation *first;

    find_large(world, NULL);
    compute(world, A);
    await_saved(world);
    first = generation_hold(generation);
    find_large(world, NULL);
    assert_ptr_not_equal(first, generation);
    assert_null(digest_block(generation, A));
    generation_release(first);
    restart(world, "rm m.zt");
    restart(world, "test -z \"$(ls .ztserve/digests)\"");
}

TEST_ON(struct world *world, digests_of_other_bytes_of_the_same_version_are_removed)
{
    const struct catalog_observer observer = verifier_observer(world->server.verifier);
    struct generation *other;

    find_large(world, NULL);
    compute(world, A);
    await_saved(world);
    other = generation_open(&world->server, "m.zt", NULL);
    assert_non_null(other);
    other->ignores_saved = true;
    observer.opened(observer.context, other);
    generation_release(other);
    world_command(world, "test -z \"$(ls .ztserve/digests)\"");
}

TEST_ON(struct world *world, nothing_is_computed_when_it_is_turned_off)
{
    world->config.limits.digest_piece_bytes = 0;
    find_model(world, true);
    want_in_vain(world, C);
    assert_false(digests_are_on(generation));
}

TEST_ON(struct world *world, a_run_reads_components_without_a_digest)
{
    find_model(world, true);
    verifier_start(world->server.verifier, generation, JOB_OF_SERVER);
    await_digest(C);
    await_digest(D);
    wait_until_idle(world);
    /* Its digest is in the file, and the only piece is the whole. */
    assert_null(digest_block(generation, A));
    assert_whole(A, 0, 16);
}

/* As if the file had been written to while it was read. */
TEST_ON(struct world *world, digests_of_bytes_that_changed_are_not_kept)
{
    find_model(world, true);
    world_overwrite(world, "m.zt", 192);
    want_in_vain(world, C);
}

/* --- finding components by digest --- */

static enum blob_answer find_blob(struct world *world, uint64_t first, struct blob_search search,
                                  struct component_place *out_place)
{
    uint8_t sha256[32];

    expected(first, 16, sha256);
    return blob_find(&world->server, sha256, search, out_place);
}

static enum blob_answer blob(struct world *world, uint64_t first, unsigned skip)
{
    struct component_place place = {NULL, 0};
    const enum blob_answer answer =
        find_blob(world, first, (struct blob_search){.skip = skip, .may_wait = true}, &place);

    generation_release(place.generation);
    return answer;
}

TEST_ON(struct world *world, components_are_found_by_stated_digests)
{
    const struct blob_search at_once = {.skip = 0};
    struct component_place place = {NULL, 0};

    world_add(world, "m.zt", true);
    assert_int_equal(find_blob(world, 0, at_once, &place), BLOB_BUSY);
    assert_int_equal(blob(world, 0, 0), BLOB_FOUND);
    assert_int_equal(find_blob(world, 0, at_once, &place), BLOB_FOUND);
    assert_string_equal(place.generation->path, "m.zt");
    assert_int_equal(place.component, A);
    generation_release(place.generation);
    assert_int_equal(blob(world, 64, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 128, 0), BLOB_NONE);
}

TEST_ON(struct world *world, components_are_found_by_computed_digests)
{
    find_model(world, true);
    assert_int_equal(blob(world, 128, 0), BLOB_NONE);
    stored_digest_want(&world->server, generation, C);
    wait_until_idle(world);
    assert_int_equal(blob(world, 128, 0), BLOB_FOUND);
}

TEST_ON(struct world *world, removed_and_replaced_components_leave_the_index)
{
    world_add(world, "m.zt", true);
    world_add(world, "n.zt", true);
    assert_int_equal(blob(world, 0, 1), BLOB_FOUND);
    assert_int_equal(blob(world, 0, 2), BLOB_CORRUPT);
    world_command(world, "rm n.zt");
    assert_null(catalog_update(world->server.catalog, "n.zt"));
    assert_int_equal(blob(world, 0, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 0, 1), BLOB_CORRUPT);
    find_large(world, NULL);
    assert_int_equal(blob(world, 0, 0), BLOB_NONE);
}

TEST_ON(struct world *world, the_index_is_rebuilt_when_much_of_it_is_gone)
{
    world_add(world, "m.zt", true);
    assert_int_equal(blob(world, 0, 0), BLOB_FOUND);
    for (int i = 0; i < 1200; i++) {
        world_command(world, i % 2 == 0 ? "ln m.zt n.zt" : "rm n.zt");
        generation_release(catalog_update(world->server.catalog, "n.zt"));
    }
    assert_int_equal(blob(world, 0, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 64, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 0, 1), BLOB_CORRUPT);
}

TEST_ON(struct world *world, corrupt_candidates_are_passed_over)
{
    find_model(world, false);
    /* States the digest of the bytes from 65 - 64 = 1 behind "b". */
    assert_int_equal(blob(world, 65, 0), BLOB_FOUND);
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    assert_int_equal(blob(world, 65, 0), BLOB_CORRUPT);
}

static bool state_unverified(struct store *store, const char *path,
                             const struct file_identity *identity, struct store_stated *out_stated)
{
    (void)store;
    (void)identity;
    memset(out_stated, 0, sizeof(*out_stated));
    return strncmp(path, "mirrored", 8) == 0;
}

static bool find_held(struct world *world, uint64_t first, bool only_verified)
{
    const struct name_filter any = {NULL, NULL};
    struct held_component held;
    uint8_t sha256[32];
    bool found;

    expected(first, 16, sha256);
    found = held_component_find(&world->server, sha256, any, only_verified, &held);
    if (found) {
        assert_string_equal(held.generation->path, only_verified ? "m.zt" : "mirrored.zt");
        generation_release(held.generation);
    }
    return found;
}

TEST_ON(struct world *world, unverified_files_of_a_mirror_are_passed_over)
{
    static struct store_revision_ops revisions;

    revisions.state = state_unverified;
    world->server.store->revisions = &revisions;
    world_add(world, "m.zt", true);
    world_add(world, "mirrored.zt", true);
    assert_true(find_held(world, 0, false));
    assert_true(find_held(world, 0, true));
    world_command(world, "rm m.zt");
    assert_true(find_held(world, 0, false));
    assert_false(find_held(world, 0, true));
}
