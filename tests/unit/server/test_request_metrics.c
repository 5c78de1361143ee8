/* Requests as the metrics show them: by route, method and status, and in the right buckets. */
#include "exchange_world.h"

#include "http/exchange/request_metrics.h"

/* What the metrics show, until the next call. */
static const char *written(void)
{
    static char text[1 << 18];
    FILE *stream = fmemopen(text, sizeof(text), "w");

    assert_non_null(stream);
    request_metrics_write(stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void assert_line(const char *text, const char *line)
{
    if (strstr(text, line) == NULL)
        fail_msg("no line %s", line);
}

static struct request *routed(enum method method, const char *target)
{
    struct request *request = ask(method, target);

    request_state(request)->stage = STAGE_QUEUED;
    (void)router_match(request);
    return request;
}

static void count(struct request *request, unsigned status, uint64_t duration_ns, uint64_t wait_ns)
{
    request_metrics_count(request, &(struct request_outcome){.status = status,
                                                             .duration_ns = duration_ns,
                                                             .wait_ns = wait_ns});
}

TEST(durations_are_in_the_least_bucket_that_holds_them)
{
    struct request *request = routed(METHOD_GET, "/healthz");
    const char *text;

    count(request, 200, 0, UINT64_MAX);
    count(request, 200, 200000, 1);
    count(request, 200, 200001, 1000001);
    count(request, 200, UINT64_C(60000000000), 1);
    count(request, 200, UINT64_C(60000000001), 1);
    text = written();
    assert_line(text, "duration_seconds_bucket{route=\"/healthz\",le=\"0.0002\"} 2\n");
    assert_line(text, "duration_seconds_bucket{route=\"/healthz\",le=\"0.001\"} 3\n");
    assert_line(text, "duration_seconds_bucket{route=\"/healthz\",le=\"10\"} 3\n");
    assert_line(text, "duration_seconds_bucket{route=\"/healthz\",le=\"60\"} 4\n");
    assert_line(text, "duration_seconds_bucket{route=\"/healthz\",le=\"+Inf\"} 5\n");
    assert_line(text, "duration_seconds_sum{route=\"/healthz\"} 120.000400002\n");
    assert_line(text, "duration_seconds_count{route=\"/healthz\"} 5\n");
    /* The first of them never had an answer. */
    assert_line(text, "start_seconds_bucket{route=\"/healthz\",le=\"0.0002\"} 3\n");
    assert_line(text, "start_seconds_bucket{route=\"/healthz\",le=\"0.005\"} 4\n");
    assert_line(text, "start_seconds_count{route=\"/healthz\"} 4\n");
    request_free(request);
}

TEST(words_that_are_not_known_are_other)
{
    struct request *known = routed(METHOD_GET, "/bytes");
    struct request *unusual = routed(METHOD_TRACE, "/bytes");
    struct request *query = routed(METHOD_QUERY, "/bytes");
    struct request *lost = routed(METHOD_GET, "/no/such/path");
    const char *text;

    count(known, 206, 1, 1);
    count(known, 599, 1, 1);
    count(unusual, 405, 1, 1);
    count(query, 405, 1, 1);
    count(lost, 404, 1, 1);
    request_state(lost)->stage = STAGE_LINE;
    count(lost, 400, 1, 1);
    text = written();
    assert_line(text, "requests_total{route=\"/bytes\",method=\"GET\",status=\"206\"} 1\n");
    assert_line(text, "requests_total{route=\"/bytes\",method=\"GET\",status=\"other\"} 1\n");
    assert_line(text, "requests_total{route=\"/bytes\",method=\"other\",status=\"405\"} 1\n");
    assert_line(text, "requests_total{route=\"/bytes\",method=\"QUERY\",status=\"405\"} 1\n");
    assert_line(text, "requests_total{route=\"none\",method=\"GET\",status=\"404\"} 1\n");
    assert_line(text, "requests_total{route=\"none\",method=\"other\",status=\"400\"} 1\n");
    request_free(known);
    request_free(unusual);
    request_free(query);
    request_free(lost);
}

TEST(every_status_of_a_problem_has_a_label)
{
    struct request *request = routed(METHOD_POST, "/bytes");
    char line[128];

    for (enum problem problem = 0; problem < PROBLEM_COUNT; problem++) {
        count(request, problem_status(problem), 1, 1);
        request_metrics_problem(problem);
        snprintf(line, sizeof(line), "method=\"POST\",status=\"%u\"} ", problem_status(problem));
        assert_line(written(), line);
        snprintf(line, sizeof(line), "problems_total{code=\"%s\",status=\"%u\"} 1\n",
                 problem_code(problem), problem_status(problem));
        assert_line(written(), line);
    }
    assert_null(strstr(written(), "method=\"POST\",status=\"other\""));
    request_free(request);
}
