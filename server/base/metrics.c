/* The table of counters and gauges, a shard of memory per thread, and the text output.
 *
 * A thread takes a shard when it first counts and returns it when it ends. The next new thread
 * takes it over with its counts, so that a counter never decreases. */
#include "base/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Keeps threads from writing to the same cache line. */
#define LINE_BYTES 64

/* A level is a sum over threads like a counter, but may also decrease. */
enum kind { COUNTER, LEVEL, GAUGE };

static const struct {
    const char *name; /* lines with the same name must be adjacent */
    const char *labels;
    const char *help; /* set on the first line of a name */
    enum kind kind;
} table[METRICS] = {
    [METRIC_CONNECTIONS_ACCEPTED] = {"ztserve_connections_accepted_total", NULL,
                                     "Connections that were accepted within the limits.", COUNTER},
    [METRIC_CONNECTIONS_REFUSED_LIMIT] =
        {"ztserve_connections_refused_total", "reason=\"limit\"",
         "Connections refused: over limits.connections, or over the limit of their address.",
         COUNTER},
    [METRIC_CONNECTIONS_REFUSED_ADDRESS] = {"ztserve_connections_refused_total",
                                            "reason=\"address\"", NULL, COUNTER},
    [METRIC_CUT_TIMEOUT] = {"ztserve_http_requests_cut_total", "reason=\"timeout\"",
                            "Requests that ended before their whole response was sent.", COUNTER},
    [METRIC_CUT_DRAIN] = {"ztserve_http_requests_cut_total", "reason=\"drain\"", NULL, COUNTER},
    [METRIC_CUT_CLIENT] = {"ztserve_http_requests_cut_total", "reason=\"client\"", NULL, COUNTER},
    [METRIC_CUT_SERVER] = {"ztserve_http_requests_cut_total", "reason=\"server\"", NULL, COUNTER},
    [METRIC_REQUESTS_OPEN] = {"ztserve_http_requests_in_progress", NULL, "Requests in progress.",
                              LEVEL},
    [METRIC_SENT_BYTES] = {"ztserve_http_sent_bytes_total", NULL,
                           "Bytes of responses, headers included, counted when a request ends.",
                           COUNTER},
    [METRIC_RECEIVED_BYTES] = {"ztserve_http_received_bytes_total", NULL,
                               "Bytes of requests, headers included, counted when a request ends.",
                               COUNTER},
    [METRIC_CHECKS_VERIFIED] = {"ztserve_verification_components_total", "result=\"verified\"",
                                "Components whose bytes were compared with their digest.", COUNTER},
    [METRIC_CHECKS_FAILED] = {"ztserve_verification_components_total", "result=\"failed\"", NULL,
                              COUNTER},
    [METRIC_CHECKS_UNSUPPORTED] = {"ztserve_verification_components_total",
                                   "result=\"unsupported\"", NULL, COUNTER},
    [METRIC_CHECKS_UNREADABLE] = {"ztserve_verification_components_total", "result=\"unreadable\"",
                                  NULL, COUNTER},
    [METRIC_HASHED_BYTES] = {"ztserve_verification_hashed_bytes_total", NULL,
                             "Stored bytes that were hashed to verify components.", COUNTER},
    [METRIC_BEGUN_FILE] = {"ztserve_uploads_begun_total", "kind=\"file\"",
                           "Uploads that were accepted: whole files, streaming writer, resumable, "
                           "files for a later commit.",
                           COUNTER},
    [METRIC_BEGUN_WRITER] = {"ztserve_uploads_begun_total", "kind=\"writer\"", NULL, COUNTER},
    [METRIC_BEGUN_RESUMABLE] = {"ztserve_uploads_begun_total", "kind=\"resumable\"", NULL, COUNTER},
    [METRIC_BEGUN_STAGED] = {"ztserve_uploads_begun_total", "kind=\"staged\"", NULL, COUNTER},
    [METRIC_BEGUN_XET] = {"ztserve_uploads_begun_total", "kind=\"xet\"", NULL, COUNTER},
    [METRIC_BEGUN_MULTIPART] = {"ztserve_uploads_begun_total", "kind=\"multipart\"", NULL, COUNTER},
    [METRIC_PUBLISHED_FILE] = {"ztserve_uploads_published_total", "kind=\"file\"",
                               "Uploads that became models.", COUNTER},
    [METRIC_PUBLISHED_WRITER] = {"ztserve_uploads_published_total", "kind=\"writer\"", NULL,
                                 COUNTER},
    [METRIC_PUBLISHED_RESUMABLE] = {"ztserve_uploads_published_total", "kind=\"resumable\"", NULL,
                                    COUNTER},
    [METRIC_PUBLISHED_STAGED] = {"ztserve_uploads_published_total", "kind=\"staged\"", NULL,
                                 COUNTER},
    [METRIC_PUBLISHED_MULTIPART] = {"ztserve_uploads_published_total", "kind=\"multipart\"", NULL,
                                    COUNTER},
    [METRIC_FAILED_FILE] = {"ztserve_uploads_failed_total", "kind=\"file\"",
                            "Uploads that did not become models, and failed attempts to publish.",
                            COUNTER},
    [METRIC_FAILED_WRITER] = {"ztserve_uploads_failed_total", "kind=\"writer\"", NULL, COUNTER},
    [METRIC_FAILED_RESUMABLE] = {"ztserve_uploads_failed_total", "kind=\"resumable\"", NULL,
                                 COUNTER},
    [METRIC_FAILED_STAGED] = {"ztserve_uploads_failed_total", "kind=\"staged\"", NULL, COUNTER},
    [METRIC_FAILED_MULTIPART] = {"ztserve_uploads_failed_total", "kind=\"multipart\"", NULL,
                                 COUNTER},
    [METRIC_EXPIRED_WRITER] = {"ztserve_uploads_expired_total", "kind=\"writer\"",
                               "Uploads that were removed because they were idle for too long.",
                               COUNTER},
    [METRIC_EXPIRED_RESUMABLE] = {"ztserve_uploads_expired_total", "kind=\"resumable\"", NULL,
                                  COUNTER},
    [METRIC_EXPIRED_STAGED] = {"ztserve_uploads_expired_total", "kind=\"staged\"", NULL, COUNTER},
    [METRIC_EXPIRED_XET] = {"ztserve_uploads_expired_total", "kind=\"xet\"", NULL, COUNTER},
    [METRIC_EXPIRED_MULTIPART] = {"ztserve_uploads_expired_total", "kind=\"multipart\"", NULL,
                                  COUNTER},
    [METRIC_JOBS_ORDINARY] = {"ztserve_worker_jobs_total", "kind=\"ordinary\"",
                              "Jobs that workers have completed.", COUNTER},
    [METRIC_JOBS_LONG] = {"ztserve_worker_jobs_total", "kind=\"long\"", NULL, COUNTER},
    [METRIC_JOBS_IDLE] = {"ztserve_worker_jobs_total", "kind=\"idle\"", NULL, COUNTER},
    [METRIC_FILES_PARKED] =
        {"ztserve_model_files_parked_total", NULL,
         "Times that a model's files were closed because no request was reading them.", COUNTER},
    [METRIC_FILES_OPENED_AGAIN] = {"ztserve_model_files_opened_again_total", NULL,
                                   "Times that a model's closed files were reopened.", COUNTER},
    [METRIC_RELOADS_DONE] = {"ztserve_config_reloads_total", "result=\"done\"",
                             "Attempts to reload the configuration.", COUNTER},
    [METRIC_RELOADS_FAILED] = {"ztserve_config_reloads_total", "result=\"failed\"", NULL, COUNTER},
    [METRIC_CACHE_HITS] = {"ztserve_cache_reads_total", "result=\"hit\"",
                           "Blocks that were read from the cache, or fetched for it.", COUNTER},
    [METRIC_CACHE_MISSES] = {"ztserve_cache_reads_total", "result=\"miss\"", NULL, COUNTER},
    [METRIC_CACHE_FETCHED_BYTES] = {"ztserve_cache_fetched_bytes_total", NULL,
                                    "Bytes fetched from the store.", COUNTER},
    [METRIC_CACHE_EVICTED_BYTES] = {"ztserve_cache_evicted_bytes_total", NULL,
                                    "Bytes evicted to make room.", COUNTER},
    [METRIC_CACHE_MISMATCHES] = {"ztserve_cache_mismatches_total", NULL,
                                 "Damaged blocks of the cache, which were fetched again.", COUNTER},
    [METRIC_CACHE_UNCACHED_BYTES] = {"ztserve_cache_uncached_bytes_total", NULL,
                                     "Bytes that were fetched and could not be kept.", COUNTER},
    [METRIC_STORE_LIST] = {"ztserve_store_requests_total", "operation=\"list\"",
                           "Requests to the object store, retries included.", COUNTER},
    [METRIC_STORE_READ] = {"ztserve_store_requests_total", "operation=\"read\"", NULL, COUNTER},
    [METRIC_STORE_WRITE] = {"ztserve_store_requests_total", "operation=\"write\"", NULL, COUNTER},
    [METRIC_STORE_OTHER] = {"ztserve_store_requests_total", "operation=\"other\"", NULL, COUNTER},
    [METRIC_STORE_RETRIES] = {"ztserve_store_retries_total", NULL,
                              "Requests to the object store that were retried.", COUNTER},
    [METRIC_STORE_ERROR_CONNECT] = {"ztserve_store_errors_total", "kind=\"connect\"",
                                    "Requests to the object store that finally failed.", COUNTER},
    [METRIC_STORE_ERROR_TIMEOUT] = {"ztserve_store_errors_total", "kind=\"timeout\"", NULL,
                                    COUNTER},
    [METRIC_STORE_ERROR_BROKEN] = {"ztserve_store_errors_total", "kind=\"broken\"", NULL, COUNTER},
    [METRIC_STORE_ERROR_TLS] = {"ztserve_store_errors_total", "kind=\"tls\"", NULL, COUNTER},
    [METRIC_STORE_ERROR_BUSY] = {"ztserve_store_errors_total", "kind=\"busy\"", NULL, COUNTER},
    [METRIC_STORE_ERROR_REFUSED] = {"ztserve_store_errors_total", "kind=\"refused\"", NULL,
                                    COUNTER},
    [METRIC_STORE_ERROR_STALE] = {"ztserve_store_errors_total", "kind=\"stale\"", NULL, COUNTER},
    [METRIC_OPEN_FILE] = {"ztserve_uploads_open", "kind=\"file\"",
                          "Uploads in progress, idle ones included.", GAUGE},
    [METRIC_OPEN_WRITER] = {"ztserve_uploads_open", "kind=\"writer\"", NULL, GAUGE},
    [METRIC_OPEN_RESUMABLE] = {"ztserve_uploads_open", "kind=\"resumable\"", NULL, GAUGE},
    [METRIC_OPEN_STAGED] = {"ztserve_uploads_open", "kind=\"staged\"", NULL, GAUGE},
    [METRIC_OPEN_XET] = {"ztserve_uploads_open", "kind=\"xet\"", NULL, GAUGE},
    [METRIC_OPEN_MULTIPART] = {"ztserve_uploads_open", "kind=\"multipart\"", NULL, GAUGE},
    [METRIC_SKIPPED_NAME] = {"ztserve_skipped_entries", "reason=\"name\"",
                             "Files, folders and links that the last scan of the folder skipped.",
                             GAUGE},
    [METRIC_SKIPPED_FOLDER_NAME] = {"ztserve_skipped_entries", "reason=\"folder_name\"", NULL,
                                    GAUGE},
    [METRIC_SKIPPED_EXTENSION] = {"ztserve_skipped_entries", "reason=\"extension\"", NULL, GAUGE},
    [METRIC_SKIPPED_OUTSIDE] = {"ztserve_skipped_entries", "reason=\"outside\"", NULL, GAUGE},
    [METRIC_SKIPPED_BROKEN] = {"ztserve_skipped_entries", "reason=\"broken\"", NULL, GAUGE},
    [METRIC_SKIPPED_SPECIAL] = {"ztserve_skipped_entries", "reason=\"special\"", NULL, GAUGE},
    [METRIC_SKIPPED_UNREADABLE] = {"ztserve_skipped_entries", "reason=\"unreadable\"", NULL, GAUGE},
    [METRIC_SKIPPED_LONG] = {"ztserve_skipped_entries", "reason=\"long\"", NULL, GAUGE},
    [METRIC_RELOAD_IN_FORCE] = {"ztserve_config_last_reload_successful", NULL,
                                "Whether the last configuration that was read is in use.", GAUGE},
    [METRIC_RELOAD_TIME] = {"ztserve_config_last_reload_success_timestamp_seconds", NULL,
                            "When the current configuration was read.", GAUGE},
    [METRIC_CACHE_USED_BYTES] = {"ztserve_cache_used_bytes", NULL,
                                 "Disk space that the block cache takes.", GAUGE},
    [METRIC_CACHE_LIMIT_BYTES] = {"ztserve_cache_limit_bytes", NULL,
                                  "Disk space that the block cache may take.", GAUGE},
    [METRIC_STORE_AWAY] = {"ztserve_store_away", NULL, "1 while the object store does not respond.",
                           GAUGE},
    [METRIC_STORE_LIST_AGE] = {"ztserve_store_list_age_seconds", NULL,
                               "Time since the last complete listing of the bucket.", GAUGE},
    [METRIC_STORE_RUNNING] = {"ztserve_store_requests_in_progress", NULL,
                              "Requests to the object store in progress.", GAUGE},
};

