/* The table of uploads that outlive their request: found by id, ended once, also while others look
 * and expire. */
#include "tests.h"
#include "upload_world.h"

#include "base/clock.h"
#include "store/staging.h"

#define THREADS 4
#define ROUNDS  20000

/* --- a kind that is nothing but an entry --- */

struct plain {
    struct kept_upload kept;
    atomic_bool is_ended;
    atomic_bool expires_now;
};

static atomic_uint freed;

static enum kept_opened open_none(struct server *server, const char *id,
                                  struct kept_upload **out_upload)
{
    (void)server;
    (void)id;
    (void)out_upload;
    return KEPT_NOT_OURS;
}

static int64_t left_ms(struct kept_upload *upload)
{
    return atomic_load(&((struct plain *)upload)->expires_now) ? 0 : 60000;
}

static bool end(struct kept_upload *upload)
{
    return !atomic_exchange(&((struct plain *)upload)->is_ended, true);
}

static void free_plain(struct kept_upload *upload)
{
    atomic_fetch_add(&freed, 1);
    free(upload);
}

static const struct kept_kind plain_kind = {.kind = UPLOAD_KIND_WRITER,
                                            .limit_offset =
                                                offsetof(struct config, upload.sessions_per_client),
                                            .open = open_none,
                                            .left_ms = left_ms,
                                            .end = end,
                                            .free = free_plain};

static struct plain *new_plain(struct world *world)
{
    struct plain *plain = calloc(1, sizeof(*plain));
    char id[UPLOAD_ID_SIZE];

    assert_non_null(plain);
    registry_make_id(id);
    kept_upload_init(&plain->kept, &plain_kind, &world->server, id);
    return plain;
}

/* --- tests --- */

AROUND_EACH_TEST(uploads_set_up, uploads_tear_down)

TEST(every_first_byte_has_a_list)
{
    bool used[256] = {false};
    char id[UPLOAD_ID_SIZE];

    for (unsigned byte = 0; byte < 256; byte++) {
        sprintf(id, "%02x%030d", byte, 0);
        assert_false(used[kept_uploads_list_of(id)]);
        used[kept_uploads_list_of(id)] = true;
    }
}

TEST_ON(struct world *world, upload_is_found_by_its_id_and_kind_until_it_is_dropped)
{
    struct kept_uploads *kept = world->server.kept;
    struct plain *plain = new_plain(world);
    struct zt_text id = {plain->kept.entry.id, UPLOAD_ID_SIZE - 1};

    assert_null(kept_uploads_find(kept, UPLOAD_KIND_WRITER, id));
    assert_true(kept_uploads_add(&plain->kept));
    assert_ptr_equal(kept_uploads_find(kept, UPLOAD_KIND_WRITER, id), plain);
    kept_upload_release(plain);
    assert_null(kept_uploads_find(kept, UPLOAD_KIND_RESUMABLE, id));
    assert_null(kept_uploads_find(kept, UPLOAD_KIND_WRITER, (struct zt_text){id.bytes, 31}));
    kept_uploads_drop(&plain->kept);
    assert_null(kept_uploads_find(kept, UPLOAD_KIND_WRITER, id));
    kept_upload_release(plain);
}

TEST_ON(struct world *world, a_client_has_only_so_many)
{
    struct plain *one = new_plain(world);
    struct plain *other = new_plain(world);

    world->config.upload.sessions_per_client = 1;
    strcpy(one->kept.entry.client, "a");
    strcpy(other->kept.entry.client, "a");
    assert_true(kept_uploads_add(&one->kept));
    assert_false(kept_uploads_add(&other->kept));
    kept_uploads_remove(&one->kept);
    assert_true(kept_uploads_add(&other->kept));
    kept_upload_release(one);
    kept_upload_release(other);
}

TEST_ON(struct world *world, only_expired_uploads_that_can_be_ended_are_removed)
{
    struct plain *young = new_plain(world);
    struct plain *old = new_plain(world);
    struct plain *busy = new_plain(world);
    struct plain *all[] = {young, old, busy};

    for (size_t i = 0; i < 3; i++)
        assert_true(kept_uploads_add(&all[i]->kept));
    atomic_store(&old->expires_now, true);
    atomic_store(&busy->expires_now, true);
    atomic_store(&busy->is_ended, true);
    kept_uploads_expire(world->server.kept);
    assert_true(young->kept.is_listed);
    assert_false(old->kept.is_listed);
    assert_true(busy->kept.is_listed);
    for (size_t i = 0; i < 3; i++)
        kept_upload_release(all[i]);
}

/* --- uploads of another process --- */

#define SLOW_ID  "00000000000000000000000000000000"
#define QUICK_ID "01000000000000000000000000000000"
/* Longer than any of this takes. */
#define PATIENCE_MS 120000

static atomic_bool slow_has_begun;
static atomic_bool quick_has_ended;
static atomic_bool slow_was_passed;

static bool await_flag(atomic_bool *flag)
{
    for (int i = 0; i < PATIENCE_MS && !atomic_load(flag); i++)
        pause_ms(1);
    return atomic_load(flag);
}

/* As from a disk that hangs for one of two uploads. */
static enum kept_opened open_slowly(struct server *server, const char *id,
                                    struct kept_upload **out_upload)
{
    if (strcmp(id, SLOW_ID) == 0) {
        atomic_store(&slow_has_begun, true);
        atomic_store(&slow_was_passed, await_flag(&quick_has_ended));
    }
    return open_none(server, id, out_upload);
}

