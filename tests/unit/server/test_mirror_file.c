/* Mirrored files: bytes are passed on as they arrive, but never all of a file before it is
 * verified; wrong bytes are dropped. */
#include "support.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/workers.h"
#include "store/mirror/mirror_file.h"
#include "store/mirror/mirror_prefetch.h"
#include "zt/digest.h"

#define MIB ((uint64_t)1 << 20)
#define KIB ((uint64_t)1 << 10)

/* An upstream that holds its fetches until a test lets them go. */
static struct {
    char folder[64];
    struct cache *cache;
    struct workers *workers;
    struct mirror_files *files;
    pthread_mutex_t lock;
    struct cache_fetch *held[64];
    atomic_uint held_count;
    bool is_held;
    uint8_t *bytes; /* of the file */
    uint64_t size;
    atomic_uint_fast64_t fetched;
    atomic_bool spoils; /* the first byte of each fetch is wrong */
    atomic_bool fails;
    atomic_uint verified;
    atomic_uint settled;
    atomic_uint wrong;
    struct mirror_place place;
    uint8_t proof[MIRROR_PROOF_BYTES]; /* of the last verified one */
} world;

static void answer(struct cache_fetch *fetch)
{
    if (atomic_load(&world.fails)) {
        fetch->done(fetch, ZT_UNAVAILABLE, NULL);
        return;
    }
    memcpy(fetch->bytes, world.bytes + fetch->offset, fetch->length);
    if (atomic_load(&world.spoils))
        fetch->bytes[0] ^= 1;
    atomic_fetch_add(&world.fetched, fetch->length);
    fetch->done(fetch, ZT_OK, NULL);
}

static void fetch_one(struct upstream *upstream, const struct upstream_place *place,
                      struct cache_fetch *fetch)
{
    bool is_held;

    assert_null(upstream);
    assert_string_equal(place->path, "model.bin");
    pthread_mutex_lock(&world.lock);
    is_held = world.is_held;
    if (is_held) {
        assert_true(atomic_load(&world.held_count) < 64);
        world.held[atomic_fetch_add(&world.held_count, 1)] = fetch;
    }
    pthread_mutex_unlock(&world.lock);
    if (!is_held)
        answer(fetch);
}

static void hold(void)
{
    pthread_mutex_lock(&world.lock);
    world.is_held = true;
    pthread_mutex_unlock(&world.lock);
}

static void let_go(void)
{
    while (true) {
        struct cache_fetch *fetch = NULL;

        pthread_mutex_lock(&world.lock);
        world.is_held = false;
        if (atomic_load(&world.held_count) > 0)
            fetch = world.held[atomic_fetch_sub(&world.held_count, 1) - 1];
        pthread_mutex_unlock(&world.lock);
        if (fetch == NULL)
            return;
        answer(fetch);
    }
}

static void on_verified(void *context, const struct mirror_place *place)
{
    assert_ptr_equal(context, &world);
    assert_true(place->is_verified);
    pthread_mutex_lock(&world.lock);
    memcpy(world.proof, place->proof, sizeof(place->proof));
    pthread_mutex_unlock(&world.lock);
    atomic_fetch_add(&world.verified, 1);
}

/* After the clients. */
static void after_verified(void *context, const struct mirror_place *place)
{
    assert_ptr_equal(context, &world);
    assert_true(place->is_verified);
    atomic_fetch_add(&world.settled, 1);
}

static void on_wrong(void *context, const struct mirror_place *place)
{
    assert_ptr_equal(context, &world);
    assert_string_equal(place->file.repository, "acme/tiny");
    atomic_fetch_add(&world.wrong, 1);
}

static void start(bool is_strict)
{
    const struct cache_options cache = {.folder = world.folder};
    struct mirror_files_options options = {.fetch = fetch_one,
                                           .is_strict = is_strict,
                                           .on_verified = on_verified,
                                           .after_verified = after_verified,
                                           .on_wrong = on_wrong,
                                           .context = &world};

    assert_ok(cache_open(&cache, &world.cache, NULL));
    world.workers = workers_start(0);
    assert_non_null(world.workers);
    options.cache = world.cache;
    options.workers = world.workers;
    assert_ok(mirror_files_new(&options, &world.files, NULL));
}

static void stop(void)
{
    mirror_files_interrupt(world.files);
    let_go();
    workers_stop(world.workers);
    mirror_files_free(world.files);
    cache_close(world.cache);
}

