/* The table of uploads that outlive their request: found by id, ended once, also while others look
 * and expire. */
#include "upload_world.h"

#include <stdio.h>

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

static time_t expires(struct kept_upload *upload)
{
    return atomic_load(&((struct plain *)upload)->expires_now) ? 0 : time(NULL) + 60;
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
                                            .open = open_none,
                                            .expires = expires,
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

static void every_first_byte_has_a_list(void **state)
{
    bool used[256] = {false};
    char id[UPLOAD_ID_SIZE];

    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        sprintf(id, "%02x%030d", byte, 0);
        assert_false(used[kept_uploads_list_of(id)]);
        used[kept_uploads_list_of(id)] = true;
    }
}

static void upload_is_found_by_its_id_and_kind_until_it_is_dropped(void **state)
{
    struct world *world = *state;
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

static void a_client_has_only_so_many(void **state)
{
    struct world *world = *state;
    struct plain *one = new_plain(world);
    struct plain *other = new_plain(world);

    world->config.upload.sessions_per_client = 1;
    strcpy(one->kept.entry.client, "a");
    strcpy(other->kept.entry.client, "a");
    assert_true(kept_uploads_add(&one->kept));
    assert_false(kept_uploads_add(&other->kept));
    kept_uploads_forget(&one->kept);
    assert_true(kept_uploads_add(&other->kept));
    kept_upload_release(one);
    kept_upload_release(other);
}

static void only_expired_uploads_that_can_be_ended_are_removed(void **state)
{
    struct world *world = *state;
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

static struct plain *finish_one(struct world *world)
{
    struct plain *plain = new_plain(world);

    assert_true(kept_uploads_add(&plain->kept));
    kept_uploads_finish(&plain->kept);
    return plain;
}

static void only_so_many_outcomes_keep_their_places(void **state)
{
    struct world *world = *state;
    struct plain *kept[256];
    struct plain *other;

    for (size_t i = 0; i < 256; i++) {
        kept[i] = finish_one(world);
        assert_true(kept[i]->kept.is_outcome_kept);
    }
    other = finish_one(world);
    assert_false(other->kept.is_outcome_kept);
    kept_upload_release(other);
    kept_uploads_drop(&kept[0]->kept);
    other = finish_one(world);
    assert_true(other->kept.is_outcome_kept);
    kept_upload_release(other);
    for (size_t i = 0; i < 256; i++)
        kept_upload_release(kept[i]);
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

static void search_and_expiry_beside_removal_free_each_once(void **state)
{
    struct world *world = *state;
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

static void place_that_no_kind_can_continue_is_removed(void **state)
{
    struct world *world = *state;

    world_command(world, "mkdir -p .ztserve-uploads/0123456789abcdef0123456789abcdef");
    uploads_restart(world);
    world_command(world, "test -z \"$(ls .ztserve-uploads)\"");
}

static void read_only_server_leaves_places_alone(void **state)
{
    struct world *world = *state;

    world->config.writable = false;
    world_command(world, "mkdir -p .ztserve-uploads/0123456789abcdef0123456789abcdef");
    uploads_restart(world);
    world_command(world, "test -d .ztserve-uploads/0123456789abcdef0123456789abcdef");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_first_byte_has_a_list),
        cmocka_unit_test_setup_teardown(upload_is_found_by_its_id_and_kind_until_it_is_dropped,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(a_client_has_only_so_many, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(only_expired_uploads_that_can_be_ended_are_removed,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(only_so_many_outcomes_keep_their_places, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(search_and_expiry_beside_removal_free_each_once,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(place_that_no_kind_can_continue_is_removed, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(read_only_server_leaves_places_alone, uploads_set_up,
                                        uploads_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
