/* Questions to upstreams: one for each name, and threads that wait only as long as it is of use. */
#include "support.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "store/mirror/mirror_turns.h"
#include "store/mirror/mirror_version.h"
#include "upstream/upstream.h"

#define ASKERS (MIRROR_ASKING_MAX + 4)

static struct mirror_turns turns;
static struct mirror_version *version;
static atomic_uint asked;
static atomic_bool is_held; /* an upstream that does not answer */
static atomic_bool fails;

struct asker {
    pthread_t thread;
    char name[16];
    struct mirror_answer answer;
    int64_t ended_ms;
};

static int begin(void **state)
{
    const struct upstream_listing nothing = {.commit = "1"};

    (void)state;
    mirror_turns_init(&turns);
    version = mirror_version_make(&nothing, 0, NULL);
    atomic_store(&asked, 0);
    atomic_store(&is_held, true);
    atomic_store(&fails, false);
    return version == NULL;
}

static int end(void **state)
{
    (void)state;
    mirror_turns_end(&turns);
    assert_int_equal(atomic_load(&version->references), 1);
    mirror_version_release(version);
    return 0;
}

AROUND_EACH_TEST(begin, end)

static void answer(void *context, struct mirror_answer *out_answer)
{
    assert_ptr_equal(context, &version);
    atomic_fetch_add(&asked, 1);
    AWAIT(!atomic_load(&is_held));
    if (atomic_load(&fails)) {
        out_answer->status =
            zt_fail(&out_answer->error, ZT_STALE, NULL, ZT_NO_OFFSET, "no such revision");
        return;
    }
    out_answer->status = ZT_OK;
    out_answer->version = mirror_version_hold(version);
}

static void *ask(void *context)
{
    struct asker *asker = context;

    mirror_turns_ask(&turns, asker->name, answer, &version, &asker->answer);
    asker->ended_ms = clock_ms();
    return NULL;
}

/* The same name for all, or names of their own that begin with it. */
static void start(struct asker *askers, unsigned count, const char *name, bool has_own)
{
    for (unsigned i = 0; i < count; i++) {
        snprintf(askers[i].name, sizeof(askers[i].name), "%s%.0u", name, has_own ? i : 0);
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
}

static void join(struct asker *askers, unsigned count, enum zt_status status)
{
    for (unsigned i = 0; i < count; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].answer.status, status);
        assert_int_equal(askers[i].answer.version != NULL, status == ZT_OK);
        mirror_version_release(askers[i].answer.version);
    }
}

static unsigned waiting(void)
{
    unsigned count;

    pthread_mutex_lock(&turns.lock);
    count = turns.waiting;
    pthread_mutex_unlock(&turns.lock);
    return count;
}

TEST(one_thread_asks_and_all_have_its_answer)
{
    struct asker askers[8];

    start(askers, 8, "acme/tiny", false);
    AWAIT(waiting() == 7);
    atomic_store(&is_held, false);
    join(askers, 8, ZT_OK);
    assert_int_equal(atomic_load(&asked), 1);
    /* Answers are not remembered here. */
    start(askers, 1, "acme/tiny", false);
    join(askers, 1, ZT_OK);
    assert_int_equal(atomic_load(&asked), 2);
}

TEST(a_failure_is_everyones_too)
{
    struct asker askers[8];

    atomic_store(&fails, true);
    start(askers, 8, "acme/tiny", false);
    AWAIT(waiting() == 7);
    atomic_store(&is_held, false);
    join(askers, 8, ZT_STALE);
    assert_string_equal(askers[7].answer.error.message, "no such revision");
    assert_int_equal(atomic_load(&asked), 1);
}

TEST(a_question_too_many_waits_while_the_others_are_young)
{
    struct asker askers[ASKERS];
    const int64_t began_ms = clock_ms();
    unsigned answered = 0;

    start(askers, ASKERS, "acme/r", true);
    AWAIT(atomic_load(&asked) == MIRROR_ASKING_MAX);
    AWAIT(waiting() == ASKERS - MIRROR_ASKING_MAX || clock_ms() - began_ms >= MIRROR_YOUNG_MS);
    assert_int_equal(atomic_load(&asked), MIRROR_ASKING_MAX);
    atomic_store(&is_held, false);
    for (unsigned i = 0; i < ASKERS; i++) {
        pthread_join(askers[i].thread, NULL);
        answered += askers[i].answer.status == ZT_OK;
        assert_true(askers[i].answer.status == ZT_OK ||
                    askers[i].ended_ms - began_ms >= MIRROR_YOUNG_MS);
        mirror_version_release(askers[i].answer.version);
    }
    assert_true(answered >= MIRROR_ASKING_MAX);
}

TEST(threads_give_up_when_an_upstream_hangs)
{
    struct asker hanging[MIRROR_ASKING_MAX];
    struct asker others[2];
    struct asker same[MIRROR_WAITING_MAX + 1];
    int64_t began_ms;

    start(hanging, MIRROR_ASKING_MAX, "acme/r", true);
    AWAIT(atomic_load(&asked) == MIRROR_ASKING_MAX);
    start(others, 2, "acme/other", true);
    join(others, 2, ZT_UNAVAILABLE);
    assert_string_equal(others[0].answer.error.rule, UPSTREAM_AWAY);
    /* So many threads wait for the same name, and no more, because the question is old. */
    start(same, MIRROR_WAITING_MAX, "acme/r", false);
    AWAIT(waiting() == MIRROR_WAITING_MAX);
    began_ms = clock_ms();
    start(same + MIRROR_WAITING_MAX, 1, "acme/r", false);
    join(same + MIRROR_WAITING_MAX, 1, ZT_UNAVAILABLE);
    assert_true(clock_ms() - began_ms < 60000 && waiting() == MIRROR_WAITING_MAX);
    atomic_store(&is_held, false);
    join(hanging, MIRROR_ASKING_MAX, ZT_OK);
    join(same, MIRROR_WAITING_MAX, ZT_OK);
}

TEST(at_shutdown_waiting_threads_fail_at_once)
{
    struct asker askers[4];
    struct asker late;

    start(askers, 1, "acme/tiny", false);
    AWAIT(atomic_load(&asked) == 1);
    start(askers + 1, 3, "acme/tiny", false);
    AWAIT(waiting() == 3);
    mirror_turns_interrupt(&turns);
    join(askers + 1, 3, ZT_UNAVAILABLE);
    start(&late, 1, "acme/late", false);
    join(&late, 1, ZT_UNAVAILABLE);
    assert_int_equal(atomic_load(&asked), 1);
    atomic_store(&is_held, false);
    join(askers, 1, ZT_OK);
}
