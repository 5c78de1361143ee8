/* Publication of a resumable upload: when it is done, when it may be tried again, and when it is
 * gone. */
#include "upload_world.h"

#define ID       "0123456789abcdef0123456789abcdef"
#define FILE_MAX 4096

struct options {
    bool unsound; /* a digest in the file is wrong */
    const char *repr_digest;
    const char *if_none_match;
};

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

/* All of its bytes are there and durable; claimed; the caller's. */
static struct resumable *whole(struct world *world, struct options options)
{
    char *texts[RESUMABLE_TEXTS] = {
        [RESUMABLE_REPR_DIGEST] = copy(options.repr_digest),
        [RESUMABLE_IF_NONE_MATCH] = copy(options.if_none_match),
    };
    uint8_t bytes[FILE_MAX];
    size_t length = world_model_bytes(world, !options.unsound, bytes, sizeof(bytes));
    struct resumable *resumable = resumable_new(&world->server, ID, texts);
    struct zt_error error;

    assert_non_null(resumable);
    strcpy(resumable->kept.entry.model, "m");
    resumable->length = length;
    assert_true(kept_uploads_add(&resumable->kept));
    assert_int_equal(resumable_files_create(resumable, &error), ZT_OK);
    assert_int_equal(world->server.store->ops->write_at(resumable->data, 0, bytes, length, &error),
                     ZT_OK);
    resumable_advance(resumable, length);
    assert_int_equal(resumable_make_durable(resumable, &error), ZT_OK);
    assert_int_not_equal(claim_take(&resumable->claim), 0);
    return resumable;
}

static bool publish(struct resumable *resumable, struct failure *failure)
{
    return resumable_publish(resumable, (struct name_filter){NULL, NULL}, failure);
}

static void assert_gone(struct world *world, struct resumable *resumable)
{
    assert_int_equal(resumable_state(resumable), RESUMABLE_GONE);
    assert_false(resumable->kept.is_listed);
    kept_upload_release(resumable);
    world_command(world, "test ! -e m.zt && test ! -e .ztserve-uploads/" ID);
}

static void whole_file_becomes_a_model(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = whole(world, (struct options){0});
    struct failure failure = {.is_set = false};
    struct zt_error error;

    assert_true(publish(resumable, &failure));
    assert_int_equal(resumable_state(resumable), RESUMABLE_PUBLISHED);
    assert_null(resumable->data);
    assert_string_not_equal(resumable->published.etag, "");
    assert_int_equal(resumable_make_durable(resumable, &error), ZT_OK);
    world_command(world, "test -f m.zt");
    kept_upload_release(resumable);
}

static void outcome_is_remembered_across_a_restart(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = whole(world, (struct options){0});
    struct failure failure = {.is_set = false};
    uint8_t sha256[32];

    assert_true(publish(resumable, &failure));
    memcpy(sha256, resumable->published.sha256, sizeof(sha256));
    kept_upload_release(resumable);
    uploads_restart(world);
    resumable = resumable_find(world, ID);
    assert_non_null(resumable);
    assert_int_equal(resumable_state(resumable), RESUMABLE_PUBLISHED);
    assert_memory_equal(resumable->published.sha256, sha256, sizeof(sha256));
    kept_upload_release(resumable);
}

static void outcome_expires(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = whole(world, (struct options){0});
    struct failure failure = {.is_set = false};
    uint64_t claim = resumable->claim.holder;

    assert_true(publish(resumable, &failure));
    resumable_end_claim(resumable, &claim);
    kept_uploads_expire(world->server.kept);
    assert_true(resumable->kept.is_listed);
    atomic_fetch_sub(&resumable->kept.entry.active, KEPT_OUTCOME_S);
    kept_uploads_expire(world->server.kept);
    assert_int_equal(resumable_state(resumable), RESUMABLE_GONE);
    assert_false(resumable->kept.is_listed);
    kept_upload_release(resumable);
}

static void file_that_can_never_be_published_is_gone(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = whole(world, (struct options){.unsound = true});
    struct failure failure = {.is_set = false};

    assert_false(publish(resumable, &failure));
    assert_int_equal(failure.problem, PROBLEM_DIGEST_MISMATCH);
    assert_gone(world, resumable);
}

static void wrong_digest_of_the_whole_is_gone(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = whole(
        world,
        (struct options){.repr_digest = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"});
    struct failure failure = {.is_set = false};

    assert_false(publish(resumable, &failure));
    assert_int_equal(failure.problem, PROBLEM_DIGEST_MISMATCH);
    assert_gone(world, resumable);
}

static void failed_precondition_is_gone(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = whole(world, (struct options){.if_none_match = "*"});
    struct failure failure = {.is_set = false};

    world_model(world, "m.zt", true);
    assert_false(publish(resumable, &failure));
    assert_int_equal(failure.problem, PROBLEM_PRECONDITION_FAILED);
    world_command(world, "rm m.zt");
    assert_gone(world, resumable);
}

static void what_may_succeed_later_stays(void **state)
{
    struct world *world = *state;
    struct resumable *resumable = whole(world, (struct options){0});
    struct failure failure = {.is_set = false};

    world_command(world, "mkdir m.zt");
    assert_false(publish(resumable, &failure));
    assert_int_equal(failure.problem, PROBLEM_CONFLICT);
    assert_int_equal(resumable_state(resumable), RESUMABLE_RECEIVING);
    assert_non_null(resumable->data);
    world_command(world, "rmdir m.zt");
    failure = (struct failure){.is_set = false};
    assert_true(publish(resumable, &failure));
    assert_int_equal(resumable_state(resumable), RESUMABLE_PUBLISHED);
    kept_upload_release(resumable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_file_becomes_a_model, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(outcome_is_remembered_across_a_restart, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(outcome_expires, uploads_set_up, uploads_tear_down),
        cmocka_unit_test_setup_teardown(file_that_can_never_be_published_is_gone, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(wrong_digest_of_the_whole_is_gone, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(failed_precondition_is_gone, uploads_set_up,
                                        uploads_tear_down),
        cmocka_unit_test_setup_teardown(what_may_succeed_later_stays, uploads_set_up,
                                        uploads_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