static void have_file(uint64_t size, enum upstream_digest kind)
{
    struct zt_digest digest;
    struct zt_hasher *hasher;
    char header[40];

    world.size = size;
    world.bytes = malloc(size + 1);
    assert_non_null(world.bytes);
    for (uint64_t i = 0; i < size; i++)
        world.bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    world.place =
        (struct mirror_place){.file = {.repository = "acme/tiny",
                                       .commit = "0123456789012345678901234567890123456789",
                                       .path = "model.bin",
                                       .etag = "",
                                       .size_bytes = size,
                                       .digest_kind = kind}};
    if (kind == UPSTREAM_SHA256)
        assert_ok(zt_digest_of(ZT_DIGEST_SHA256, world.bytes, size, &digest));
    if (kind == UPSTREAM_GIT_SHA1) {
        assert_ok(zt_hasher_new(ZT_DIGEST_SHA1, &hasher));
        zt_hasher_update(hasher, header,
                         (size_t)snprintf(header, sizeof(header), "blob %zu", (size_t)size) + 1);
        zt_hasher_update(hasher, world.bytes, size);
        zt_hasher_finish(hasher, &digest);
        zt_hasher_free(hasher);
    }
    if (kind != UPSTREAM_NO_DIGEST)
        memcpy(world.place.file.digest, digest.bytes, digest.length_bytes);
}

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    strcpy(world.folder, "/tmp/test_mirrorXXXXXX");
    assert_non_null(mkdtemp(world.folder));
    pthread_mutex_init(&world.lock, NULL);
    return 0;
}

static int end(void **state)
{
    char command[100];

    (void)state;
    free(world.bytes);
    pthread_mutex_destroy(&world.lock);
    snprintf(command, sizeof(command), "rm -rf %s", world.folder);
    return system(command);
}

AROUND_EACH_TEST(begin, end)

static struct zt_source *open_file(void)
{
    struct zt_source *source = NULL;

    assert_ok(mirror_file_open(world.files, &world.place, &source, NULL));
    assert_int_equal(zt_source_size(source), world.size);
    return source;
}

static struct zt_source *start_again(bool is_strict)
{
    start(is_strict);
    return open_file();
}

static struct zt_source *start_with(uint64_t size, enum upstream_digest kind, bool is_strict)
{
    have_file(size, kind);
    return start_again(is_strict);
}

static void close_and_stop(struct zt_source *source)
{
    zt_source_close(source);
    stop();
}

struct awaited {
    struct zt_source_waiter waiter;
    atomic_bool is_woken;
};

static void note_woken(struct zt_source_waiter *waiter)
{
    atomic_store(&((struct awaited *)waiter)->is_woken, true);
}

static void await_from(struct zt_source *source, uint64_t offset, struct awaited *awaited)
{
    awaited->waiter.wake = note_woken;
    atomic_store(&awaited->is_woken, false);
    zt_source_await(source, offset, world.size - offset, 1, &awaited->waiter);
}

/* Reads as a client does that is given bytes as they may be passed on. Returns the outcome. */
static enum zt_status read_as_client(struct zt_source *source, uint64_t at)
{
    uint8_t *buffer = malloc(256 * KIB);
    struct awaited awaited;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && at < world.size) {
        uint64_t length = world.size - at < 256 * KIB ? world.size - at : 256 * KIB;

        length = zt_source_pass(source, at, length);
        if (length == 0) {
            await_from(source, at, &awaited);
            AWAIT(atomic_load(&awaited.is_woken));
            status = awaited.waiter.error.status;
            continue;
        }
        status = zt_source_read_at(source, at, buffer, length, NULL);
        if (status == ZT_OK && !atomic_load(&world.spoils))
            assert_memory_equal(buffer, world.bytes + at, length);
        at += length;
    }
    free(buffer);
    return status;
}

TEST(a_file_is_passed_on_and_verified)
{
    static const uint64_t sizes[] = {1, MIB, MIB + 1, 20 * MIB + 7};

    for (unsigned i = 0; i < 8; i++) {
        struct zt_source *source =
            start_with(sizes[i / 2], i % 2 == 0 ? UPSTREAM_SHA256 : UPSTREAM_GIT_SHA1, false);
        struct zt_pin pin;

        assert_false(mirror_file_is_verified(source));
        assert_int_equal(read_as_client(source, 0), ZT_OK);
        assert_true(mirror_file_is_verified(source));
        AWAIT(mirror_file_bytes_here(source) == world.size);
        assert_int_equal(atomic_load(&world.verified), i + 1);
        AWAIT(atomic_load(&world.settled) == i + 1);
        zt_source_close(source);
        /* It has stayed open, so no block has to be compared first. */
        source = open_file();
        assert_ok(zt_source_pin(source, 0, world.size, false, &pin, NULL));
        zt_pin_release(&pin);
        close_and_stop(source);
        free(world.bytes);
        world.bytes = NULL;
    }
    assert_int_equal(atomic_load(&world.wrong), 0);
}

