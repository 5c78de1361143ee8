/* POST of a commit: from an upload's components to a model, back to an open upload, and asked for
 * again (http-api, section 6.2). */
#include "writer_request.h"

#define DATA "/objects/a/data?dtype=u8&shape=6"

static char target[64];

static int set_up(void **state)
{
    int failed = uploads_set_up(state);

    writer_create(*state, "", target);
    return failed;
}

static struct asked put(const char *rest)
{
    return writer_put(target, rest, "abcdef", 6);
}

static void assert_open(struct world *world)
{
    assert_status_holds(world, target, "\"state\":\"open\"");
}

static void assert_commits(struct world *world)
{
    assert_status(world, writer_post_commit(target), 201);
    assert_exists(world, "m.zt", true);
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, uploads_tear_down)

/* --- success --- */

PREPARED(commit_is_answered_as_a_put_is)
{
    struct answered answered;
    struct generation *current;

    assert_status(world, put(DATA), 201);
    answered = assert_status(world, writer_post_commit(target), 201);
    current = world_find(world, "m");
    assert_non_null(current);
    assert_int_equal(current->model->object_count, 1);
    assert_string_equal(value_of(&answered, "Location"), "/v1/models/m");
    assert_string_equal(value_of(&answered, "ETag"), current->etag);
    assert_memory_equal(value_of(&answered, "Repr-Digest"), "sha-256=:", 9);
    assert_status_holds(world, target, "\"state\":\"committed\"");
    generation_release(current);
}

PREPARED(both_versions_commit)
{
    static const char *const versions[] = {"{\"version\": \"1.2.0\"}", WRITER_ZT2};

    for (size_t i = 0; i < 2; i++) {
        writer_create(world, versions[i], target);
        assert_status(world, put(DATA), 201);
        assert_status(world, put("/objects/b/data?dtype=u16&shape=3&encoding=zstd"), 201);
        assert_status(world, writer_put(target, "/objects/c/data?dtype=f32&shape=0", "", 0), 201);
        assert_commits(world);
    }
}

/* The client asks again because the answer was lost. */
PREPARED(repeated_commit_repeats_the_answer)
{
    struct answered first;
    struct answered second;
    char etag[128];

    assert_status(world, put(DATA), 201);
    first = assert_status(world, writer_post_commit(target), 201);
    strcpy(etag, value_of(&first, "ETag"));
    world_command(world, "rm m.zt");
    second = assert_status(world, writer_post_commit(target), 201);
    assert_string_equal(value_of(&second, "ETag"), etag);
    assert_string_equal(value_of(&second, "Location"), "/v1/models/m");
    assert_exists(world, "m.zt", false);
}

PREPARED(answer_is_repeated_after_a_restart)
{
    struct answered first;
    struct answered second;
    char repr_digest[128];

    assert_status(world, put(DATA), 201);
    first = assert_status(world, writer_post_commit(target), 201);
    strcpy(repr_digest, value_of(&first, "Repr-Digest"));
    uploads_restart(world);
    second = assert_status(world, writer_post_commit(target), 201);
    assert_string_equal(value_of(&second, "Repr-Digest"), repr_digest);
}

PREPARED(committed_upload_takes_nothing_more)
{
    assert_status(world, put(DATA), 201);
    assert_commits(world);
    assert_refused(world, put(DATA), 409, "conflict");
    assert_fails_after_body(world, writer_declare(target, "/objects/b", "{}"), 409, "conflict");
}

PREPARED(deleting_a_committed_upload_keeps_the_model)
{
    assert_status(world, put(DATA), 201);
    assert_commits(world);
    assert_status(world, to_ask("DELETE", target), 204);
    assert_exists(world, "m.zt", true);
    assert_nothing_kept(world);
}

PREPARED(components_survive_a_restart)
{
    assert_status(world, put(DATA), 201);
    uploads_restart(world);
    assert_status(world, put("/objects/b/data?dtype=u8&shape=2,3"), 201);
    assert_commits(world);
}

/* --- failures leave the upload open --- */

PREPARED(object_without_components_fails_the_commit)
{
    struct answered answered;

    assert_status(world, put(DATA), 201);
    assert_status(world, writer_declare(target, "/objects/b", "{\"shape\": [6]}"), 201);
    answered = ask(world, writer_post_commit(target));
    assert_problem(&answered, 422, "invalid-model");
    assert_non_null(strstr(answered.body, "\"object\":\"b\""));
    assert_exists(world, "m.zt", false);
    assert_open(world);
    assert_status(world, put("/objects/b/data?dtype=u8"), 201);
    assert_commits(world);
}

PREPARED(missing_component_fails_the_commit)
{
    assert_status(
        world,
        writer_declare(target, "/objects/s", "{\"shape\": [2, 3], \"format\": \"sparse_csr\"}"),
        201);
    assert_status(world, put("/objects/s/values?dtype=u8&shape=6"), 201);
    assert_fails_after_body(world, writer_post_commit(target), 422, "invalid-model");
    assert_open(world);
}

PREPARED(commit_without_objects_makes_an_empty_model)
{
    struct generation *current;

    assert_commits(world);
    current = world_find(world, "m");
    assert_int_equal(current->model->object_count, 0);
    generation_release(current);
}

PREPARED(failed_precondition_of_the_commit_leaves_it_open)
{
    assert_status(world, put(DATA), 201);
    assert_fails_after_body(world, with_field(writer_post_commit(target), "If-Match", "*"), 412,
                            "precondition-failed");
    assert_open(world);
    assert_exists(world, "m.zt", false);
    assert_status(world, with_field(writer_post_commit(target), "If-None-Match", "*"), 201);
}

PREPARED(precondition_of_the_creation_holds_at_commit)
{
    struct answered answered =
        assert_status(world, with_field(to_ask("POST", WRITER_UPLOADS), "If-None-Match", "*"), 201);

    strcpy(target, value_of(&answered, "Location"));
    assert_status(world, put(DATA), 201);
    world_model(world, "m.zt", true);
    assert_fails_after_body(world, writer_post_commit(target), 412, "precondition-failed");
    assert_open(world);
    world_command(world, "rm m.zt");
    assert_commits(world);
}

/* --- requests that meet --- */

PREPARED(body_on_its_way_at_commit_is_409_and_left_out)
{
    struct sending_request sending;
    struct answered answered;
    struct generation *current;
    struct asked asked = put("/objects/late/data?dtype=u8&shape=6");

    assert_status(world, put(DATA), 201);
    asked.piece_bytes = 3;
    sending_begin(world, &sending, asked);
    sending_until(&sending, 3);
    assert_commits(world);
    sending_until(&sending, 6);
    answered = sending_end(&sending);
    assert_problem(&answered, 409, "conflict");
    current = world_find(world, "m");
    assert_ok(current->error->status);
    assert_int_equal(current->model->object_count, 1);
    generation_release(current);
}

PREPARED(upload_being_committed_is_409_with_retry_after)
{
    struct writer_session *session = writer_find(world, target + strlen("/v1/uploads/"));
    const struct asked commits[] = {writer_post_commit(target), to_ask("DELETE", target)};
    enum writer_state before;

    assert_non_null(session);
    assert_true(writer_round_end(session, WRITER_COMMITTING, &before));
    for (size_t i = 0; i < 2; i++) {
        struct answered answered = ask(world, commits[i]);

        assert_problem(&answered, 409, "conflict");
        assert_string_equal(value_of(&answered, "Retry-After"), "1");
    }
    assert_refused(world, put(DATA), 409, "conflict");
    assert_status_holds(world, target, "\"state\":\"committing\"");
    kept_upload_release(session);
}
