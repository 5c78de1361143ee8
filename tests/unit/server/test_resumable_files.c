/* The files of a resumable upload: which offset a new process finds, and what it removes. */
#include "upload_world.h"

#include "store/staging.h"

#define ID "0123456789abcdef0123456789abcdef"

static struct zt_error error;

/* Created on disk and in the table; the caller's. */
static struct resumable *create(struct world *world, uint64_t length)
{
    char *texts[RESUMABLE_TEXTS] = {
        [RESUMABLE_METADATA] = strdup("model bQ=="),
        [RESUMABLE_IF_NONE_MATCH] = strdup("*"),
    };
    struct resumable *resumable = resumable_new(&world->server, ID, texts);

    assert_non_null(resumable);
    strcpy(resumable->kept.entry.model, "m");
    resumable->length = length;
    assert_true(kept_uploads_add(&resumable->kept));
    assert_ok(resumable_files_create(resumable, &error));
    assert_ok(resumable_files_sync(resumable, &error));
    return resumable;
}

static void append(struct resumable *resumable, const char *bytes)
{
    struct failure failure = {.is_set = false};

    assert_true(resumable_enter(resumable, &failure));
    assert_ok(staged_file_write_at(resumable->data, atomic_load(&resumable->kept.entry.received),
                                   bytes, strlen(bytes), &error));
    resumable_advance(resumable, strlen(bytes));
    resumable_leave(resumable);
}

/* Leaves what a process leaves that published the upload and ended before it removed the place. */
static void publish(struct world *world, struct resumable *resumable)
{
    struct failure failure = {.is_set = false};

    append(resumable, "hello");
    assert_ok(resumable_make_durable(resumable, &error));
    assert_true(resumable_enter(resumable, &failure));
    memset(resumable->published.sha256, 7, sizeof(resumable->published.sha256));
    resumable->is_hashed = true;
    assert_ok(resumable_files_note_end(resumable, &error));
    assert_ok(staging_folder_remove(world->server.store->staging, ID, "data", &error));
    resumable_leave(resumable);
}

static struct resumable *restart_and_find(struct world *world, struct resumable *resumable)
{
    kept_upload_release(resumable);
    uploads_restart(world);
    return resumable_find(world, ID);
}