TEST(the_last_block_waits_for_the_verdict_however_blocks_are_asked_for)
{
    const uint64_t size = 5 * MIB + 100;
    struct zt_source *source = start_with(size, UPSTREAM_SHA256, false);
    struct awaited awaited;

    /* A client that begins at the end may have it. */
    assert_int_equal(zt_source_pass(source, 5 * MIB, 100), 100);
    assert_int_equal(zt_source_pass(source, 0, 3 * MIB), 3 * MIB);
    hold();
    /* Now 3 and 4 are left, and 4 is held back. */
    assert_int_equal(zt_source_pass(source, 3 * MIB, 2 * MIB), MIB);
    assert_int_equal(zt_source_pass(source, 4 * MIB, 1), 0);
    assert_int_equal(zt_source_pass(source, 0, size), 4 * MIB);
    await_from(source, 4 * MIB, &awaited);
    AWAIT(atomic_load(&world.held_count) > 0);
    assert_false(atomic_load(&awaited.is_woken));
    let_go();
    AWAIT(atomic_load(&awaited.is_woken));
    assert_int_equal(awaited.waiter.error.status, ZT_OK);
    assert_int_equal(zt_source_pass(source, 0, size), size);
    close_and_stop(source);
}

TEST(a_strict_upstream_passes_nothing_on_before_the_verdict)
{
    struct zt_source *source = start_with(3 * MIB, UPSTREAM_SHA256, true);

    assert_int_equal(zt_source_pass(source, 0, 10), 0);
    assert_int_equal(read_as_client(source, 0), ZT_OK);
    assert_int_equal(zt_source_pass(source, 0, 3 * MIB), 3 * MIB);
    close_and_stop(source);
}

TEST(wrong_bytes_are_dropped_and_the_next_open_begins_again)
{
    struct zt_source *source = start_with(12 * MIB + 5, UPSTREAM_SHA256, false);
    struct zt_source *other;
    uint8_t byte;

    other = open_file();
    atomic_store(&world.spoils, true);
    assert_int_equal(read_as_client(source, 0), ZT_STALE);
    atomic_store(&world.spoils, false);
    assert_true(mirror_file_is_lost(other));
    assert_int_equal(zt_source_read_at(other, 0, &byte, 1, NULL), ZT_STALE);
    assert_int_equal(zt_source_pass(other, 0, 1), 0);
    assert_int_equal(read_as_client(other, 0), ZT_STALE);
    assert_int_equal(atomic_load(&world.wrong), 1);
    assert_true(mirror_file_was_wrong(world.files, &world.place));
    zt_source_close(source);
    source = open_file();
    assert_int_equal(read_as_client(source, 0), ZT_OK);
    assert_true(mirror_file_is_verified(source));
    assert_true(mirror_file_is_lost(other));
    zt_source_close(other);
    zt_source_close(source);
    AWAIT(atomic_load(&world.settled) == 1);
    stop();
}

TEST(a_proof_outlives_a_restart_and_evicted_bytes_do_not)
{
    struct zt_source *source = start_with(3 * MIB, UPSTREAM_SHA256, false);
    uint64_t fetched;

    assert_int_equal(read_as_client(source, 0), ZT_OK);
    AWAIT(atomic_load(&world.settled) == 1);
    close_and_stop(source);
    fetched = atomic_load(&world.fetched);
    world.place.is_verified = true;
    memcpy(world.place.proof, world.proof, sizeof(world.proof));
    source = start_again(true);
    assert_true(mirror_file_is_verified(source));
    assert_int_equal(read_as_client(source, 0), ZT_OK);
    assert_int_equal(atomic_load(&world.fetched), fetched);
    close_and_stop(source);
    /* Another proof is none. */
    world.place.proof[3] ^= 1;
    source = start_again(false);
    AWAIT(atomic_load(&world.settled) == 2);
    assert_true(mirror_file_is_verified(source));
    close_and_stop(source);
}

/* A reader that finds the bytes wrong must not make the cache fetch other ones: a client would have
 * the beginning of the old ones and the end of the new ones. */
