/* A library to preload: makes one call to the file system fail, as a full or broken disk would,
 * makes reading slow, and records the order of calls.
 *
 *   ZT_FAULT=KIND:N:ERRNO     the N-th call of a kind (write, sync, link, rename, copy, truncate,
 *                             walk) fails with that number
 *   ZT_FAULT=KIND:N+:ERRNO    so do all calls after it
 *   ZT_FAULT_MARK=FILE        gets a byte for each call that failed: was there an N-th?
 *   ZT_FAULT_CONTROL=FILE     says, while the program runs, which call of a request fails, whatever
 *                             its kind, and how far the time of day is ahead (fault.c,
 *                             tests/http/faulty.py); nothing is synced, to save time
 *   ZT_HANG=FILE              no connection is accepted, and the thread waits, while FILE exists
 *   ZT_SLOW_READ_MS=N         each read from a position takes so much longer, and nothing is in the
 *                             page cache
 *   ZT_HANG_READ=FILE         nothing is read ahead, and the thread waits, while FILE exists
 *   ZT_SEND_BYTES=N           send takes at most so many bytes, every other call none, as if the
 *                             socket's buffer was full; sendmsg is as ever
 *   ZT_RECORD=FILE            gets a line for each call that succeeded, and for each HTTP answer
 *                             before it is sent (record.h)
 *
 * Writes to anything but files and folders (sockets, events) pass through and are not counted. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "record.h"

#define PAGE_BYTES 4096u

static bool is_stored(int descriptor)
{
    struct stat facts;
    int before = errno;
    bool stored =
        fstat(descriptor, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));

    errno = before;
    return stored;
}

/* POSIX returns functions from dlsym as object pointers. */
static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL)
        abort();
    return found;
}

#define NEXT(name, type, ...)          \
    union {                            \
        void *object;                  \
        type (*function)(__VA_ARGS__); \
    } real = {.object = next(name)}

#define real_syscall(...) next_syscall()(__VA_ARGS__)

static long (*next_syscall(void))(long number, ...)
{
    NEXT("syscall", long, long, ...);

    return real.function;
}

static int recorded(int result, const char *call, int descriptor)
{
    if (result == 0)
        record_descriptor(call, descriptor);
    return result;
}

static int recorded_name(int result, const char *call, int folder, const char *name)
{
    if (result == 0)
        record_name(call, folder, name);
    return result;
}

static ssize_t recorded_bytes(ssize_t result, const char *call, int descriptor)
{
    if (result > 0)
        record_descriptor(call, descriptor);
    return result;
}

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    NEXT("write", ssize_t, int, const void *, size_t);

    if (!is_stored(descriptor))
        return real.function(descriptor, bytes, length);
    if (fault_is_due(FAULT_WRITE))
        return -1;
    return recorded_bytes(real.function(descriptor, bytes, length), "write", descriptor);
}

ssize_t pread64(int descriptor, void *bytes, size_t length, off64_t offset)
{
    NEXT("pread64", ssize_t, int, void *, size_t, off64_t);

    fault_delay();
    return real.function(descriptor, bytes, length, offset);
}

/* Hangs as long as the file of ZT_HANG_READ exists. */
ssize_t readahead(int descriptor, off64_t offset, size_t length)
{
    const char *hang = getenv("ZT_HANG_READ");

    NEXT("readahead", ssize_t, int, off64_t, size_t);

    while (hang != NULL && access(hang, F_OK) == 0)
        usleep(10000);
    return real.function(descriptor, offset, length);
}

/* Otherwise files would be read from their mappings, which is not slow. */
int mincore(void *bytes, size_t length, unsigned char *pages)
{
    NEXT("mincore", int, void *, size_t, unsigned char *);

    if (fault_delays())
        memset(pages, 0, (length + PAGE_BYTES - 1) / PAGE_BYTES);
    return fault_delays() ? 0 : real.function(bytes, length, pages);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
    NEXT("pwrite64", ssize_t, int, const void *, size_t, off64_t);

    if (fault_is_due(FAULT_WRITE))
        return -1;
    return recorded_bytes(real.function(descriptor, bytes, length, offset), "write", descriptor);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset)
{
    NEXT("pwritev64", ssize_t, int, const struct iovec *, int, off64_t);

    if (fault_is_due(FAULT_WRITE))
        return -1;
    return recorded_bytes(real.function(descriptor, parts, count, offset), "write", descriptor);
}

/* Hangs instead of accepting, as long as the file of ZT_HANG exists. */
int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
    const char *hang = getenv("ZT_HANG");

    NEXT("accept4", int, int, struct sockaddr *, socklen_t *, int);

    while (hang != NULL && access(hang, F_OK) == 0)
        usleep(10000);
    return real.function(descriptor, address, length, flags);
}

int fsync(int descriptor)
{
    NEXT("fsync", int, int);

    if (fault_is_due(FAULT_SYNC))
        return -1;
    return fault_is_controlled() ? 0 : recorded(real.function(descriptor), "sync", descriptor);
}

int fdatasync(int descriptor)
{
    NEXT("fdatasync", int, int);

    if (fault_is_due(FAULT_SYNC))
        return -1;
    return fault_is_controlled() ? 0 : recorded(real.function(descriptor), "sync", descriptor);
}

