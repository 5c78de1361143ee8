#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IDENTITY_SIZE = 48, LINE_SIZE = 2 * PATH_MAX, STATUS_LENGTH = 3 };

static const char answer_start[] = "HTTP/1.1 ";
static int record = -1;

__attribute__((constructor)) static void open_record(void)
{
    const char *path = getenv("ZT_RECORD");

    if (path != NULL)
        record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/* A single append, so that lines of several threads do not mix. It bypasses write, which is
 * recorded itself. */
static void add_line(const char *call, const char *identity, const char *path)
{
    char line[LINE_SIZE];
    int length = snprintf(line, sizeof(line), "%s\t%s\t%s\n", call, identity, path);

    if (length > 0 && (size_t)length < sizeof(line))
        (void)syscall(SYS_write, record, line, (size_t)length);
}

static void identify(const struct stat *facts, char out_identity[IDENTITY_SIZE])
{
    snprintf(out_identity, IDENTITY_SIZE, "%lu:%lu", (unsigned long)facts->st_dev,
             (unsigned long)facts->st_ino);
}

static void path_of(int descriptor, char out_path[PATH_MAX])
{
    char link[64];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
    length = readlink(link, out_path, PATH_MAX - 1);
    out_path[length > 0 ? length : 0] = '\0';
}

void record_descriptor(const char *call, int descriptor)
{
    char identity[IDENTITY_SIZE];
    char path[PATH_MAX];
    struct stat facts;
    int before = errno;

    if (record >= 0 && fstat(descriptor, &facts) == 0) {
        identify(&facts, identity);
        path_of(descriptor, path);
        add_line(call, identity, path);
    }
    errno = before;
}

void record_name(const char *call, int folder, const char *name)
{
    char identity[IDENTITY_SIZE] = "-";
    char path[PATH_MAX] = "";
    char full[LINE_SIZE];
    struct stat facts;
    int before = errno;

    if (record >= 0) {
        if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0)
            identify(&facts, identity);
        if (folder != AT_FDCWD && name[0] != '/') {
            path_of(folder, path);
            strcat(path, "/");
        }
        snprintf(full, sizeof(full), "%s%s", path, name);
        add_line(call, identity, full);
    }
    errno = before;
}

void record_answer(const void *bytes, size_t length)
{
    const size_t start = sizeof(answer_start) - 1;
    char status[STATUS_LENGTH + 1] = "";
    int before = errno;

    if (record >= 0 && length >= start + STATUS_LENGTH && memcmp(bytes, answer_start, start) == 0) {
        memcpy(status, (const char *)bytes + start, STATUS_LENGTH);
        add_line("answer", status, "-");
    }
    errno = before;
}
