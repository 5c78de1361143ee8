/* The files of a resumable upload: which offset a new process finds, and what it removes. */
#include "upload_world.h"

#define ID "0123456789abcdef0123456789abcdef"

/* Created on disk and in the table; the caller's. */
static struct resumable *create(struct world *world, uint64_t length)
{
    char *texts[RESUMABLE_TEXTS] = {
        [RESUMABLE_METADATA] = strdup("model bQ=="),
        [RESUMABLE_IF_NONE_MATCH] = strdup("*"),
    };
    struct resumable *resumable = resumable_new(&world->server, ID, texts);
    struct zt_error error;

    assert_non_null(resumable);
    strcpy(resumable->kept.entry.model, "m");
    resumable->length = length;
    assert_true(kept_uploads_add(&resumable->kept));
    assert_int_equal(resumable_files_create(resumable, &error), ZT_OK);
    assert_int_equal(resumable_files_sync(resumable, &error), ZT_OK);
    return resumable;
}

static void append(struct world *world, struct resumable *resumable, const char *bytes)
{
    struct zt_error error;

    assert_int_equal(world->server.store->ops->write_at(
                         resumable->data, atomic_load(&resumable->kept.entry.received), bytes,
                         strlen(bytes), &error),
                     ZT_OK);
    resumable_advance(resumable, strlen(bytes));
}

/* Leaves what a process leaves that published the upload and ended before it removed the place. */
static void publish(struct world *world, struct resumable *resumable)
{
    struct zt_error error;

    append(world, resumable, "hello");
    assert_int_equal(resumable_make_durable(resumable, &error), ZT_OK);
    memset(resumable->published.sha256, 7, sizeof(resumable->published.sha256));
    resumable->is_hashed = true;
    assert_int_equal(resumable_files_note_end(resumable, &error), ZT_OK);
    assert_int_equal(world->server.store->ops->kept_remove(world->server.store, ID, "data", &error),
                     ZT_OK);
}

static struct resumable *restart_and_find(struct world *world, struct resumable *resumable)
{
    kept_upload_release(resumable);
    uploads_restart(world);
    return resumable_find(world, ID);
}

static void what_creation_stated_is_found_again(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = restart_and_find(world, create(world, 100));

    assert_non_null(resumable);
    assert_string_equal(resumable->kept.entry.model, "m");
    assert_int_equal(resumable->length, 100);
    assert_string_equal(resumable->texts[RESUMABLE_METADATA], "model bQ==");
    assert_string_equal(resumable->texts[RESUMABLE_IF_NONE_MATCH], "*");
    assert_null(resumable->texts[RESUMABLE_IF_MATCH]);
    assert_int_equal(resumable_state(resumable), RESUMABLE_RECEIVING);
    assert_int_equal(body_follower_received(&resumable->follower), 0);
    kept_upload_release(resumable);
}

static void bytes_that_were_not_made_durable_count_in_the_same_boot(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 100);
    struct zt_error error;

    append(world, resumable, "hello");
    assert_int_equal(resumable_make_durable(resumable, &error), ZT_OK);
    assert_int_equal(atomic_load(&resumable->durable), 5);
    append(world, resumable, "world");
    resumable = restart_and_find(world, resumable);
    assert_int_equal(atomic_load(&resumable->durable), 5);
    assert_int_equal(atomic_load(&resumable->kept.entry.received), 10);
    assert_int_equal(body_follower_received(&resumable->follower), 10);
    kept_upload_release(resumable);
}

static void after_another_boot_only_durable_bytes_count(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 100);
    struct zt_error error;

    append(world, resumable, "hello");
    assert_int_equal(resumable_make_durable(resumable, &error), ZT_OK);
    append(world, resumable, "world");
    kept_upload_release(resumable);
    uploads_stop(world);
    world_stop(world);
    world_command(world, "printf '%020d 00000000-0000-0000-0000-000000000000\\n' 5 "
                         "> .ztserve-uploads/" ID "/state");
    world_start(world);
    uploads_start(world);
    kept_uploads_restore(world->server.kept);
    resumable = resumable_find(world, ID);
    assert_non_null(resumable);
    assert_int_equal(atomic_load(&resumable->kept.entry.received), 5);
    assert_int_equal(world->server.store->ops->length(resumable->data), 5);
    kept_upload_release(resumable);
}

