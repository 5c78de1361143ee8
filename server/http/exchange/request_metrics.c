/* One block of counters per loop: for each route a table of methods and statuses, and two
 * histograms. Most of it is never touched and therefore takes no memory. */
#include "http/exchange/request_metrics.h"

#include <assert.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"

/* The most frequent statuses first. Other statuses count as "other". */
static const unsigned short statuses[] = {200, 206, 304, 404, 201, 204, 202, 400, 401, 403, 405,
                                          406, 408, 409, 411, 412, 413, 414, 415, 416, 417, 421,
                                          422, 423, 429, 431, 460, 499, 500, 501, 502, 503, 507};

#define STATUSES     (sizeof(statuses) / sizeof(statuses[0]))
#define STATUS_CELLS (STATUSES + 1)
/* GET to OPTIONS, and one cell for all other methods. */
#define METHOD_CELLS (METHOD_OPTIONS + 2)

/* Upper bounds. A small answer from memory takes about 10 µs, one that waits for a worker about 100
 * µs. Then they grow by factors of five, up to the time of large downloads. */
static const struct {
    uint64_t ns;
    const char *text;
} bounds[] = {
    {200000, "0.0002"},  {1000000, "0.001"},  {5000000, "0.005"},
    {25000000, "0.025"}, {100000000, "0.1"},  {500000000, "0.5"},
    {2500000000, "2.5"}, {10000000000, "10"}, {60000000000, "60"},
};

#define BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

/* The offsets of a route's histograms in its block. */
enum histogram { HISTOGRAM_DURATION, HISTOGRAM_WAIT, HISTOGRAMS };

#define HISTOGRAM_CELLS (BOUNDS + 2) /* the buckets, the last without a bound, and the sum */
#define REQUEST_CELLS   (METHOD_CELLS * STATUS_CELLS)
#define ROUTE_CELLS     (REQUEST_CELLS + HISTOGRAMS * HISTOGRAM_CELLS)

/* The routes of both tables are numbered; the last number is "none". */
static size_t none_number(void)
{
    return route_count + s3_route_count;
}

static size_t route_number(const struct route *route)
{
    if (route == NULL)
        return none_number();
    if (route >= s3_routes && route < s3_routes + s3_route_count)
        return route_count + (size_t)(route - s3_routes);
    return (size_t)(route - routes);
}

/* Returns the number of cells for all routes and "none". */
static size_t all_cells(void)
{
    return (none_number() + 1) * ROUTE_CELLS;
}

/* --- counting --- */

static size_t status_index(unsigned status)
{
    size_t index = 0;

    while (index < STATUSES && statuses[index] != status)
        index++;
    return index;
}

static size_t method_index(enum method method)
{
    return method <= METHOD_OPTIONS ? (size_t)method : METHOD_CELLS - 1;
}

static void observe(metric_cell *histogram, uint64_t duration_ns)
{
    size_t bucket = 0;

    while (bucket < BOUNDS && duration_ns > bounds[bucket].ns)
        bucket++;
    metric_cell_add(&histogram[bucket], 1);
    metric_cell_add(&histogram[BOUNDS + 1], duration_ns);
}

void request_metrics_count(const struct request *request, const struct request_outcome *outcome)
{
    const size_t route = route_number(request->route);
    /* If the library refused the header, method and route are unknown. */
    const enum method method =
        request_state_const(request)->stage != STAGE_LINE ? request->method : METHOD_UNKNOWN;
    metric_cell *cells = metric_cells(METRIC_BLOCK_REQUESTS, all_cells());
    metric_cell *histograms;

    metric_add(METRIC_SENT_BYTES, outcome->sent_bytes);
    metric_add(METRIC_RECEIVED_BYTES, outcome->received_bytes);
    assert(route <= none_number());
    if (cells == NULL)
        return;
    cells += route * ROUTE_CELLS;
    metric_cell_add(&cells[method_index(method) * STATUS_CELLS + status_index(outcome->status)], 1);
    histograms = cells + REQUEST_CELLS;
    observe(&histograms[HISTOGRAM_DURATION * HISTOGRAM_CELLS], outcome->duration_ns);
    if (outcome->wait_ns != UINT64_MAX)
        observe(&histograms[HISTOGRAM_WAIT * HISTOGRAM_CELLS], outcome->wait_ns);
}

void request_metrics_problem(enum problem problem)
{
    metric_cell *cells = metric_cells(METRIC_BLOCK_PROBLEMS, PROBLEM_COUNT);

    assert(problem < PROBLEM_COUNT);
    if (cells != NULL)
        metric_cell_add(&cells[problem], 1);
}