struct shard {
    metric_cell counters[METRICS];
    _Atomic(metric_cell *) blocks[METRIC_BLOCKS];
    struct shard *next;
    bool is_taken; /* used by a thread; under the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shard *_Atomic shards; /* only grows */
static _Thread_local struct shard *mine;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;

static _Atomic(int64_t) gauges[METRICS];
static atomic_bool gauge_is_set[METRICS];

/* --- shards --- */

static void give_back(void *shard)
{
    pthread_mutex_lock(&lock);
    ((struct shard *)shard)->is_taken = false;
    pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
    if (pthread_key_create(&at_thread_end, give_back) != 0)
        abort();
}

/* The lock must be held. */
static struct shard *add_shard(void)
{
    const size_t size = (sizeof(struct shard) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    struct shard *shard = aligned_alloc(LINE_BYTES, size);

    if (shard == NULL)
        return NULL;
    memset(shard, 0, size);
    shard->next = atomic_load_explicit(&shards, memory_order_relaxed);
    atomic_store_explicit(&shards, shard, memory_order_release);
    return shard;
}

static struct shard *take_shard(void)
{
    struct shard *shard;

    pthread_once(&once, make_key);
    pthread_mutex_lock(&lock);
    shard = atomic_load_explicit(&shards, memory_order_relaxed);
    while (shard != NULL && shard->is_taken)
        shard = shard->next;
    if (shard == NULL)
        shard = add_shard();
    if (shard != NULL)
        shard->is_taken = pthread_setspecific(at_thread_end, shard) == 0;
    pthread_mutex_unlock(&lock);
    mine = shard != NULL && shard->is_taken ? shard : NULL;
    return mine;
}

static struct shard *own_shard(void)
{
    return mine != NULL ? mine : take_shard();
}

void metric_add(enum metric metric, uint64_t amount)
{
    struct shard *shard = own_shard();

    assert(metric < METRICS && table[metric].kind != GAUGE);
    if (shard != NULL)
        metric_cell_add(&shard->counters[metric], amount);
}

metric_cell *metric_cells(enum metric_block block, size_t count)
{
    struct shard *shard = own_shard();
    metric_cell *cells;

    assert(block < METRIC_BLOCKS);
    if (shard == NULL)
        return NULL;
    cells = atomic_load_explicit(&shard->blocks[block], memory_order_relaxed);
    if (cells == NULL) {
        cells = calloc(count, sizeof(*cells));
        atomic_store_explicit(&shard->blocks[block], cells, memory_order_release);
    }
    return cells;
}

void metric_set(enum metric metric, int64_t value)
{
    assert(metric < METRICS && table[metric].kind == GAUGE);
    atomic_store(&gauges[metric], value);
    atomic_store(&gauge_is_set[metric], true);
}

/* --- sums --- */

uint64_t metric_value(enum metric metric)
{
    uint64_t sum = 0;

    assert(metric < METRICS);
    if (table[metric].kind == GAUGE)
        return (uint64_t)atomic_load(&gauges[metric]);
    for (struct shard *shard = atomic_load_explicit(&shards, memory_order_acquire); shard != NULL;
         shard = shard->next)
        sum += atomic_load_explicit(&shard->counters[metric], memory_order_relaxed);
    return sum;
}

void metric_cells_sum(enum metric_block block, uint64_t *out_sums, size_t count)
{
    assert(block < METRIC_BLOCKS);
    for (struct shard *shard = atomic_load_explicit(&shards, memory_order_acquire); shard != NULL;
         shard = shard->next) {
        metric_cell *cells = atomic_load_explicit(&shard->blocks[block], memory_order_acquire);

        for (size_t i = 0; cells != NULL && i < count; i++)
            out_sums[i] += atomic_load_explicit(&cells[i], memory_order_relaxed);
    }
}

/* --- text --- */

void metrics_write_family(FILE *stream, const char *name, const char *type, const char *help)
{
    fprintf(stream, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_name(FILE *stream, const char *name, const char *labels)
{
    if (labels != NULL)
        fprintf(stream, "%s{%s} ", name, labels);
    else
        fprintf(stream, "%s ", name);
}

void metrics_write_sample(FILE *stream, const char *name, const char *labels, uint64_t value)
{
    write_name(stream, name, labels);
    fprintf(stream, "%" PRIu64 "\n", value);
}

void metrics_write_seconds(FILE *stream, const char *name, const char *labels, uint64_t nanoseconds)
{
    write_name(stream, name, labels);
    fprintf(stream, "%" PRIu64 ".%09u\n", nanoseconds / 1000000000,
            (unsigned)(nanoseconds % 1000000000));
}

/* A server without a bucket has no lines about one, even if it has caches of upstreams. */
static bool is_shown(enum metric metric)
{
    const bool is_of_buckets =
        (metric >= METRIC_CACHE_HITS && metric <= METRIC_STORE_ERROR_STALE) ||
        metric == METRIC_CACHE_USED_BYTES || metric == METRIC_CACHE_LIMIT_BYTES;

    if (is_of_buckets && !atomic_load(&gauge_is_set[METRIC_STORE_AWAY]))
        return false;
    return table[metric].kind != GAUGE || atomic_load(&gauge_is_set[metric]);
}

void metrics_write(FILE *stream)
{
    for (enum metric metric = 0; metric < METRICS; metric++) {
        const char *name = table[metric].name;

        if (!is_shown(metric))
            continue;
        if (table[metric].help != NULL)
            metrics_write_family(stream, name, table[metric].kind == COUNTER ? "counter" : "gauge",
                                 table[metric].help);
        metrics_write_sample(stream, name, table[metric].labels, metric_value(metric));
    }
}