static void missing_data_after_the_end_was_noted_is_a_publication(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 5);

    publish(world, resumable);
    resumable = restart_and_find(world, resumable);
    assert_non_null(resumable);
    assert_int_equal(resumable_state(resumable), RESUMABLE_PUBLISHED);
    assert_int_equal(resumable->published.sha256[31], 7);
    kept_upload_release(resumable);
}

static void missing_data_before_the_end_removes_the_upload(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 5);
    struct zt_error error;

    assert_int_equal(world->server.store->ops->kept_remove(world->server.store, ID, "data", &error),
                     ZT_OK);
    assert_null(restart_and_find(world, resumable));
    world_command(world, "test ! -e .ztserve-uploads/" ID);
}

static void file_of_creation_that_was_cut_removes_the_upload(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 5);

    world_command(world, "truncate -s -3 .ztserve-uploads/" ID "/resumable");
    assert_null(restart_and_find(world, resumable));
}

static void finding_and_freeing_an_upload_leaks_no_descriptor(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 100);
    struct kept_upload *found;
    unsigned before;

    append(world, resumable, "hello");
    before = open_descriptors();
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(resumable_files_open(&world->server, ID, &found), KEPT_OPENED);
        kept_upload_release(found);
    }
    assert_int_equal(open_descriptors(), before);
    kept_upload_release(resumable);
}

static void finding_and_freeing_a_published_upload_leaks_no_descriptor(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 5);
    struct kept_upload *found;
    unsigned before;

    publish(world, resumable);
    before = open_descriptors();
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(resumable_files_open(&world->server, ID, &found), KEPT_OUTCOME);
        kept_upload_release(found);
    }
    assert_int_equal(open_descriptors(), before);
    kept_upload_release(resumable);
}

static void upload_of_another_process_is_adopted_once(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 100);
    struct kept_upload *first;
    struct kept_upload *second;
    unsigned before;

    kept_upload_release(resumable);
    uploads_stop(world);
    uploads_start(world);
    assert_null(resumable_find(world, ID));
    first = kept_uploads_find_or_adopt(world->server.kept, UPLOAD_KIND_RESUMABLE, zt_text_from(ID));
    assert_non_null(first);
    before = open_descriptors();
    second =
        kept_uploads_find_or_adopt(world->server.kept, UPLOAD_KIND_RESUMABLE, zt_text_from(ID));
    assert_ptr_equal(first, second);
    assert_int_equal(open_descriptors(), before);
    kept_upload_release(first);
    kept_upload_release(second);
}

static void dropped_upload_leaves_no_place_and_no_descriptor(void **state)
{
    struct world *world = *state;
    unsigned before = open_descriptors();
    struct resumable *resumable = create(world, 100);

    assert_int_not_equal(claim_take(&resumable->claim), 0);
    resumable_drop(resumable);
    assert_int_equal(resumable_state(resumable), RESUMABLE_GONE);
    kept_upload_release(resumable);
    assert_int_equal(open_descriptors(), before);
    world_command(world, "test ! -e .ztserve-uploads/" ID);
}

static void idle_upload_expires_unless_it_is_claimed(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = create(world, 100);
    uint64_t claim = claim_take(&resumable->claim);

    atomic_store(&resumable->kept.entry.active, (time_t)1);
    kept_uploads_expire(world->server.kept);
    assert_true(resumable->kept.is_listed);
    resumable_end_claim(resumable, &claim);
    assert_int_equal(claim, 0);
    kept_uploads_expire(world->server.kept);
    assert_false(resumable->kept.is_listed);
    kept_upload_release(resumable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_creation_stated_is_found_again, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(bytes_that_were_not_made_durable_count_in_the_same_boot,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(after_another_boot_only_durable_bytes_count, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(missing_data_after_the_end_was_noted_is_a_publication,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(missing_data_before_the_end_removes_the_upload,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(file_of_creation_that_was_cut_removes_the_upload,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(finding_and_freeing_an_upload_leaks_no_descriptor,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(finding_and_freeing_a_published_upload_leaks_no_descriptor,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(upload_of_another_process_is_adopted_once, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(dropped_upload_leaves_no_place_and_no_descriptor,
                                        uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(idle_upload_expires_unless_it_is_claimed, uploads_set_up,
                                        uploads_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
