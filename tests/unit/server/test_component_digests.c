/* Digests computed in the background, saved, and components found by them. */
#include "model_world.h"

#include "verify/blob_index.h"
#include "verify/component_digests.h"
#include "verify/digest_work.h"
#include "zt/verify.h"

enum { A, B, C, D };

#define PIECE 65536
#define LARGE (3 * PIECE + 100)

static void restart(struct world *world)
{
    world_stop(world);
    world_start(world);
}

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

static bool is_found_soon(const struct generation *generation, uint32_t component)
{
    for (int i = 0; i < 3000 && digest_block(generation, component) == NULL; i++)
        pause_ms(1);
    return digest_block(generation, component) != NULL;
}

/* Stopping the workers runs all that is queued. */
static void wait_until_idle(struct world *world)
{
    workers_stop(world->server.workers);
    world->server.workers = workers_start(2);
    assert_non_null(world->server.workers);
}

static void assert_whole(const struct generation *generation, uint32_t component, uint64_t first,
                         uint64_t length)
{
    uint8_t wanted[32];
    uint8_t found[32];

    expected(first, length, wanted);
    assert_true(stored_digest_whole(generation, component, found));
    assert_memory_equal(found, wanted, 32);
}

static void assert_piece(const struct generation *generation, uint64_t first, uint64_t length)
{
    uint8_t wanted[32];
    uint8_t found[32];

    expected(first, length, wanted);
    assert_true(stored_digest_piece(generation, A, first, length, found));
    assert_memory_equal(found, wanted, 32);
}

static void assert_all_of_large(const struct generation *generation)
{
    assert_whole(generation, A, 0, LARGE);
    assert_piece(generation, 0, LARGE);
    for (uint64_t i = 0; i < 3; i++)
        assert_piece(generation, i * PIECE, PIECE);
    assert_piece(generation, (uint64_t)3 * PIECE, 100);
}

static struct generation *find_large(struct world *world, const char *digest)
{
    struct generation *generation;

    world->config.limits.digest_piece_bytes = PIECE;
    write_large(world, "m.zt", digest);
    world_wait_loaded(world);
    catalog_refresh(world->server.catalog);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    generation = world_find(world, "m");
    assert_non_null(generation);
    return generation;
}

static void digests_of_the_whole_and_of_pieces_are_computed(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);
    uint8_t found[32];

    assert_false(stored_digest_whole(generation, A, found));
    for (int i = 0; i < 3; i++)
        stored_digest_want(&world->server, generation, A);
    stored_digest_want(&world->server, generation, B);
    assert_true(is_found_soon(generation, A));
    assert_true(is_found_soon(generation, B));
    assert_all_of_large(generation);
    assert_whole(generation, B, 0, 0);
    generation_release(generation);
}

static void only_exact_pieces_have_a_digest(void **state)
{
    static const uint64_t ranges[][2] = {
        {1, PIECE},      {0, PIECE - 1}, {0, 2 * PIECE},     {PIECE, LARGE - PIECE},
        {3 * PIECE, 99}, {LARGE, 0},     {3 * PIECE, PIECE}, {4 * PIECE, UINT64_MAX}};
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);
    uint8_t found[32];

    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        assert_false(stored_digest_piece(generation, A, ranges[i][0], ranges[i][1], found));
    generation_release(generation);
}

static void verified_components_are_read_without_being_asked_for(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);
    uint8_t whole[32];
    char text[ZT_DIGEST_TEXT_SIZE] = "sha256:";

    expected(0, LARGE, whole);
    for (int i = 0; i < 32; i++)
        sprintf(text + 7 + 2 * i, "%02x", whole[i]);
    generation_release(generation);
    generation = find_large(world, text);
    assert_false(stored_digest_whole(generation, A, whole));
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    assert_whole(generation, A, 0, LARGE);
    assert_true(is_found_soon(generation, A));
    assert_all_of_large(generation);
    generation_release(generation);
}

static void corrupt_components_have_no_digest(void **state)
{
    struct world *world = *state;
    struct generation *generation;
    uint8_t found[32];

    world_model(world, "m.zt", false);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    generation = world_find(world, "m");
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    stored_digest_want(&world->server, generation, B);
    wait_until_idle(world);
    assert_null(digest_block(generation, B));
    assert_false(stored_digest_whole(generation, B, found));
    generation_release(generation);
}

/* The verdict "verified" is about bytes that have rotted since: what the second reading finds must
 * not be kept. */