WITH_UPLOADS(what_creation_stated_is_found_again)
{
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

WITH_UPLOADS(bytes_that_were_not_made_durable_count_in_the_same_boot)
{
    struct resumable *resumable = create(world, 100);

    append(resumable, "hello");
    assert_ok(resumable_make_durable(resumable, &error));
    assert_int_equal(atomic_load(&resumable->durable), 5);
    append(resumable, "world");
    resumable = restart_and_find(world, resumable);
    assert_int_equal(atomic_load(&resumable->durable), 5);
    assert_int_equal(atomic_load(&resumable->kept.entry.received), 10);
    assert_int_equal(body_follower_received(&resumable->follower), 10);
    kept_upload_release(resumable);
}

WITH_UPLOADS(after_another_boot_only_durable_bytes_count)
{
    struct failure failure = {.is_set = false};
    struct resumable *resumable = create(world, 100);

    append(resumable, "hello");
    assert_ok(resumable_make_durable(resumable, &error));
    append(resumable, "world");
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
    assert_true(resumable_enter(resumable, &failure));
    assert_int_equal(staged_file_length(resumable->data), 5);
    resumable_leave(resumable);
    kept_upload_release(resumable);
}

WITH_UPLOADS(missing_data_after_the_end_was_noted_is_a_publication)
{
    struct resumable *resumable = create(world, 5);

    publish(world, resumable);
    resumable = restart_and_find(world, resumable);
    assert_non_null(resumable);
    assert_int_equal(resumable_state(resumable), RESUMABLE_PUBLISHED);
    assert_int_equal(resumable->published.sha256[31], 7);
    kept_upload_release(resumable);
}

WITH_UPLOADS(missing_data_before_the_end_removes_the_upload)
{
    struct resumable *resumable = create(world, 5);

    assert_ok(staging_folder_remove(world->server.store->staging, ID, "data", &error));
    assert_null(restart_and_find(world, resumable));
    world_command(world, "test ! -e .ztserve-uploads/" ID);
}

WITH_UPLOADS(file_of_creation_that_was_cut_removes_the_upload)
{
    struct resumable *resumable = create(world, 5);

    world_command(world, "truncate -s -3 .ztserve-uploads/" ID "/resumable");
    assert_null(restart_and_find(world, resumable));
}

WITH_UPLOADS(finding_and_freeing_an_upload_leaks_no_descriptor)
{
    struct resumable *resumable = create(world, 5);
    struct kept_upload *found;

    for (unsigned i = 0; i < 10; i++) {
        unsigned before;

        if (i == 5)
            publish(world, resumable);
        before = open_descriptors();
        assert_int_equal(resumable_files_open(&world->server, ID, &found),
                         i < 5 ? KEPT_OPENED : KEPT_OUTCOME);
        kept_upload_release(found);
        assert_int_equal(open_descriptors(), before);
    }
    kept_upload_release(resumable);
}

WITH_UPLOADS(upload_of_another_process_is_adopted_once)
{
    struct resumable *resumable = create(world, 100);
    struct kept_upload *first;
    struct kept_upload *second;
    bool is_unreadable;
    unsigned before;

    kept_upload_release(resumable);
    uploads_stop(world);
    uploads_start(world);
    assert_null(resumable_find(world, ID));
    first = kept_uploads_find_or_adopt(world->server.kept, UPLOAD_KIND_RESUMABLE, zt_text_from(ID),
                                       &is_unreadable);
    assert_non_null(first);
    assert_false(is_unreadable);
    before = open_descriptors();
    second = kept_uploads_find_or_adopt(world->server.kept, UPLOAD_KIND_RESUMABLE, zt_text_from(ID),
                                        &is_unreadable);
    assert_ptr_equal(first, second);
    assert_int_equal(open_descriptors(), before);
    kept_upload_release(first);
    kept_upload_release(second);
}

static bool is_free_for_others(const struct world *world, const char *id)
{
    struct staging others;
    struct staged_file *file;
    enum zt_status status;

    staging_init(&others, world->server.store->staging->root);
    status = staging_folder_open(&others, id, "none", &file, &error);
    staging_end(&others);
    assert_true(status == ZT_NOT_FOUND || status == ZT_ARGUMENT);
    return status == ZT_NOT_FOUND;
}

WITH_UPLOADS(folder_of_another_kind_is_left_to_other_processes)
{
    bool is_unreadable;

    world_command(world, "mkdir -p .ztserve-uploads/" ID);
    assert_null(kept_uploads_find_or_adopt(world->server.kept, UPLOAD_KIND_RESUMABLE,
                                           zt_text_from(ID), &is_unreadable));
    assert_true(is_free_for_others(world, ID));
    assert_false(kept_uploads_is_of_other_process(world->server.kept, zt_text_from(ID)));
    assert_true(is_free_for_others(world, ID));
}

WITH_UPLOADS(own_folder_of_another_kind_stays_locked)
{
    struct writer_session *session = writer_begin(world, ID, ZT_TARGET_ZT1);
    bool is_unreadable;

    assert_null(kept_uploads_find_or_adopt(world->server.kept, UPLOAD_KIND_RESUMABLE,
                                           zt_text_from(ID), &is_unreadable));
    assert_false(kept_uploads_is_of_other_process(world->server.kept, zt_text_from(ID)));
    assert_false(is_free_for_others(world, ID));
    kept_upload_release(session);
}

WITH_UPLOADS(dropped_upload_leaves_no_place_and_no_descriptor)
{
    unsigned before = open_descriptors();
    struct resumable *resumable = create(world, 100);

    assert_int_not_equal(claim_take(&resumable->claim), 0);
    resumable_drop(resumable);
    assert_int_equal(resumable_state(resumable), RESUMABLE_GONE);
    kept_upload_release(resumable);
    assert_int_equal(open_descriptors(), before);
    world_command(world, "test ! -e .ztserve-uploads/" ID);
}

WITH_UPLOADS(idle_upload_expires_unless_it_is_claimed)
{
    struct resumable *resumable = create(world, 100);
    uint64_t claim = claim_take(&resumable->claim);

    atomic_store(&resumable->kept.entry.active, (time_t)1);
    kept_uploads_expire(world->server.kept);
    assert_true(resumable->kept.is_listed);
    atomic_fetch_sub(&resumable->kept.entry.touched_ms, INT64_C(1) << 40);
    kept_uploads_expire(world->server.kept);
    assert_true(resumable->kept.is_listed);
    resumable_end_claim(resumable, &claim);
    assert_int_equal(claim, 0);
    kept_uploads_expire(world->server.kept);
    assert_false(resumable->kept.is_listed);
    kept_upload_release(resumable);
}