TEST(an_invalidated_range_keeps_its_bytes_until_the_verdict)
{
    struct zt_source *source = start_with(4 * MIB, UPSTREAM_SHA256, false);
    uint8_t first;
    uint8_t again;

    atomic_store(&world.spoils, true);
    assert_ok(zt_source_read_at(source, 0, &first, 1, NULL));
    AWAIT(mirror_file_bytes_here(source) == MIB);
    assert_int_equal(first, world.bytes[0] ^ 1);
    assert_int_equal(zt_source_pass(source, 0, 1), 1);
    atomic_store(&world.spoils, false);
    hold();
    zt_source_invalidate(source, 0, world.size);
    assert_ok(zt_source_read_at(source, 0, &again, 1, NULL));
    assert_int_equal(again, first);
    /* The rest is fetched although no client asks for it. */
    AWAIT(atomic_load(&world.held_count) > 0);
    let_go();
    AWAIT(atomic_load(&world.wrong) == 1);
    assert_int_equal(read_as_client(source, MIB), ZT_STALE);
    close_and_stop(source);
}

TEST(bytes_of_an_earlier_process_count_as_passed_on)
{
    uint8_t *buffer = malloc(2 * MIB);
    struct zt_source *source = start_with(4 * MIB, UPSTREAM_SHA256, false);

    assert_int_equal(zt_source_pass(source, 0, 2 * MIB), 2 * MIB);
    assert_ok(zt_source_read_at(source, 0, buffer, 2 * MIB, NULL));
    free(buffer);
    AWAIT(mirror_file_bytes_here(source) >= 2 * MIB);
    close_and_stop(source);
    source = start_again(false);
    assert_int_equal(zt_source_pass(source, 2 * MIB, 2 * MIB), MIB);
    close_and_stop(source);
}

/* A header that the server reads is in its answers, and in what it exports. */
TEST(bytes_that_the_server_reads_count_as_passed_on)
{
    struct zt_source *source;
    uint8_t byte;

    have_file(3 * MIB, UPSTREAM_SHA256);
    start(false);
    mirror_files_interrupt(world.files);
    source = open_file();
    assert_ok(zt_source_read_at(source, 0, &byte, 1, NULL));
    assert_int_equal(zt_source_pass(source, MIB, 2 * MIB), MIB);
    close_and_stop(source);
}

/* A client may have had all but any one of them. */
TEST(a_file_that_an_earlier_process_fetched_whole_is_withheld_until_it_is_verified)
{
    uint8_t *buffer = malloc(3 * MIB);
    struct zt_source *source;

    have_file(3 * MIB, UPSTREAM_SHA256);
    start(false);
    /* As if it was killed before the verdict. */
    mirror_files_interrupt(world.files);
    source = open_file();
    assert_ok(zt_source_read_at(source, 0, buffer, 3 * MIB, NULL));
    free(buffer);
    AWAIT(mirror_file_bytes_here(source) == 3 * MIB);
    close_and_stop(source);
    start(false);
    mirror_files_interrupt(world.files);
    source = open_file();
    assert_int_equal(zt_source_pass(source, 0, 1), 0);
    close_and_stop(source);
    source = start_again(false);
    assert_int_equal(read_as_client(source, 0), ZT_OK);
    assert_int_equal(zt_source_pass(source, 0, 3 * MIB), 3 * MIB);
    close_and_stop(source);
}

TEST(a_file_without_a_digest_is_passed_on_whole)
{
    struct zt_source *source = start_with(3 * MIB, UPSTREAM_NO_DIGEST, true);
    struct awaited awaited = {.waiter = {.wake = note_woken}};

    assert_int_equal(zt_source_pass(source, 0, 3 * MIB), 3 * MIB);
    mirror_file_bring(source, &awaited.waiter);
    AWAIT(atomic_load(&awaited.is_woken));
    assert_int_equal(awaited.waiter.error.status, ZT_OK);
    AWAIT(mirror_file_bytes_here(source) == 3 * MIB);
    assert_false(mirror_file_is_verified(source));
    close_and_stop(source);
}

/* More waiters than there are threads of any kind. */
TEST(many_wait_for_a_failing_upstream_and_try_again)
{
    static struct awaited awaited[300];
    struct zt_source *source = start_with(2 * MIB, UPSTREAM_SHA256, false);

    hold();
    atomic_store(&world.fails, true);
    assert_int_equal(zt_source_pass(source, 0, 2 * MIB), MIB);
    for (unsigned i = 0; i < 300; i++)
        await_from(source, MIB, &awaited[i]);
    AWAIT(atomic_load(&world.held_count) > 0);
    let_go();
    for (unsigned i = 0; i < 300; i++) {
        AWAIT(atomic_load(&awaited[i].is_woken));
        assert_int_equal(awaited[i].waiter.error.status, ZT_UNAVAILABLE);
    }
    atomic_store(&world.fails, false);
    assert_int_equal(read_as_client(source, 0), ZT_OK);
    close_and_stop(source);
}