static void bytes_that_rotted_since_become_corrupt(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);
    uint8_t whole[32];
    char text[ZT_DIGEST_TEXT_SIZE] = "sha256:";

    expected(0, LARGE - 1, whole);
    for (int i = 0; i < 32; i++)
        sprintf(text + 7 + 2 * i, "%02x", whole[i]);
    generation_release(generation);
    generation = find_large(world, text);
    verifier_learn(world->server.verifier, generation,
                   (const unsigned char[]){ZT_VERDICT_VERIFIED, ZT_VERDICT_UNDIGESTED}, 2);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_VERIFIED);
    stored_digest_want(&world->server, generation, A);
    wait_until_idle(world);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_CORRUPT);
    assert_null(digest_block(generation, A));
    assert_false(stored_digest_whole(generation, A, whole));
    generation_release(generation);
}

static void digests_outlive_the_process(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);

    stored_digest_want(&world->server, generation, B);
    assert_true(is_found_soon(generation, B));
    pause_ms(700);
    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    generation_release(generation);
    restart(world);
    world_wait_loaded(world);
    generation = world_find(world, "m");
    assert_all_of_large(generation);
    assert_whole(generation, B, 0, 0);
    generation_release(generation);
}

static void a_torn_record_is_ignored(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);

    stored_digest_want(&world->server, generation, B);
    assert_true(is_found_soon(generation, B));
    pause_ms(700);
    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    generation_release(generation);
    world_stop(world);
    world_command(world, "truncate -s -1 .ztserve/digests/*");
    world_start(world);
    world_wait_loaded(world);
    generation = world_find(world, "m");
    assert_whole(generation, B, 0, 0);
    assert_null(digest_block(generation, A));
    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    generation_release(generation);
    restart(world);
    world_wait_loaded(world);
    generation = world_find(world, "m");
    assert_all_of_large(generation);
    generation_release(generation);
}

static void a_changed_record_is_not_believed(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);

    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    generation_release(generation);
    world_stop(world);
    /* A byte of the whole's digest, after the header and two numbers. */
    world_command(
        world, "printf x | dd of=$(ls .ztserve/digests/*) bs=1 seek=80 conv=notrunc 2>/dev/null");
    world_start(world);
    world_wait_loaded(world);
    generation = world_find(world, "m");
    assert_null(digest_block(generation, A));
    generation_release(generation);
}

static void pieces_of_another_size_are_computed_again(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);

    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    generation_release(generation);
    world_stop(world);
    world->config.limits.digest_piece_bytes = 2 * PIECE;
    world_start(world);
    world_wait_loaded(world);
    generation = world_find(world, "m");
    assert_null(digest_block(generation, A));
    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    assert_piece(generation, (uint64_t)2 * PIECE, PIECE + 100);
    generation_release(generation);
}

static void another_version_starts_without_digests(void **state)
{
    struct world *world = *state;
    struct generation *generation = find_large(world, NULL);
    struct generation *other;

    stored_digest_want(&world->server, generation, A);
    assert_true(is_found_soon(generation, A));
    pause_ms(700);
    other = find_large(world, NULL);
    assert_ptr_not_equal(other, generation);
    assert_null(digest_block(other, A));
    generation_release(other);
    generation_release(generation);
    world_command(world, "rm m.zt");
    restart(world);
    world_wait_loaded(world);
    world_stop(world);
    world_command(world, "test -z \"$(ls .ztserve/digests)\"");
    world_start(world);
}

static void nothing_is_computed_when_it_is_turned_off(void **state)
{
    struct world *world = *state;
    struct generation *generation;

    world->config.limits.digest_piece_bytes = 0;
    world_model(world, "m.zt", true);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    generation = world_find(world, "m");
    stored_digest_want(&world->server, generation, C);
    wait_until_idle(world);
    assert_false(digests_are_on(generation));
    assert_null(digest_block(generation, C));
    generation_release(generation);
}

static void a_run_reads_components_without_a_digest(void **state)
{
    struct world *world = *state;
    struct generation *generation;

    world_model(world, "m.zt", true);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    generation = world_find(world, "m");
    verifier_start(world->server.verifier, generation);
    assert_true(is_found_soon(generation, C));
    assert_true(is_found_soon(generation, D));
    wait_until_idle(world);
    /* Its digest is in the file, and the only piece is the whole. */
    assert_null(digest_block(generation, A));
    assert_whole(generation, A, 0, 16);
    generation_release(generation);
}

/* --- finding components by digest --- */

static enum blob_answer blob(struct world *world, uint64_t first, uint64_t length, unsigned skip)
{
    struct component_place place = {NULL, 0};
    enum blob_answer answer;
    uint8_t sha256[32];

    expected(first, length, sha256);
    answer = blob_find(&world->server, sha256, (struct blob_search){.skip = skip, .may_wait = true},
                       &place);
    generation_release(place.generation);
    return answer;
}