/* Only begins to write out, so that it is not recorded as a sync. */
int sync_file_range(int descriptor, off64_t offset, off64_t length, unsigned flags)
{
    NEXT("sync_file_range", int, int, off64_t, off64_t, unsigned);

    return fault_is_due(FAULT_SYNC) ? -1 : real.function(descriptor, offset, length, flags);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    NEXT("linkat", int, int, const char *, int, const char *, int);

    if (fault_is_due(FAULT_LINK))
        return -1;
    return recorded_name(real.function(from_folder, from, to_folder, to, flags), "link", to_folder,
                         to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    NEXT("renameat", int, int, const char *, int, const char *);

    if (fault_is_due(FAULT_RENAME))
        return -1;
    return recorded_name(real.function(from_folder, from, to_folder, to), "rename", to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    NEXT("renameat2", int, int, const char *, int, const char *, unsigned);

    if (fault_is_due(FAULT_RENAME))
        return -1;
    return recorded_name(real.function(from_folder, from, to_folder, to, flags), "rename",
                         to_folder, to);
}

int mkdirat(int folder, const char *name, mode_t mode)
{
    NEXT("mkdirat", int, int, const char *, mode_t);

    if (fault_is_due(FAULT_MKDIR))
        return -1;
    return recorded_name(real.function(folder, name, mode), "mkdir", folder, name);
}

int unlinkat(int folder, const char *name, int flags)
{
    NEXT("unlinkat", int, int, const char *, int);

    if (fault_is_due(FAULT_UNLINK))
        return -1;
    return recorded_name(real.function(folder, name, flags), "unlink", folder, name);
}

/* An entry of a folder that push lists. */
FTSENT64 *fts64_read(FTS64 *walk)
{
    NEXT("fts64_read", FTSENT64 *, FTS64 *);

    return fault_is_due(FAULT_WALK) ? NULL : real.function(walk);
}

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length,
                        unsigned flags)
{
    NEXT("copy_file_range", ssize_t, int, off64_t *, int, off64_t *, size_t, unsigned);

    if (fault_is_due(FAULT_COPY))
        return -1;
    return recorded_bytes(real.function(from, from_offset, to, to_offset, length, flags), "copy",
                          to);
}

int ftruncate64(int descriptor, off64_t length)
{
    NEXT("ftruncate64", int, int, off64_t);

    if (fault_is_due(FAULT_TRUNCATE))
        return -1;
    return recorded(real.function(descriptor, length), "truncate", descriptor);
}

/* Names that the C library and its hardened headers give to opening. */
static mode_t mode_of(int flags, va_list arguments)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t)
                                                                      : 0;
}

static int open_below(int folder, const char *path, int flags, mode_t mode)
{
    return fault_is_due(FAULT_OPEN) ? -1 : (int)real_syscall(SYS_openat, folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_below(folder, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_below(AT_FDCWD, path, flags, mode);
}

int __openat64_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags)
{
    return open_below(folder, path, flags, 0);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
    return open_below(AT_FDCWD, path, flags, 0);
}

/* Of these calls only openat2 can fail. */
long syscall(long number, ...)
{
    long values[6];
    va_list arguments;

    va_start(arguments, number);
    for (unsigned i = 0; i < 6; i++)
        values[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_openat2 && fault_is_due(FAULT_OPEN))
        return -1;
    return real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

int fcntl64(int descriptor, int command, ...)
{
    va_list arguments;
    long value;

    va_start(arguments, command);
    value = va_arg(arguments, long);
    va_end(arguments);
    if (command == F_DUPFD_CLOEXEC && fault_is_due(FAULT_DUPLICATE))
        return -1;
    return (int)real_syscall(SYS_fcntl, descriptor, command, value);
}

time_t time(time_t *out_time)
{
    NEXT("time", time_t, time_t *);
    time_t now = real.function(NULL) + fault_clock_ahead_s();

    if (out_time != NULL)
        *out_time = now;
    return now;
}

int clock_gettime(clockid_t clock, struct timespec *out_time)
{
    NEXT("clock_gettime", int, clockid_t, struct timespec *);
    int result = real.function(clock, out_time);

    if (result == 0 && clock == CLOCK_REALTIME)
        out_time->tv_sec += fault_clock_ahead_s();
    return result;
}

/* Threads name themselves. */
int pthread_setname_np(pthread_t thread, const char *name)
{
    NEXT("pthread_setname_np", int, pthread_t, const char *);

    fault_name_thread(name);
    return real.function(thread, name);
}

int fallocate64(int descriptor, int mode, off64_t offset, off64_t length)
{
    NEXT("fallocate64", int, int, int, off64_t, off64_t);

    return fault_is_due(FAULT_DISCARD) ? -1 : real.function(descriptor, mode, offset, length);
}

ssize_t send(int descriptor, const void *bytes, size_t length, int flags)
{
    NEXT("send", ssize_t, int, const void *, size_t, int);

    record_answer(bytes, length);
    length = fault_shorten(length);
    if (length == 0) {
        errno = EAGAIN;
        return -1;
    }
    return real.function(descriptor, bytes, length, flags);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags)
{
    NEXT("sendmsg", ssize_t, int, const struct msghdr *, int);

    if (message->msg_iovlen > 0)
        record_answer(message->msg_iov[0].iov_base, message->msg_iov[0].iov_len);
    return real.function(descriptor, message, flags);
}
