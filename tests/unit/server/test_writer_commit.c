/* Commit of a streaming writer's upload: from its components to a model, and back to an open upload
 * when that fails. */
#include "upload_world.h"

#include "upload/shared/current_model.h"
#include "upload/writer/writer_arrival.h"
#include "upload/writer/writer_commit.h"

#define ID     "0123456789abcdef0123456789abcdef"
#define LENGTH ((size_t)200000)

static uint8_t bytes[LENGTH];

static void put(struct writer_session *session, const char *object, size_t length)
{
    const struct arrival_terms terms = {
        .object = zt_text_from(object),
        .component = zt_text_from("data"),
        .shape = {.stated = true, .rank = 1, .extents = {length}},
        .dtype = ZT_U8,
        .decoded_length = length,
        .body_length = length,
    };
    struct failure failure = {.is_set = false};
    const struct body_piece piece = {.bytes = bytes, .length = length, .on_loop = true};
    struct arrival *arrival;
    uint64_t round;

    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    arrival = arrival_begin(session, round, &terms, &failure);
    assert_non_null(arrival);
    arrival_receive(arrival, &piece);
    arrival_end_body(arrival);
    arrival_finish(arrival);
    assert_false(arrival->failure.is_set);
    arrival_release(arrival);
}

static void declare(struct writer_session *session, const char *object, const char *json)
{
    struct zt_declaration *declaration = calloc(1, sizeof(*declaration));
    struct failure failure = {.is_set = false};
    uint64_t round;
    bool is_new;

    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    assert_ok(zt_declare_object(session->target, zt_text_from(json), declaration, &failure.error));
    assert_true(writer_session_declare(session, round, zt_text_from(object), declaration, &is_new,
                                       &failure));
}

static bool commit(struct writer_session *session, struct preconditions preconditions,
                   struct failure *out_failure)
{
    const struct request request = {.client = NULL};
    enum writer_state before;

    *out_failure = (struct failure){.is_set = false};
    assert_true(writer_round_end(session, WRITER_COMMITTING, &before));
    assert_int_equal(before, WRITER_OPEN);
    return writer_commit(session, &preconditions, &request, out_failure);
}

static void assert_fails(struct writer_session *session, struct preconditions preconditions,
                         enum problem problem)
{
    struct failure failure;
    uint64_t round;

    assert_false(commit(session, preconditions, &failure));
    assert_int_equal(failure.problem, problem);
    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    assert_false(session->is_dirty);
}

/* Commits, and compares the model's components with what was sent. */
static void assert_commits(struct world *world, struct writer_session *session,
                           uint32_t object_count)
{
    struct failure failure;
    struct generation *current;
    uint64_t round;

    assert_true(commit(session, (struct preconditions){0}, &failure));
    assert_int_equal(writer_session_state(session, &round), WRITER_COMMITTED);
    current = model_find_current(&world->server, "m");
    assert_non_null(current);
    assert_ok(current->error->status);
    assert_int_equal(current->model->object_count, object_count);
    assert_string_equal(current->etag, session->published.etag);
    generation_release(current);
    world_command(world, "test ! -e .ztserve-uploads/" ID "/data");
    world_command(world, "test ! -e .ztserve-uploads/" ID "/compact");
}

/* A session with a hole where a longer component was. */
static struct writer_session *begin_with_hole(struct world *world, enum zt_target target)
{
    struct writer_session *session = writer_begin(world, ID, target);

    put(session, "a", LENGTH);
    put(session, "b", 300);
    put(session, "a", 100);
    return session;
}

WITH_UPLOADS(tight_components_become_the_model)
{
    struct writer_session *session = writer_begin(world, ID, ZT_TARGET_ZT1);

    put(session, "b", LENGTH);
    put(session, "a", 10);
    put(session, "empty", 0);
    assert_commits(world, session, 3);
    kept_upload_release(session);
}

WITH_UPLOADS(holes_are_left_out_of_the_model)
{
    struct writer_session *session = begin_with_hole(world, ZT_TARGET_ZT2);

    assert_commits(world, session, 2);
    world_command(world, "test $(stat -c %s m.zt) -lt 200000");
    kept_upload_release(session);
}