static void components_are_found_by_stated_digests(void **state)
{
    struct world *world = *state;
    struct component_place place = {NULL, 0};
    uint8_t sha256[32];

    world_model(world, "m.zt", true);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    expected(0, 16, sha256);
    assert_int_equal(blob_find(&world->server, sha256, (struct blob_search){.skip = 0}, &place),
                     BLOB_BUSY);
    assert_int_equal(blob(world, 0, 16, 0), BLOB_FOUND);
    assert_int_equal(blob_find(&world->server, sha256, (struct blob_search){.skip = 0}, &place),
                     BLOB_FOUND);
    assert_string_equal(place.generation->path, "m.zt");
    assert_int_equal(place.component, A);
    generation_release(place.generation);
    assert_int_equal(blob(world, 64, 16, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 128, 16, 0), BLOB_NONE);
}

static void components_are_found_by_computed_digests(void **state)
{
    struct world *world = *state;
    struct generation *generation;

    world_model(world, "m.zt", true);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    assert_int_equal(blob(world, 128, 16, 0), BLOB_NONE);
    generation = world_find(world, "m");
    stored_digest_want(&world->server, generation, C);
    wait_until_idle(world);
    assert_int_equal(blob(world, 128, 16, 0), BLOB_FOUND);
    generation_release(generation);
}

static void removed_and_replaced_components_leave_the_index(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    world_model(world, "n.zt", true);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    generation_release(catalog_update(world->server.catalog, "n.zt"));
    assert_int_equal(blob(world, 0, 16, 1), BLOB_FOUND);
    assert_int_equal(blob(world, 0, 16, 2), BLOB_CORRUPT);
    world_command(world, "rm n.zt");
    assert_null(catalog_update(world->server.catalog, "n.zt"));
    assert_int_equal(blob(world, 0, 16, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 0, 16, 1), BLOB_CORRUPT);
    generation_release(find_large(world, NULL));
    assert_int_equal(blob(world, 0, 16, 0), BLOB_NONE);
}

static void the_index_is_rebuilt_when_much_of_it_is_gone(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    assert_int_equal(blob(world, 0, 16, 0), BLOB_FOUND);
    for (int i = 0; i < 1200; i++) {
        world_command(world, i % 2 == 0 ? "ln m.zt n.zt" : "rm n.zt");
        generation_release(catalog_update(world->server.catalog, "n.zt"));
    }
    assert_int_equal(blob(world, 0, 16, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 64, 16, 0), BLOB_FOUND);
    assert_int_equal(blob(world, 0, 16, 1), BLOB_CORRUPT);
}

static void corrupt_candidates_are_passed_over(void **state)
{
    struct world *world = *state;
    struct generation *generation;

    world_model(world, "bad.zt", false);
    generation_release(catalog_update(world->server.catalog, "bad.zt"));
    generation = world_find(world, "bad");
    /* States the digest of the bytes from 65 - 64 = 1 behind "b". */
    assert_int_equal(blob(world, 65, 16, 0), BLOB_FOUND);
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    assert_int_equal(blob(world, 65, 16, 0), BLOB_CORRUPT);
    generation_release(generation);
}

/* As if the file had been written to while it was read. */
static void digests_of_bytes_that_changed_are_not_kept(void **state)
{
    struct world *world = *state;
    struct generation *generation;
    uint8_t sha256[SHA256_BYTES];

    world_model(world, "m.zt", true);
    generation_release(catalog_update(world->server.catalog, "m.zt"));
    generation = world_find(world, "m");
    world_overwrite(world, "m.zt", 192);
    stored_digest_want(&world->server, generation, C);
    wait_until_idle(world);
    assert_null(digest_block(generation, C));
    assert_false(stored_digest_whole(generation, C, sha256));
    generation_release(generation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(digests_of_the_whole_and_of_pieces_are_computed),
        WORLD_TEST(only_exact_pieces_have_a_digest),
        WORLD_TEST(verified_components_are_read_without_being_asked_for),
        WORLD_TEST(corrupt_components_have_no_digest),
        WORLD_TEST(bytes_that_rotted_since_become_corrupt),
        WORLD_TEST(digests_outlive_the_process),
        WORLD_TEST(a_torn_record_is_ignored),
        WORLD_TEST(a_changed_record_is_not_believed),
        WORLD_TEST(pieces_of_another_size_are_computed_again),
        WORLD_TEST(another_version_starts_without_digests),
        WORLD_TEST(nothing_is_computed_when_it_is_turned_off),
        WORLD_TEST(a_run_reads_components_without_a_digest),
        WORLD_TEST(components_are_found_by_stated_digests),
        WORLD_TEST(components_are_found_by_computed_digests),
        WORLD_TEST(removed_and_replaced_components_leave_the_index),
        WORLD_TEST(the_index_is_rebuilt_when_much_of_it_is_gone),
        WORLD_TEST(corrupt_candidates_are_passed_over),
        WORLD_TEST(digests_of_bytes_that_changed_are_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
