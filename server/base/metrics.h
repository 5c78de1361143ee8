/* Counters and gauges of the process, declared in one table (metrics.c), and their text in the
 * Prometheus exposition format, version 0.0.4.
 *
 * Each thread counts in its own memory, so that counting takes a few nanoseconds and no lock or
 * shared cache line. Reading adds up all threads, including those that have ended. If a thread gets
 * no memory, its counts are lost. All functions may be called on any thread. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A line of the table: one time series. */
enum metric {
    METRIC_CONNECTIONS_ACCEPTED,
    METRIC_CONNECTIONS_REFUSED_LIMIT,
    METRIC_CONNECTIONS_REFUSED_ADDRESS,
    METRIC_CUT_TIMEOUT,
    METRIC_CUT_DRAIN,
    METRIC_CUT_CLIENT,
    METRIC_CUT_SERVER,
    METRIC_REQUESTS_OPEN, /* also decreases */
    METRIC_SENT_BYTES,
    METRIC_RECEIVED_BYTES,
    METRIC_CHECKS_VERIFIED,
    METRIC_CHECKS_FAILED,
    METRIC_CHECKS_UNSUPPORTED,
    METRIC_CHECKS_UNREADABLE,
    METRIC_HASHED_BYTES,
    METRIC_BEGUN_FILE,
    METRIC_BEGUN_WRITER,
    METRIC_BEGUN_RESUMABLE,
    METRIC_BEGUN_STAGED,
    METRIC_BEGUN_XET,
    METRIC_BEGUN_MULTIPART,
    METRIC_PUBLISHED_FILE,
    METRIC_PUBLISHED_WRITER,
    METRIC_PUBLISHED_RESUMABLE,
    METRIC_PUBLISHED_STAGED,
    METRIC_PUBLISHED_MULTIPART,
    METRIC_FAILED_FILE,
    METRIC_FAILED_WRITER,
    METRIC_FAILED_RESUMABLE,
    METRIC_FAILED_STAGED,
    METRIC_FAILED_MULTIPART,
    METRIC_EXPIRED_WRITER,
    METRIC_EXPIRED_RESUMABLE,
    METRIC_EXPIRED_STAGED,
    METRIC_EXPIRED_XET,
    METRIC_EXPIRED_MULTIPART,
    METRIC_JOBS_ORDINARY,
    METRIC_JOBS_LONG,
    METRIC_JOBS_IDLE,
    METRIC_FILES_PARKED,
    METRIC_FILES_OPENED_AGAIN,
    METRIC_RELOADS_DONE,
    METRIC_RELOADS_FAILED,
    METRIC_CACHE_HITS,
    METRIC_CACHE_MISSES,
    METRIC_CACHE_FETCHED_BYTES,
    METRIC_CACHE_EVICTED_BYTES,
    METRIC_CACHE_MISMATCHES,
    METRIC_CACHE_UNCACHED_BYTES,
    METRIC_STORE_LIST,
    METRIC_STORE_READ,
    METRIC_STORE_WRITE,
    METRIC_STORE_OTHER,
    METRIC_STORE_RETRIES,
    METRIC_STORE_ERROR_CONNECT,
    METRIC_STORE_ERROR_TIMEOUT,
    METRIC_STORE_ERROR_BROKEN,
    METRIC_STORE_ERROR_TLS,
    METRIC_STORE_ERROR_BUSY,
    METRIC_STORE_ERROR_REFUSED,
    METRIC_STORE_ERROR_STALE,
    /* Gauges. */
    METRIC_OPEN_FILE,
    METRIC_OPEN_WRITER,
    METRIC_OPEN_RESUMABLE,
    METRIC_OPEN_STAGED,
    METRIC_OPEN_XET,
    METRIC_OPEN_MULTIPART,
    METRIC_SKIPPED_NAME,
    METRIC_SKIPPED_FOLDER_NAME,
    METRIC_SKIPPED_EXTENSION,
    METRIC_SKIPPED_OUTSIDE,
    METRIC_SKIPPED_BROKEN,
    METRIC_SKIPPED_SPECIAL,
    METRIC_SKIPPED_UNREADABLE,
    METRIC_SKIPPED_LONG,
    METRIC_RELOAD_IN_FORCE,
    METRIC_RELOAD_TIME,
    METRIC_CACHE_USED_BYTES,
    METRIC_CACHE_LIMIT_BYTES,
    METRIC_STORE_AWAY,
    METRIC_STORE_LIST_AGE,
    METRIC_STORE_RUNNING,
    METRICS
};

/* Counts up. */
void metric_add(enum metric metric, uint64_t amount);

/* Decreases the count, on the thread that increased it. */
static inline void metric_subtract(enum metric metric, uint64_t amount)
{
    /* Modulo 2^64, like the sum. */
    metric_add(metric, 0 - amount);
}

/* Sets a gauge. A gauge that was never set has no line. */
void metric_set(enum metric metric, int64_t value);

/* Returns the sum over all threads, or the value of a gauge. */
uint64_t metric_value(enum metric metric);

/* --- counters that another part declares --- */

/* Arrays of counters. Only the module that uses a block knows the number and the labels. */
enum metric_block { METRIC_BLOCK_REQUESTS, METRIC_BLOCK_PROBLEMS, METRIC_BLOCKS };

typedef _Atomic(uint64_t) metric_cell;

/* Returns this thread's cells of a block, initially zero. count must be the same in all calls.
 * Returns NULL if out of memory. */
metric_cell *metric_cells(enum metric_block block, size_t count);

/* Adds to a cell of this thread. */
static inline void metric_cell_add(metric_cell *cell, uint64_t amount)
{
    /* No other thread writes this cell, so no locked instruction is needed. */
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

/* Adds the cells of all threads to out_sums, which has count elements. */
void metric_cells_sum(enum metric_block block, uint64_t *out_sums, size_t count);

/* --- text --- */

/* Writes all counters and gauges of the table; those about buckets and their cache only once
 * METRIC_STORE_AWAY has been set. */
void metrics_write(FILE *stream);

/* Writes the two lines before the samples of a family. type is "counter", "gauge" or
 * "histogram". */
void metrics_write_family(FILE *stream, const char *name, const char *type, const char *help);

/* Writes one sample. labels, without braces and quoted as the format requires, may be NULL. */
void metrics_write_sample(FILE *stream, const char *name, const char *labels, uint64_t value);

/* Does the same for a duration, in seconds. */
void metrics_write_seconds(FILE *stream, const char *name, const char *labels,
                           uint64_t nanoseconds);

#endif