WITH_UPLOADS(failed_preconditions_leave_the_upload_open)
{
    struct writer_session *session = begin_with_hole(world, ZT_TARGET_ZT1);

    assert_fails(session, (struct preconditions){.if_match = "\"nothing\""},
                 PROBLEM_PRECONDITION_FAILED);
    assert_false(session->is_publication_announced);
    world_command(world, "test ! -e .ztserve-uploads/" ID "/compact");
    put(session, "c", 7);
    assert_commits(world, session, 3);
    kept_upload_release(session);
}

WITH_UPLOADS(failed_commit_survives_a_restart)
{
    struct writer_session *session = begin_with_hole(world, ZT_TARGET_ZT1);

    assert_fails(session, (struct preconditions){.if_match = "\"nothing\""},
                 PROBLEM_PRECONDITION_FAILED);
    session = writer_after_restart(world, session, ID);
    assert_int_equal(atomic_load(&session->kept.entry.received), 400);
    assert_commits(world, session, 2);
    kept_upload_release(session);
}

WITH_UPLOADS(incomplete_object_leaves_the_upload_open)
{
    struct writer_session *session = writer_begin(world, ID, ZT_TARGET_ZT1);

    put(session, "a", 10);
    declare(session, "s", "{\"shape\": [2, 3], \"format\": \"sparse_csr\"}");
    assert_fails(session, (struct preconditions){0}, PROBLEM_INVALID_MODEL);
    assert_null(model_find_current(&world->server, "m"));
    kept_upload_release(session);
}

WITH_UPLOADS(tight_file_is_cut_after_a_failed_commit)
{
    struct writer_session *session = writer_begin(world, ID, ZT_TARGET_ZT1);

    put(session, "a", 10);
    assert_fails(session, (struct preconditions){.if_match = "\"nothing\""},
                 PROBLEM_PRECONDITION_FAILED);
    put(session, "b", 20);
    assert_commits(world, session, 2);
    kept_upload_release(session);
}

WITH_UPLOADS(conditions_of_the_beginning_and_of_the_commit_both_hold)
{
    struct writer_session *session = writer_begin(world, ID, ZT_TARGET_ZT1);
    const struct preconditions only_new = {.if_none_match = "*"};

    assert_true(writer_session_set_preconditions(session, &only_new));
    put(session, "a", 10);
    world_model(world, "m.zt", true);
    assert_fails(session, (struct preconditions){.if_none_match = "\"other\""},
                 PROBLEM_PRECONDITION_FAILED);
    world_command(world, "rm m.zt");
    assert_fails(session, (struct preconditions){.if_match = "*"}, PROBLEM_PRECONDITION_FAILED);
    assert_commits(world, session, 1);
    kept_upload_release(session);
}

WITH_UPLOADS(conditions_of_one_kind_are_all_checked)
{
    struct writer_session *session = writer_begin(world, ID, ZT_TARGET_ZT1);
    const struct preconditions own = {.if_match = "*", .if_none_match = "\"other\""};

    assert_true(writer_session_set_preconditions(session, &own));
    put(session, "a", 10);
    world_model(world, "m.zt", true);
    assert_fails(session, (struct preconditions){.if_match = "\"nothing\""},
                 PROBLEM_PRECONDITION_FAILED);
    assert_fails(session, (struct preconditions){.if_none_match = "*"},
                 PROBLEM_PRECONDITION_FAILED);
    assert_commits(world, session, 1);
    kept_upload_release(session);
}

WITH_UPLOADS(outcome_survives_a_restart)
{
    struct writer_session *session = begin_with_hole(world, ZT_TARGET_ZT1);
    struct published published;

    assert_commits(world, session, 2);
    published = session->published;
    session = writer_after_restart(world, session, ID);
    assert_int_equal(session->state, WRITER_COMMITTED);
    assert_memory_equal(session->published.sha256, published.sha256, sizeof(published.sha256));
    assert_string_equal(session->published.etag, published.etag);
    kept_upload_release(session);
}

WITH_UPLOADS(outcome_expires)
{
    struct writer_session *session = begin_with_hole(world, ZT_TARGET_ZT1);

    assert_commits(world, session, 2);
    kept_uploads_expire(world->server.kept);
    assert_true(session->kept.is_listed);
    session->committed_ms -= KEPT_OUTCOME_S * 1000;
    kept_uploads_expire(world->server.kept);
    assert_false(session->kept.is_listed);
    assert_int_equal(session->state, WRITER_DROPPED);
    kept_upload_release(session);
    world_command(world, "test ! -e .ztserve-uploads/" ID);
}