static const struct kept_kind slow_kind = {
    .kind = UPLOAD_KIND_WRITER,
    .open = open_slowly,
    .left_ms = left_ms,
    .end = end,
    .free = free_plain,
};
static const struct kept_kind *const slow_kinds[] = {&slow_kind, NULL};

static void *adopt_slowly(void *kept)
{
    bool is_unreadable;

    assert_null(kept_uploads_find_or_adopt(kept, UPLOAD_KIND_WRITER, zt_text_from(SLOW_ID),
                                           &is_unreadable));
    return NULL;
}

TEST_ON(struct world *world, upload_that_takes_long_to_open_holds_up_no_other)
{
    struct kept_uploads *kept = kept_uploads_new(&world->server, slow_kinds);
    pthread_t thread;
    bool is_unreadable;

    assert_true(world->config.writable);
    assert_int_equal(pthread_create(&thread, NULL, adopt_slowly, kept), 0);
    assert_true(await_flag(&slow_has_begun));
    assert_null(kept_uploads_find_or_adopt(kept, UPLOAD_KIND_WRITER, zt_text_from(QUICK_ID),
                                           &is_unreadable));
    atomic_store(&quick_has_ended, true);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&slow_was_passed));
    kept_uploads_free(kept);
}

TEST_ON(struct world *world, an_outcome_keeps_its_place_and_no_descriptor)
{
    struct store *store = world->server.store;
    struct plain *plain = new_plain(world);
    const unsigned before = open_descriptors();

    assert_int_equal(staging_folder_make(store->staging, plain->kept.entry.id, NULL), ZT_OK);
    assert_true(kept_uploads_add(&plain->kept));
    kept_uploads_finish(&plain->kept);
    assert_int_equal(open_descriptors(), before);
    assert_true(plain->kept.is_listed);
    world_command(world, "test $(ls .ztserve-uploads | wc -l) = 1");
    kept_uploads_drop(&plain->kept);
    world_command(world, "test $(ls .ztserve-uploads | wc -l) = 0");
    assert_int_equal(open_descriptors(), before);
    kept_upload_release(plain);
}

/* The time of day may jump; only what an earlier process noted is counted by it. */
TEST(times_before_this_process_are_counted_by_the_time_of_day)
{
    const int64_t now_ms = clock_ms();

    assert_true(kept_upload_ms_of(time(NULL) - 60) <= now_ms - 59000);
    assert_true(kept_upload_ms_of(time(NULL) - 60) >= now_ms - 62000);
    assert_true(kept_upload_ms_of(time(NULL) + 3600) >= now_ms);
}

TEST_ON(struct world *world, an_upload_expires_by_the_monotonic_clock)
{
    struct plain *plain = new_plain(world);

    atomic_store(&plain->kept.entry.active, (time_t)1);
    assert_true(kept_upload_left_ms(&plain->kept, 60) > 0);
    atomic_fetch_sub(&plain->kept.entry.touched_ms, 60000);
    assert_true(kept_upload_left_ms(&plain->kept, 60) <= 0);
    kept_upload_release(plain);
}

/* --- many at once, all in one list --- */

/* One for each thread that adds, so that others can look for what it adds. */
static const char ids[THREADS / 2][UPLOAD_ID_SIZE] = {"0000000000000000000000000000000a",
                                                      "0000000000000000000000000000000b"};
static atomic_uint adding;
static atomic_uint begun;

static bool is_found(struct world *world, const char *id)
{
    struct kept_upload *found =
        kept_uploads_find(world->server.kept, UPLOAD_KIND_WRITER, zt_text_from(id));

    kept_upload_release(found);
    return found != NULL;
}

static void *add_and_drop(void *context)
{
    struct world *world = context;
    const char *id = ids[atomic_fetch_add(&begun, 1)];

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct plain *plain = new_plain(world);

        /* Another thread may still be removing the one before. */
        while (is_found(world, id))
            ;
        strcpy(plain->kept.entry.id, id);
        assert_true(kept_uploads_add(&plain->kept));
        atomic_store(&plain->expires_now, i % 2 == 0);
        if (end(&plain->kept))
            kept_uploads_drop(&plain->kept);
        kept_upload_release(plain);
    }
    atomic_fetch_sub(&adding, 1);
    return NULL;
}

static void *find_and_expire(void *context)
{
    struct world *world = context;

    while (atomic_load(&adding) > 0) {
        for (unsigned i = 0; i < 200; i++)
            (void)is_found(world, ids[i % 2]);
        kept_uploads_expire(world->server.kept);
    }
    return NULL;
}

TEST_ON(struct world *world, search_and_expiry_beside_removal_free_each_once)
{
    struct plain *other = new_plain(world);
    pthread_t threads[THREADS];

    assert_true(kept_uploads_add(&other->kept));
    atomic_store(&freed, 0);
    atomic_store(&begun, 0);
    atomic_store(&adding, THREADS / 2);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i % 2 == 0 ? add_and_drop : find_and_expire, world),
            0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&freed), THREADS / 2 * ROUNDS);
    kept_upload_release(other);
}

/* --- places on disk --- */

TEST_ON(struct world *world, place_that_no_kind_can_continue_is_removed)
{
    world_command(world, "mkdir -p .ztserve-uploads/0123456789abcdef0123456789abcdef");
    uploads_restart(world);
    world_command(world, "test -z \"$(ls .ztserve-uploads)\"");
}

TEST_ON(struct world *world, read_only_server_leaves_places_alone)
{
    world->config.writable = false;
    world_command(world, "mkdir -p .ztserve-uploads/0123456789abcdef0123456789abcdef");
    uploads_restart(world);
    world_command(world, "test -d .ztserve-uploads/0123456789abcdef0123456789abcdef");
}
