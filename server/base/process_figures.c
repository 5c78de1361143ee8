/* Reads /proc/self/stat (proc(5)), the folder of descriptors, and getrusage. */
#include "base/process_figures.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"

/* Fields of /proc/self/stat, counted from 1; the second, the program's name, may contain blanks. */
#define FIELD_AFTER_NAME 3
#define FIELD_THREADS    20
#define FIELD_START      22
#define FIELD_VIRTUAL    23
#define FIELD_RESIDENT   24
/* A line of /proc/self/stat has about 52 numbers. */
#define STAT_BYTES 2048

static int stat_file = -1;
static DIR *descriptors;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the position in descriptors */

static void open_files(void)
{
    stat_file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    descriptors = opendir("/proc/self/fd");
}

void process_figures_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_files);
}

/* --- /proc/self/stat --- */

struct figures {
    uint64_t threads;
    uint64_t start_ticks; /* since the system started */
    uint64_t virtual_bytes;
    uint64_t resident_pages;
};

static bool read_figures(struct figures *out_figures)
{
    char text[STAT_BYTES];
    const ssize_t length = stat_file >= 0 ? pread(stat_file, text, sizeof(text) - 1, 0) : -1;
    const char *at;

    if (length <= 0)
        return false;
    text[length] = '\0';
    at = strrchr(text, ')');
    for (unsigned field = FIELD_AFTER_NAME; at != NULL && field <= FIELD_RESIDENT; field++) {
        at = strchr(at + 1, ' ');
        if (at == NULL)
            return false;
        if (field == FIELD_THREADS)
            out_figures->threads = strtoull(at, NULL, 10);
        else if (field == FIELD_START)
            out_figures->start_ticks = strtoull(at, NULL, 10);
        else if (field == FIELD_VIRTUAL)
            out_figures->virtual_bytes = strtoull(at, NULL, 10);
        else if (field == FIELD_RESIDENT)
            out_figures->resident_pages = strtoull(at, NULL, 10);
    }
    return at != NULL;
}

static void write_gauge(FILE *stream, const char *name, const char *help, uint64_t value)
{
    metrics_write_family(stream, name, "gauge", help);
    metrics_write_sample(stream, name, NULL, value);
}

/* Writes the start time, which is known in ticks since the system started. Successive results
 * differ only by the precision of the clocks, so they are rounded to hundredths. */
static void write_start(FILE *stream, uint64_t start_ticks)
{
    static const char name[] = "process_start_time_seconds";
    const uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
    const int64_t booted_ns = clock_wall_ns() - clock_read_ns(CLOCK_BOOTTIME);
    const uint64_t started_ns =
        (uint64_t)booted_ns + start_ticks * (uint64_t)CLOCK_NS_PER_S / ticks_per_s;

    metrics_write_family(stream, name, "gauge", "When the process started, in seconds since 1970.");
    metrics_write_seconds(stream, name, NULL, started_ns / 10000000 * 10000000);
}

static void write_stat(FILE *stream)
{
    struct figures figures = {0};

    if (!read_figures(&figures))
        return;
    write_gauge(stream, "process_resident_memory_bytes", "Memory in use.",
                figures.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE));
    write_gauge(stream, "process_virtual_memory_bytes",
                "Address space in use, mapped models included.", figures.virtual_bytes);
    write_gauge(stream, "process_threads", "Threads.", figures.threads);
    write_start(stream, figures.start_ticks);
}

/* --- descriptors and processor time --- */

static void write_descriptors(FILE *stream)
{
    struct rlimit limit;
    uint64_t count = 0;

    if (descriptors != NULL) {
        pthread_mutex_lock(&lock);
        rewinddir(descriptors);
        for (const struct dirent *one; (one = readdir(descriptors)) != NULL;)
            count += one->d_name[0] != '.';
        pthread_mutex_unlock(&lock);
        write_gauge(stream, "process_open_fds", "Open descriptors.", count);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        write_gauge(stream, "process_max_fds", "The limit on open descriptors.",
                    (uint64_t)limit.rlim_cur);
}

static uint64_t time_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * (uint64_t)CLOCK_NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static void write_processor_time(FILE *stream)
{
    static const char name[] = "process_cpu_seconds_total";
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    metrics_write_family(stream, name, "counter", "Processor time, user and system.");
    metrics_write_seconds(stream, name, NULL, time_ns(usage.ru_utime) + time_ns(usage.ru_stime));
}

void process_figures_write(FILE *stream)
{
    write_processor_time(stream);
    write_stat(stream);
    write_descriptors(stream);
}
