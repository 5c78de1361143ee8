/* Counters and gauges: they add up over threads, also over those that have ended, and their text is
 * in the exposition format. */
#include "tests.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"

#define THREADS 8
#define TIMES   10000
#define CELLS   100

static pthread_barrier_t barrier;

static void *count(void *argument)
{
    /* All threads of a round have begun to count before the first of them ends. */
    metric_add(METRIC_RECEIVED_BYTES, 1);
    if (argument != NULL)
        pthread_barrier_wait(argument);
    for (unsigned i = 0; i < TIMES; i++) {
        metric_add(METRIC_SENT_BYTES, 3);
        metric_cell_add(&metric_cells(METRIC_BLOCK_REQUESTS, CELLS)[i % CELLS], 1);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, &barrier), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

TEST(counts_of_ended_threads_remain)
{
    const uint64_t before = metric_value(METRIC_SENT_BYTES);
    uint64_t sums[CELLS] = {0};

    run_threads();
    /* New threads take over the memory of those that have ended. */
    run_threads();
    count(NULL);
    assert_int_equal(metric_value(METRIC_SENT_BYTES) - before, (2 * THREADS + 1) * TIMES * 3);
    metric_cells_sum(METRIC_BLOCK_REQUESTS, sums, CELLS);
    for (unsigned i = 0; i < CELLS; i++)
        assert_int_equal(sums[i], (2 * THREADS + 1) * TIMES / CELLS);
}

/* What a function writes, until the next call. */
static const char *written_by(void (*write)(FILE *stream))
{
    static char text[32768];
    FILE *stream = fmemopen(text, sizeof(text), "w");

    assert_non_null(stream);
    write(stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

TEST(gauges_appear_once_they_are_set)
{
    const char *text = written_by(metrics_write);

    assert_null(strstr(text, "ztserve_config_last_reload_success_timestamp_seconds"));
    metric_set(METRIC_RELOAD_TIME, 1800000000);
    text = written_by(metrics_write);
    assert_non_null(strstr(text,
                           "\n# TYPE ztserve_config_last_reload_success_timestamp_seconds gauge\n"
                           "ztserve_config_last_reload_success_timestamp_seconds 1800000000\n"));
}

TEST(lines_of_a_family_stand_together)
{
    const char *text = written_by(metrics_write);
    const char *family = strstr(text, "# HELP ztserve_connections_refused_total ");

    assert_non_null(family);
    assert_non_null(strstr(family, "\n# TYPE ztserve_connections_refused_total counter\n"
                                   "ztserve_connections_refused_total{reason=\"limit\"} 0\n"
                                   "ztserve_connections_refused_total{reason=\"address\"} 0\n# "));
    assert_null(strstr(family + 1, "# HELP ztserve_connections_refused_total "));
}

static void write_durations(FILE *stream)
{
    metrics_write_seconds(stream, "short", NULL, 1);
    metrics_write_seconds(stream, "long", "a=\"b\"", UINT64_C(12345678901234567890));
}

TEST(durations_are_written_in_seconds)
{
    const char *text = written_by(write_durations);

    assert_string_equal(text, "short 0.000000001\nlong{a=\"b\"} 12345678901.234567890\n");
}