/* --- text --- */

/* Enough for the longest pattern and the label names. */
#define LABELS_SIZE 256

static const char *label_of(size_t route)
{
    if (route == none_number())
        return "none";
    return route_name(route < route_count ? &routes[route] : &s3_routes[route - route_count]);
}

static const char *method_label(size_t method)
{
    return method < METHOD_CELLS - 1 ? method_name((enum method)method) : "other";
}

static void write_status(char *text, size_t size, size_t status)
{
    if (status < STATUSES)
        snprintf(text, size, "%u", statuses[status]);
    else
        snprintf(text, size, "other");
}

static void write_requests(FILE *stream, const uint64_t *sums)
{
    static const char name[] = "ztserve_http_requests_total";
    char labels[LABELS_SIZE];
    char status[8];

    metrics_write_family(stream, name, "counter", "Requests that have ended.");
    for (size_t route = 0; route <= none_number(); route++)
        for (size_t cell = 0; cell < REQUEST_CELLS; cell++) {
            const uint64_t count = sums[route * ROUTE_CELLS + cell];

            if (count == 0)
                continue;
            write_status(status, sizeof(status), cell % STATUS_CELLS);
            snprintf(labels, sizeof(labels), "route=\"%s\",method=\"%s\",status=\"%s\"",
                     label_of(route), method_label(cell / STATUS_CELLS), status);
            metrics_write_sample(stream, name, labels, count);
        }
}

static void write_histogram(FILE *stream, const char *name, size_t route, const uint64_t *cells)
{
    char sample[64];
    char labels[LABELS_SIZE];
    uint64_t count = 0;

    snprintf(sample, sizeof(sample), "%s_bucket", name);
    for (size_t bucket = 0; bucket <= BOUNDS; bucket++) {
        count += cells[bucket];
        snprintf(labels, sizeof(labels), "route=\"%s\",le=\"%s\"", label_of(route),
                 bucket < BOUNDS ? bounds[bucket].text : "+Inf");
        metrics_write_sample(stream, sample, labels, count);
    }
    snprintf(labels, sizeof(labels), "route=\"%s\"", label_of(route));
    snprintf(sample, sizeof(sample), "%s_sum", name);
    metrics_write_seconds(stream, sample, labels, cells[BOUNDS + 1]);
    snprintf(sample, sizeof(sample), "%s_count", name);
    metrics_write_sample(stream, sample, labels, count);
}

/* Routes without requests are omitted. */
static void write_histograms(FILE *stream, const uint64_t *sums, enum histogram histogram)
{
    static const struct {
        const char *name;
        const char *help;
    } families[] = {
        [HISTOGRAM_DURATION] = {"ztserve_http_request_duration_seconds",
                                "From the request line to the last byte of the response."},
        [HISTOGRAM_WAIT] = {"ztserve_http_response_start_seconds",
                            "From the end of the request to the start of its response."},
    };

    metrics_write_family(stream, families[histogram].name, "histogram", families[histogram].help);
    for (size_t route = 0; route <= none_number(); route++) {
        const uint64_t *cells =
            sums + route * ROUTE_CELLS + REQUEST_CELLS + histogram * HISTOGRAM_CELLS;
        uint64_t count = 0;

        for (size_t bucket = 0; bucket <= BOUNDS; bucket++)
            count += cells[bucket];
        if (count > 0)
            write_histogram(stream, families[histogram].name, route, cells);
    }
}

static void write_problems(FILE *stream)
{
    static const char name[] = "ztserve_http_problems_total";
    uint64_t sums[PROBLEM_COUNT] = {0};
    char labels[LABELS_SIZE];

    metric_cells_sum(METRIC_BLOCK_PROBLEMS, sums, PROBLEM_COUNT);
    metrics_write_family(stream, name, "counter", "Error responses, by code and status.");
    for (enum problem problem = 0; problem < PROBLEM_COUNT; problem++) {
        snprintf(labels, sizeof(labels), "code=\"%s\",status=\"%u\"", problem_code(problem),
                 problem_status(problem));
        metrics_write_sample(stream, name, labels, sums[problem]);
    }
}

void request_metrics_write(FILE *stream)
{
    uint64_t *sums = calloc(all_cells(), sizeof(*sums));

    write_problems(stream);
    if (sums == NULL)
        return;
    metric_cells_sum(METRIC_BLOCK_REQUESTS, sums, all_cells());
    write_requests(stream, sums);
    for (enum histogram histogram = 0; histogram < HISTOGRAMS; histogram++)
        write_histograms(stream, sums, histogram);
    free(sums);
}
