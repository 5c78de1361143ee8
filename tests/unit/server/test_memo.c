/* Values that are made once and shared: waiting, failing, bounds and eviction. */
#include "tests.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memo.h"

struct value {
    int number;
    int *freed;
};

struct counting {
    struct waiter waiter; /* first: the waiter is the structure */
    int wakes;
    bool is_gone;
};

static void count_wake(struct waiter *waiter)
{
    ((struct counting *)waiter)->wakes++;
}

static bool is_gone(const struct waiter *waiter)
{
    return ((const struct counting *)waiter)->is_gone;
}

static struct counting counting(void)
{
    return (struct counting){.waiter = {.wake = count_wake, .is_gone = is_gone}};
}

static void count_freed(void *value)
{
    if (((struct value *)value)->freed != NULL)
        ++*((struct value *)value)->freed;
}

static struct memo *make_memo(struct memo_charge most)
{
    const struct memo_rules rules = {
        .value_bytes = sizeof(struct value), .free_value = count_freed, .most = most};
    struct memo *memo = memo_new(&rules);

    assert_non_null(memo);
    return memo;
}

static struct memo *make_large(void)
{
    return make_memo((struct memo_charge){1000, 1000});
}

static struct value *hold(struct memo *memo, const char *key)
{
    struct value *value = memo_hold(memo, zt_text_from(key));

    assert_non_null(value);
    return value;
}

/* Makes a value of that many bytes and releases it. */
static void keep(struct memo *memo, const char *key, uint64_t bytes, int *freed)
{
    struct value *value = hold(memo, key);

    assert_int_equal(memo_ask(value, 1, NULL, NULL), MEMO_MAKE);
    value->freed = freed;
    memo_done(value, (struct memo_charge){bytes, 1});
    memo_release(value);
    memo_release(value);
}

static bool has(struct memo *memo, const char *key)
{
    void *value = memo_find(memo, zt_text_from(key));

    memo_release(value);
    return value != NULL;
}

TEST(a_value_is_made_once_and_wakes_all_that_wait)
{
    struct memo *memo = make_large();
    struct counting waiters[2] = {counting(), counting()};
    struct value *first = hold(memo, "key");
    struct value *second = hold(memo, "key");
    int freed = 0;

    assert_ptr_equal(first, second);
    assert_int_equal(memo_ask(first, 1, &waiters[0].waiter, NULL), MEMO_MAKE);
    memo_await(first, &waiters[0].waiter);
    assert_int_equal(memo_ask(second, 1, &waiters[1].waiter, NULL), MEMO_PENDING);
    assert_false(has(memo, "key"));
    first->number = 7;
    first->freed = &freed;
    memo_done(first, (struct memo_charge){10, 1});
    memo_release(first);
    assert_int_equal(waiters[0].wakes + waiters[1].wakes, 2);
    assert_int_equal(memo_ask(second, 1, &waiters[1].waiter, NULL), MEMO_READY);
    assert_int_equal(second->number, 7);
    assert_true(zt_text_is(memo_key(second), "key"));
    memo_release(first);
    memo_release(second);
    assert_true(has(memo, "key"));
    assert_false(has(memo, "ke"));
    assert_int_equal(freed, 0);
    memo_free(memo);
    assert_int_equal(freed, 1);
}

TEST(a_failure_reaches_all_holders_and_lasts_as_long_as_it_says)
{
    static const struct {
        struct memo_charge charge;
        int64_t lasts_ms;
        bool lasts;
    } cases[] = {{{1, 1}, MEMO_LASTING, true}, {{1, 1}, 0, false}, {{0, 0}, MEMO_LASTING, false}};
    struct zt_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct memo *memo = make_large();
        struct counting waiter = counting();
        struct value *value = hold(memo, "key");
        struct value *later;

        assert_int_equal(memo_ask(value, 1, &waiter.waiter, &error), MEMO_MAKE);
        memo_await(value, &waiter.waiter);
        zt_fail(&error, ZT_CORRUPT, NULL, 5, "broken");
        memo_fail(value, &error, cases[i].charge, cases[i].lasts_ms);
        memo_release(value);
        assert_int_equal(waiter.wakes, 1);
        zt_error_clear(&error);
        assert_int_equal(memo_ask(value, 1, &waiter.waiter, &error), MEMO_FAILED);
        assert_string_equal(error.message, "broken");
        later = hold(memo, "key");
        assert_int_equal(later == value, cases[i].lasts);
        memo_release(value);
        memo_release(later);
        assert_false(has(memo, "key"));
        memo_free(memo);
    }
}

