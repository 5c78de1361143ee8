/* Clients that take their answers too slowly, as a pure function of what was taken and when. */
#include "tests.h"

#include "http/limits/reader.h"

static const struct reader_limits limits = {
    .stall_ms = 60000, .grace_ms = 10000, .bytes_per_s = 1000};
static struct reader reader;

static int begin(void **state)
{
    (void)state;
    reader = (struct reader){0};
    return 0;
}

static bool look(uint64_t taken_bytes, uint64_t owed_ms)
{
    return reader_is_too_slow(&reader, &limits, (struct reader_progress){taken_bytes, owed_ms});
}

#define PREPARED(name) TEST_WITH(name, begin, NULL)

PREPARED(a_reader_at_the_least_rate_is_left_alone)
{
    for (uint64_t s = 1; s < 100; s++)
        assert_false(look(s * 1000, s * 1000));
}

PREPARED(a_reader_below_the_least_rate_is_cut_after_the_grace)
{
    assert_false(look(0, 1000));
    assert_false(look(4000, 6000));
    assert_false(look(9000, 10999));
    assert_true(look(9999, 11000));
}

PREPARED(a_reader_that_was_fast_may_not_trickle)
{
    assert_false(look(0, 1000));
    assert_false(look(1000000000, 11000));
    assert_false(look(1000001000, 20000));
    assert_true(look(1000002000, 21000));
}

PREPARED(a_pause_within_the_grace_is_forgiven)
{
    assert_false(look(0, 1000));
    assert_false(look(0, 10000));
    assert_false(look(10000, 11000));
    assert_false(look(10000, 20000));
    assert_false(look(20000, 21000));
}

PREPARED(time_in_which_nothing_is_owed_does_not_count)
{
    for (unsigned i = 0; i < 1000; i++)
        assert_false(look(5, 1000));
}

PREPARED(a_reader_that_takes_nothing_is_cut)
{
    const struct reader_limits stall_only = {.stall_ms = 60000, .grace_ms = 10000};

    for (uint64_t s = 1; s < 61; s++)
        assert_false(
            reader_is_too_slow(&reader, &stall_only, (struct reader_progress){7, s * 1000}));
    assert_true(reader_is_too_slow(&reader, &stall_only, (struct reader_progress){7, 61000}));
}

PREPARED(without_a_least_rate_a_byte_a_minute_is_enough)
{
    const struct reader_limits stall_only = {.stall_ms = 60000, .grace_ms = 10000};

    for (uint64_t minute = 1; minute < 100; minute++)
        assert_false(reader_is_too_slow(&reader, &stall_only,
                                        (struct reader_progress){minute, minute * 60000}));
}

PREPARED(a_clock_that_starts_again_begins_a_new_measurement)
{
    assert_false(look(0, 500000));
    assert_false(look(0, 100));
    assert_false(look(0, 0));
    assert_false(look(0, 600000));
    assert_false(look(9000, 609000));
    assert_true(look(9000, 611000));
}

static bool gets_nothing(uint64_t taken_bytes, uint64_t owed_ms, uint64_t now_ms)
{
    return reader_is_starved(&reader, &limits, (struct reader_progress){taken_bytes, owed_ms},
                             now_ms);
}

PREPARED(an_answer_of_which_nothing_more_comes_is_noticed)
{
    assert_false(gets_nothing(5000, 100, 1000));
    assert_false(gets_nothing(5000, 100, 60999));
    assert_true(gets_nothing(5000, 100, 61000));
}

PREPARED(an_answer_of_which_something_is_owed_or_taken_goes_on)
{
    for (uint64_t i = 1; i < 100; i++) {
        assert_false(gets_nothing(5000 + i / 2, 100, i * 59000));
        assert_false(look(5000 + i / 2, 100));
    }
    reader.seen_ms = 0;
    for (uint64_t i = 1; i < 100; i++)
        assert_false(gets_nothing(5000, 100 + i / 2, i * 59000));
}

PREPARED(an_answer_that_the_server_keeps_waiting_goes_on)
{
    assert_false(gets_nothing(5000, 100, 1000));
    assert_false(gets_nothing(5000, 100, 0));
    assert_false(gets_nothing(5000, 100, 1000000));
    assert_false(gets_nothing(5000, 100, 1059999));
    assert_true(gets_nothing(5000, 100, 1060000));
}
