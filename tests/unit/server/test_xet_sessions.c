/* Sessions of xet: found by key and repository, bounded, read by one at a time. */
#include "upload_world.h"

#include <string.h>

#include "hub/xet/session.h"

#define KEY   "0123456789abcdef0123456789abcdef"
#define OTHER "f123456789abcdef0123456789abcdef"

static struct xet_session *use_as(struct world *world, const char *owner, const char *key,
                                  const char *repo)
{
    const struct xet_session_name name = {zt_text_from(key), repo, owner};
    struct failure failure = {.is_set = false};
    struct xet_session *session = xet_session_use(&world->server, &name, "client", &failure);

    assert_true((session == NULL) == failure.is_set);
    return session;
}

static struct xet_session *use(struct world *world, const char *key, const char *repo)
{
    return use_as(world, "client", key, repo);
}

WITH_UPLOADS(key_of_another_owner_names_another_session)
{
    struct xet_session *session = use(world, KEY, "o/n");
    struct xet_session *other = use_as(world, "other", KEY, "o/n");

    assert_ptr_not_equal(session, other);
    assert_string_equal(xet_session_owner(other), "other");
    xet_session_leave(session);
    xet_session_leave(other);
}

WITH_UPLOADS(key_and_repository_name_a_session)
{
    struct xet_session *session = use(world, KEY, "o/n");
    struct xet_session *others[] = {use(world, KEY, "o/m"), use(world, OTHER, "o/n")};
    struct xet_session *same = use(world, KEY, "o/n");

    assert_ptr_equal(same, session);
    assert_ptr_not_equal(others[0], session);
    assert_ptr_not_equal(others[1], session);
    assert_null(use(world, "short", "o/n"));
    xet_session_leave(session);
    xet_session_leave(same);
    xet_session_leave(others[0]);
    xet_session_leave(others[1]);
}

static struct xet_xorb xorb_of(uint32_t number)
{
    struct xet_xorb xorb = {.offset = number, .chunk_count = 1};

    memcpy(xorb.hash, &number, sizeof(number));
    return xorb;
}

WITH_UPLOADS(xorbs_are_found_up_to_the_most_that_there_may_be)
{
    struct xet_session *session = use(world, KEY, "o/n");
    struct failure failure = {.is_set = false};
    struct xet_xorb xorb;

    assert_false(xet_session_find(session, xorb_of(0).hash, &xorb));
    for (uint32_t i = 0; i < XET_XORBS_MAX; i++) {
        xorb = xorb_of(i);
        assert_true(xet_session_add(session, &xorb, &failure));
    }
    for (uint32_t i = 0; i < XET_XORBS_MAX; i++) {
        assert_true(xet_session_find(session, xorb_of(i).hash, &xorb));
        assert_int_equal(xorb.offset, i);
    }
    xorb = xorb_of(XET_XORBS_MAX);
    assert_false(xet_session_add(session, &xorb, &failure));
    assert_int_equal(failure.problem, PROBLEM_TOO_LARGE);
    assert_false(xet_session_find(session, xorb.hash, &xorb));
    xet_session_leave(session);
}

WITH_UPLOADS(first_xorb_of_a_hash_stays)
{
    struct xet_session *session = use(world, KEY, "o/n");
    struct failure failure = {.is_set = false};
    struct xet_xorb xorb = xorb_of(7);

    assert_true(xet_session_add(session, &xorb, &failure));
    xorb.offset = 8;
    assert_true(xet_session_add(session, &xorb, &failure));
    assert_true(xet_session_find(session, xorb.hash, &xorb));
    assert_int_equal(xorb.offset, 7);
    xet_session_leave(session);
}

static void wake(struct waiter *waiter)
{
    waiter->client++;
}

WITH_UPLOADS(turn_is_given_to_one_at_a_time)
{
    struct xet_session *session = use(world, KEY, "o/n");
    struct waiter waiters[2] = {{.wake = wake}, {.wake = wake}};

    assert_true(xet_session_take_turn(session, &waiters[0]));
    assert_false(xet_session_take_turn(session, &waiters[0]));
    assert_false(xet_session_take_turn(session, &waiters[1]));
    xet_session_end_turn(session, false);
    assert_int_equal(waiters[0].client, 1);
    assert_int_equal(waiters[1].client, 1);
    assert_true(xet_session_take_turn(session, &waiters[1]));
    xet_session_end_turn(session, true);
    assert_int_equal(waiters[1].client, 1);
    xet_session_leave(session);
}

static bool is_any(const void *context, const struct kept_upload *upload)
{
    (void)context;
    return upload != NULL;
}

WITH_UPLOADS(session_in_use_does_not_expire)
{
    struct xet_session *session = use(world, KEY, "o/n");
    struct xet_session *same;

    world->config.upload.expire_s = -1;
    kept_uploads_expire(world->server.kept);
    same = use(world, KEY, "o/n");
    assert_ptr_equal(same, session);
    xet_session_leave(session);
    kept_uploads_expire(world->server.kept);
    assert_ptr_equal(use(world, KEY, "o/n"), session);
    xet_session_leave(session);
    xet_session_leave(same);
    kept_uploads_expire(world->server.kept);
    assert_null(kept_uploads_search(world->server.kept, is_any, NULL));
}
