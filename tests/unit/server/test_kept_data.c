/* The file of a kept upload: open while requests use it, and not opened again after its end. */
#include "upload_world.h"

#include "upload/shared/kept_data.h"

struct plain {
    struct kept_upload kept;
    struct kept_data data;
};

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
    (void)upload;
    return 1;
}

static bool end(struct kept_upload *upload)
{
    (void)upload;
    return true;
}

static void free_plain(struct kept_upload *upload)
{
    kept_data_destroy(&((struct plain *)upload)->data);
    free(upload);
}

static const struct kept_kind plain_kind = {.kind = UPLOAD_KIND_STAGED,
                                            .limit_offset =
                                                offsetof(struct config, hub.staged_per_client),
                                            .open = open_none,
                                            .left_ms = left_ms,
                                            .end = end,
                                            .free = free_plain};

/* Begun by its first user. */
static struct plain *begin(struct world *world)
{
    struct plain *plain = calloc(1, sizeof(*plain));
    struct failure failure = {.is_set = false};
    char id[UPLOAD_ID_SIZE];

    assert_non_null(plain);
    registry_make_id(id);
    kept_upload_init(&plain->kept, &plain_kind, &world->server, id);
    kept_data_init(&plain->data, &plain->kept, "data");
    assert_true(kept_data_begin(&plain->data, UINT64_MAX, &failure));
    return plain;
}

WITH_UPLOADS(last_user_closes_the_file_and_the_next_finds_its_bytes)
{
    struct plain *plain = begin(world);
    struct failure failure = {.is_set = false};

    assert_true(kept_data_write(&plain->data, 2, "cd", 2, &failure));
    assert_true(kept_data_enter(&plain->data, &failure));
    kept_data_leave(&plain->data);
    assert_non_null(plain->data.file);
    kept_data_leave(&plain->data);
    assert_null(plain->data.file);
    assert_true(kept_data_enter(&plain->data, &failure));
    assert_int_equal(staged_file_length(plain->data.file), 4);
    kept_data_leave(&plain->data);
    kept_upload_release(plain);
}

WITH_UPLOADS(file_whose_write_failed_stays_open)
{
    struct plain *plain = begin(world);

    atomic_store(&plain->data.has_failed_write, true);
    kept_data_leave(&plain->data);
    assert_non_null(plain->data.file);
    kept_upload_release(plain);
}

WITH_UPLOADS(used_file_cannot_be_closed_and_a_closed_one_not_entered)
{
    struct plain *plain = begin(world);
    struct failure failure = {.is_set = false};

    assert_false(kept_data_close(&plain->data));
    kept_data_leave(&plain->data);
    assert_true(kept_data_close(&plain->data));
    assert_false(kept_data_close(&plain->data));
    assert_true(kept_data_is_closed(&plain->data));
    assert_false(kept_data_enter(&plain->data, &failure));
    assert_false(failure.is_set);
    kept_data_reopen(&plain->data);
    assert_true(kept_data_enter(&plain->data, &failure));
    kept_data_leave(&plain->data);
    kept_upload_release(plain);
}

WITH_UPLOADS(closer_may_use_the_file_until_it_ends_it)
{
    struct plain *plain = begin(world);
    struct failure failure = {.is_set = false};

    kept_data_leave(&plain->data);
    assert_true(kept_data_close(&plain->data));
    assert_true(kept_data_enter_closed(&plain->data, &failure));
    assert_true(kept_data_write(&plain->data, 0, "a", 1, &failure));
    kept_data_end(&plain->data);
    assert_null(plain->data.file);
    assert_false(kept_data_enter(&plain->data, &failure));
    kept_upload_release(plain);
}

WITH_UPLOADS(nothing_is_left_if_the_file_cannot_be_made)
{
    struct plain *plain = begin(world);
    struct plain *other = calloc(1, sizeof(*other));
    struct failure failure = {.is_set = false};

    assert_non_null(other);
    kept_upload_init(&other->kept, &plain_kind, &world->server, plain->kept.entry.id);
    other->kept.entry.id[0] = plain->kept.entry.id[0] == 'a' ? 'b' : 'a';
    kept_data_init(&other->data, &other->kept, "data");
    assert_false(kept_data_begin(&other->data, (uint64_t)1 << 60, &failure));
    assert_int_equal(failure.problem, PROBLEM_INSUFFICIENT_STORAGE);
    assert_int_equal(staging_folder_drop(world->server.store->staging, other->kept.entry.id, NULL),
                     ZT_NOT_FOUND);
    kept_upload_release(other);
    kept_upload_release(plain);
}