TEST(values_of_many_keys_are_found_again)
{
    struct memo *memo = make_memo((struct memo_charge){UINT64_MAX, SIZE_MAX});
    char key[32];

    assert_true(memo_is_empty(memo));
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        keep(memo, key, 1, NULL);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_true(has(memo, key));
    }
    memo_free(memo);
}

TEST(the_least_recently_used_goes_first_unless_it_is_held)
{
    struct memo *memo = make_memo((struct memo_charge){100, 3});
    struct value *held;
    int freed = 0;

    keep(memo, "a", 10, &freed);
    keep(memo, "b", 10, &freed);
    keep(memo, "c", 10, &freed);
    assert_true(has(memo, "a"));
    keep(memo, "d", 10, &freed);
    assert_false(has(memo, "b"));
    assert_true(has(memo, "c"));
    held = hold(memo, "a");
    keep(memo, "e", 95, &freed);
    assert_true(has(memo, "a"));
    assert_false(has(memo, "c"));
    assert_false(has(memo, "d"));
    /* The held one and the new one are more than the bound together. */
    assert_false(has(memo, "e"));
    memo_recharge(held, (struct memo_charge){101, 1});
    memo_release(held);
    assert_true(memo_is_empty(memo));
    assert_int_equal(freed, 5);
    memo_free(memo);
}

static void change_bounds(void *context, struct memo_charge *out_most)
{
    out_most->bytes = *(const uint64_t *)context;
}

TEST(the_newest_value_stays_if_the_rules_say_so)
{
    uint64_t bytes = 100;
    const struct memo_rules rules = {.value_bytes = sizeof(struct value),
                                     .most = {0, 10},
                                     .bounds = change_bounds,
                                     .context = &bytes,
                                     .keeps_newest = true};
    struct memo *memo = memo_new(&rules);

    assert_non_null(memo);
    keep(memo, "a", 10, NULL);
    keep(memo, "b", 1000, NULL);
    assert_false(has(memo, "a"));
    assert_true(has(memo, "b"));
    bytes = 0;
    keep(memo, "c", 1, NULL);
    assert_true(memo_is_empty(memo));
    memo_free(memo);
}

TEST(an_unfinished_value_goes_with_its_last_holder)
{
    struct memo *memo = make_large();
    struct value *value = hold(memo, "key");
    int freed = 0;

    assert_int_equal(memo_ask(value, 1, NULL, NULL), MEMO_MAKE);
    value->freed = &freed;
    memo_done(value, MEMO_NOT_KEPT);
    memo_release(value);
    assert_int_equal(memo_ask(value, 1, NULL, NULL), MEMO_READY);
    assert_int_equal(memo_ask(value, 2, NULL, NULL), MEMO_MAKE);
    assert_int_equal(memo_ask(value, 1, NULL, NULL), MEMO_READY);
    assert_true(memo_is_wanted(value));
    memo_release(value);
    assert_false(memo_is_wanted(value));
    assert_int_equal(freed, 0);
    memo_done(value, (struct memo_charge){1, 1});
    memo_release(value);
    assert_int_equal(freed, 1);
    assert_true(memo_is_empty(memo));
    memo_free(memo);
}

TEST(a_value_is_not_wanted_when_no_client_is_left)
{
    struct memo *memo = make_large();
    struct counting waiter = counting();
    struct value *value = hold(memo, "key");
    struct value *later;

    assert_int_equal(memo_ask(value, 1, &waiter.waiter, NULL), MEMO_MAKE);
    memo_await(value, &waiter.waiter);
    pause_ms(200);
    assert_true(memo_is_wanted(value));
    waiter.is_gone = true;
    AWAIT(!memo_is_wanted(value));
    later = hold(memo, "key");
    assert_ptr_not_equal(later, value);
    memo_release(later);
    memo_done(value, (struct memo_charge){1, 1});
    memo_release(value);
    memo_release(value);
    assert_true(memo_is_empty(memo));
    value = hold(memo, "key");
    assert_int_equal(memo_ask(value, 1, NULL, NULL), MEMO_MAKE);
    memo_stop(memo);
    assert_true(memo_is_stopping(memo));
    assert_false(memo_is_wanted(value));
    memo_done(value, MEMO_NOT_KEPT);
    memo_release(value);
    memo_release(value);
    memo_free(memo);
}

static bool is_odd(void *context, const void *value, bool is_held)
{
    ++*(int *)context;
    return !is_held && ((const struct value *)value)->number % 2 == 1;
}

