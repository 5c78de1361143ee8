/* Publication of a resumable upload: when it is done, when it may be tried again, and when it is
 * gone. */
#include "upload_world.h"

#include "store/staging.h"

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
    assert_ok(resumable_files_create(resumable, &error));
    assert_ok(staged_file_write_at(resumable->data, 0, bytes, length, &error));
    resumable_advance(resumable, length);
    assert_ok(resumable_make_durable(resumable, &error));
    assert_int_not_equal(claim_take(&resumable->claim), 0);
    return resumable;
}

static bool publish(struct resumable *resumable, struct failure *failure)
{
    const struct request request = {.client = NULL};

    return resumable_publish(resumable, &request, failure);
}

static void assert_gone(struct world *world, struct resumable *resumable)
{
    assert_int_equal(resumable_state(resumable), RESUMABLE_GONE);
    assert_false(resumable->kept.is_listed);
    kept_upload_release(resumable);
    world_command(world, "test ! -e m.zt && test ! -e .ztserve-uploads/" ID);
}

WITH_UPLOADS(whole_file_becomes_a_model)
{
    struct resumable *resumable = whole(world, (struct options){0});
    struct failure failure = {.is_set = false};
    struct zt_error error;

    assert_true(publish(resumable, &failure));
    assert_int_equal(resumable_state(resumable), RESUMABLE_PUBLISHED);
    assert_null(resumable->data);
    assert_string_not_equal(resumable->published.etag, "");
    assert_ok(resumable_make_durable(resumable, &error));
    world_command(world, "test -f m.zt");
    kept_upload_release(resumable);
}

WITH_UPLOADS(outcome_is_remembered_across_a_restart)
{
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

WITH_UPLOADS(outcome_expires)
{
    struct resumable *resumable = whole(world, (struct options){0});
    struct failure failure = {.is_set = false};
    uint64_t claim = resumable->claim.holder;

    assert_true(publish(resumable, &failure));
    resumable_end_claim(resumable, &claim);
    kept_uploads_expire(world->server.kept);
    assert_true(resumable->kept.is_listed);
    atomic_fetch_sub(&resumable->kept.entry.touched_ms, KEPT_OUTCOME_S * 1000);
    kept_uploads_expire(world->server.kept);
    assert_int_equal(resumable_state(resumable), RESUMABLE_GONE);
    assert_false(resumable->kept.is_listed);
    kept_upload_release(resumable);
}

WITH_UPLOADS(file_that_can_never_be_published_is_gone)
{
    static const struct {
        struct options options;
        enum problem problem;
    } rows[] = {
        {{.unsound = true}, PROBLEM_DIGEST_MISMATCH},
        {{.repr_digest = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"},
         PROBLEM_DIGEST_MISMATCH},
        {{.if_none_match = "*"}, PROBLEM_PRECONDITION_FAILED},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct resumable *resumable = whole(world, rows[i].options);
        struct failure failure = {.is_set = false};

        if (rows[i].options.if_none_match != NULL)
            world_model(world, "m.zt", true);
        if (publish(resumable, &failure) || failure.problem != rows[i].problem)
            fail_msg("row %zu: problem %d", i, (int)failure.problem);
        if (rows[i].options.if_none_match != NULL)
            world_command(world, "rm m.zt");
        assert_gone(world, resumable);
    }
}

WITH_UPLOADS(what_may_succeed_later_stays)
{
    struct resumable *resumable = whole(world, (struct options){0});
    struct failure failure = {.is_set = false};

    world_command(world, "mkdir m.zt");
    assert_false(publish(resumable, &failure));
    assert_int_equal(failure.problem, PROBLEM_CONFLICT);
    assert_int_equal(resumable_state(resumable), RESUMABLE_RECEIVING);
    world_command(world, "rmdir m.zt");
    failure = (struct failure){.is_set = false};
    assert_true(publish(resumable, &failure));
    assert_int_equal(resumable_state(resumable), RESUMABLE_PUBLISHED);
    kept_upload_release(resumable);
}
