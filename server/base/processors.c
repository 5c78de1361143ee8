/* Reads the control groups as described in cgroups(7). A container that sees its own group as the
 * root has its quota at the mount point, so the search upward ends there. */
#include "base/processors.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_FILE "/proc/self/cgroup"
#define MOUNT_V2    "/sys/fs/cgroup"
#define MOUNT_V1    "/sys/fs/cgroup/cpu"
/* Lines of /proc/self/cgroup, about a dozen of them, hold one path each. */
#define GROUPS_BYTES 16384
#define TEXT_BYTES   64

/* Returns the number of processors for quota microseconds per period, rounded up; UINT_MAX without
 * a limit (a quota of "max" or -1). */
static unsigned from_quota(const char *quota, const char *period)
{
    const long long used = strtoll(quota, NULL, 10);
    const long long of = strtoll(period, NULL, 10);
    long long count;

    if (used <= 0 || of <= 0)
        return UINT_MAX;
    count = used / of + (used % of != 0);
    return count < UINT_MAX ? (unsigned)count : UINT_MAX;
}

static bool read_in(const struct processors_files *files, const char *folder, const char *name,
                    char out_text[TEXT_BYTES])
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof(path), "%s/%s", folder, name);

    return length > 0 && (size_t)length < sizeof(path) &&
           files->read(files->context, path, out_text, TEXT_BYTES);
}

static unsigned quota_v2(const struct processors_files *files, const char *folder)
{
    char text[TEXT_BYTES];
    const char *blank;

    if (!read_in(files, folder, "cpu.max", text))
        return UINT_MAX;
    blank = strchr(text, ' ');
    return blank != NULL ? from_quota(text, blank + 1) : UINT_MAX;
}

static unsigned quota_v1(const struct processors_files *files, const char *folder)
{
    char quota[TEXT_BYTES];
    char period[TEXT_BYTES];

    if (!read_in(files, folder, "cpu.cfs_quota_us", quota) ||
        !read_in(files, folder, "cpu.cfs_period_us", period))
        return UINT_MAX;
    return from_quota(quota, period);
}

/* Returns the lowest quota on the path from a group up to its mount point. */
static unsigned least_quota(const struct processors_files *files, const char *mount,
                            const char *group,
                            unsigned (*quota)(const struct processors_files *, const char *))
{
    const size_t mount_length = strlen(mount);
    unsigned least = UINT_MAX;
    char folder[PATH_MAX];
    const int length = snprintf(folder, sizeof(folder), "%s%s", mount, group);

    if (length < 0 || (size_t)length >= sizeof(folder))
        return UINT_MAX;
    for (;;) {
        const unsigned here = quota(files, folder);
        char *slash = strrchr(folder + mount_length, '/');

        least = here < least ? here : least;
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* Returns true if a comma-separated list of controllers contains "cpu". */
static bool has_cpu(const char *controllers, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        const size_t word = strcspn(controllers + at, ",:");

        if (word == strlen("cpu") && memcmp(controllers + at, "cpu", word) == 0)
            return true;
        at += word;
    }
    return false;
}

/* Reads a line "number:controllers:path"; for version 2 it is "0::path". */
static unsigned quota_of_line(const struct processors_files *files, char *line)
{
    const char *controllers = strchr(line, ':');
    const char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

    if (group == NULL || group[1] != '/')
        return UINT_MAX;
    controllers++;
    if (group == controllers)
        return least_quota(files, MOUNT_V2, group + 1, quota_v2);
    return has_cpu(controllers, (size_t)(group - controllers))
               ? least_quota(files, MOUNT_V1, group + 1, quota_v1)
               : UINT_MAX;
}

unsigned processors_allowed(const struct processors_files *files, unsigned mask_count)
{
    unsigned least = mask_count;
    char text[GROUPS_BYTES];
    char *rest = text;
    char *line;

    if (files->read(files->context, GROUPS_FILE, text, sizeof(text)))
        while ((line = strsep(&rest, "\n")) != NULL) {
            const unsigned quota = quota_of_line(files, line);

            least = quota < least ? quota : least;
        }
    return least > 0 ? least : 1;
}

static bool read_file(void *context, const char *path, char *out_text, size_t size)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got = 0;

    (void)context;
    if (descriptor < 0)
        return false;
    while (length < size - 1 && (got = read(descriptor, out_text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(descriptor);
    out_text[length] = '\0';
    return got >= 0;
}

static unsigned mask_count(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    /* The machine has more processors than the set has bits. */
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

static unsigned counted;

static void count_once(void)
{
    const struct processors_files files = {.read = read_file};

    counted = processors_allowed(&files, mask_count());
}

unsigned processors_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, count_once);
    return counted;
}