TEST(a_sweep_drops_what_is_chosen)
{
    struct memo *memo = make_large();
    static const char *const keys[] = {"0", "1", "2", "3"};
    struct value *held[4];
    int seen = 0;

    for (int i = 0; i < 4; i++) {
        held[i] = hold(memo, keys[i]);
        assert_int_equal(memo_get(held[i], 1, NULL), MEMO_MAKE);
        held[i]->number = i;
        memo_done(held[i], (struct memo_charge){1, 1});
        memo_release(held[i]);
        if (i != 3)
            memo_release(held[i]);
    }
    assert_true(memo_sweep(memo, is_odd, &seen));
    assert_int_equal(seen, 4);
    assert_false(memo_sweep(memo, is_odd, &seen));
    assert_false(has(memo, "1"));
    assert_true(has(memo, "2"));
    assert_true(has(memo, "3"));
    memo_drop(held[3]);
    assert_false(has(memo, "3"));
    assert_int_equal(held[3]->number, 3);
    memo_release(held[3]);
    memo_free(memo);
}

/* --- jobs and threads --- */

struct making {
    struct job job; /* first: the job is the structure */
    struct value *value;
    bool began;
};

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;

    making->began = memo_begin(making->value, job);
    if (making->began) {
        making->value->number = 1;
        memo_done(making->value, (struct memo_charge){1, 1});
    }
    memo_release(making->value);
}

static void *wait_for_value(void *value)
{
    assert_int_equal(memo_get(value, 1, NULL), MEMO_READY);
    assert_int_equal(((struct value *)value)->number, 2);
    return NULL;
}

static atomic_bool is_open;

static void wait_until_open(struct job *job)
{
    (void)job;
    AWAIT(atomic_load(&is_open));
}

TEST(a_job_makes_the_value_unless_a_thread_takes_over)
{
    struct memo *memo = make_large();

    for (int taken_over = 0; taken_over < 2; taken_over++) {
        struct workers *workers = workers_start(4);
        struct job blocking[4] = {{.run = wait_until_open},
                                  {.run = wait_until_open},
                                  {.run = wait_until_open},
                                  {.run = wait_until_open}};
        struct counting waiters[2] = {counting(), counting()};
        struct value *value = hold(memo, taken_over ? "b" : "a");
        struct making making = {.job.run = run_making, .value = value};
        const struct memo_job job = {workers, &making.job, 0};
        pthread_t thread;

        atomic_store(&is_open, false);
        for (int i = 0; i < 4; i++)
            workers_submit(workers, &blocking[i]);
        assert_int_equal(memo_ask(value, 1, &waiters[0].waiter, NULL), MEMO_MAKE);
        memo_submit(value, &waiters[0].waiter, &job);
        assert_int_equal(memo_ask(value, 1, &waiters[1].waiter, NULL), MEMO_PENDING);
        if (taken_over) {
            assert_int_equal(memo_get(value, 1, NULL), MEMO_MAKE);
            assert_int_equal(pthread_create(&thread, NULL, wait_for_value, value), 0);
            value->number = 2;
            memo_done(value, (struct memo_charge){1, 1});
            memo_release(value);
            pthread_join(thread, NULL);
        }
        atomic_store(&is_open, true);
        workers_stop(workers);
        assert_int_equal(making.began, !taken_over);
        assert_int_equal(value->number, 1 + taken_over);
        assert_int_equal(waiters[0].wakes + waiters[1].wakes, 2);
        memo_release(value);
    }
    memo_free(memo);
}

static void *take_over(void *value)
{
    assert_int_equal(memo_get(value, 1, NULL), MEMO_MAKE);
    ((struct value *)value)->number = 2;
    memo_done(value, (struct memo_charge){1, 1});
    memo_release(value);
    return NULL;
}

/* A thread may wait before the maker has queued its job. It must not go on waiting for it: all
 * workers may wait like this. */
TEST(a_thread_that_waits_takes_over_from_a_later_job)
{
    struct memo *memo = make_large();
    struct workers *workers = workers_start(4);
    struct job blocking[4] = {{.run = wait_until_open},
                              {.run = wait_until_open},
                              {.run = wait_until_open},
                              {.run = wait_until_open}};
    struct counting waiter = counting();
    struct value *value = hold(memo, "key");
    struct making making = {.job.run = run_making, .value = value};
    const struct memo_job job = {workers, &making.job, 0};
    pthread_t thread;

    atomic_store(&is_open, false);
    for (int i = 0; i < 4; i++)
        workers_submit(workers, &blocking[i]);
    assert_int_equal(memo_ask(value, 1, &waiter.waiter, NULL), MEMO_MAKE);
    assert_int_equal(pthread_create(&thread, NULL, take_over, value), 0);
    pause_ms(50);
    memo_submit(value, &waiter.waiter, &job);
    /* Ends although no worker is free. */
    pthread_join(thread, NULL);
    atomic_store(&is_open, true);
    workers_stop(workers);
    assert_false(making.began);
    assert_int_equal(value->number, 2);
    assert_int_equal(waiter.wakes, 1);
    memo_release(value);
    memo_free(memo);
}