TEST(a_waiter_that_is_forgotten_is_not_woken)
{
    static struct awaited awaited[3];
    struct zt_source *source = start_with(2 * MIB, UPSTREAM_SHA256, false);

    assert_false(zt_source_forget(&awaited[0].waiter));
    hold();
    assert_int_equal(zt_source_pass(source, 0, 2 * MIB), MIB);
    for (unsigned i = 0; i < 3; i++)
        await_from(source, MIB, &awaited[i]);
    assert_true(zt_source_forget(&awaited[1].waiter));
    assert_false(zt_source_forget(&awaited[1].waiter));
    assert_true(zt_source_forget(&awaited[2].waiter));
    let_go();
    AWAIT(atomic_load(&awaited[0].is_woken));
    assert_false(zt_source_forget(&awaited[0].waiter));
    close_and_stop(source);
    assert_false(atomic_load(&awaited[1].is_woken) || atomic_load(&awaited[2].is_woken));
}

TEST(shutdown_wakes_all_waiters)
{
    struct awaited awaited;
    struct zt_source *source = start_with(2 * MIB, UPSTREAM_SHA256, true);

    hold();
    await_from(source, 0, &awaited);
    mirror_files_interrupt(world.files);
    AWAIT(atomic_load(&awaited.is_woken));
    assert_int_equal(awaited.waiter.error.status, ZT_UNAVAILABLE);
    await_from(source, 0, &awaited);
    assert_true(atomic_load(&awaited.is_woken));
    close_and_stop(source);
}

/* --- prefetch --- */

static enum zt_status list_files(void *context, struct mirror_prefetch_list *list,
                                 struct zt_error *error)
{
    bool goes_on = true;

    assert_ptr_equal(context, &world);
    if (strcmp(list->revision, "main") != 0)
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "there is no such revision");
    assert_string_equal(list->repository, "acme/tiny");
    strcpy(list->commit, world.place.file.commit);
    for (unsigned i = 0; i < 70 && goes_on; i++)
        goes_on = list->visit(list->context, "acme/tiny/model.bin", world.size);
    assert_true(goes_on);
    return ZT_OK;
}

static enum zt_status open_listed(void *context, const char *path, struct zt_source **out_source,
                                  struct zt_error *error)
{
    assert_ptr_equal(context, &world);
    assert_string_equal(path, "acme/tiny/model.bin");
    return mirror_file_open(world.files, &world.place, out_source, error);
}

static struct mirror_prefetch_report await_prefetch(struct mirror_prefetches *prefetches,
                                                    const char *revision)
{
    struct mirror_prefetch_report report = {.state = MIRROR_PREFETCH_LISTING};

    assert_ok(mirror_prefetch_begin(prefetches, "acme/tiny", revision, NULL));
    AWAIT(mirror_prefetch_report(prefetches, "acme/tiny", revision, &report) &&
          report.state >= MIRROR_PREFETCH_DONE);
    return report;
}

TEST(a_prefetch_fetches_all_files_and_reports_how_it_ended)
{
    const struct mirror_prefetch_ops ops = {
        .list = list_files, .open = open_listed, .context = &world};
    struct mirror_prefetches *prefetches;
    struct mirror_prefetch_report report;

    have_file(2 * MIB + 3, UPSTREAM_SHA256);
    start(false);
    assert_ok(mirror_prefetches_new(&ops, world.workers, &prefetches, NULL));
    assert_false(mirror_prefetch_report(prefetches, "acme/tiny", "main", &report));
    report = await_prefetch(prefetches, "none");
    assert_int_equal(report.state, MIRROR_PREFETCH_FAILED);
    assert_int_equal(report.status, ZT_STALE);
    assert_string_equal(report.error, "there is no such revision");
    atomic_store(&world.fails, true);
    report = await_prefetch(prefetches, "main");
    assert_int_equal(report.status, ZT_UNAVAILABLE);
    atomic_store(&world.fails, false);
    report = await_prefetch(prefetches, "main");
    assert_int_equal(report.state, MIRROR_PREFETCH_DONE);
    assert_string_equal(report.commit, world.place.file.commit);
    assert_int_equal(report.files_done, 70);
    assert_int_equal(report.bytes_here, 70 * world.size);
    assert_int_equal(atomic_load(&world.fetched), world.size);
    mirror_prefetches_interrupt(prefetches);
    stop();
    mirror_prefetches_free(prefetches);
}
