/* A library to preload: makes one call to the file system fail, as a full or broken disk would.
 *
 *   ZT_FAULT=KIND:N:ERRNO     the N-th call of a kind (write, sync, link, rename, copy, truncate)
 *                             fails with that number
 *   ZT_FAULT=KIND:N+:ERRNO    so do all after it
 *   ZT_FAULT_MARK=FILE        created when a call has failed, so that a test knows whether there
 *                             was an N-th call
 *
 * Calls on what is neither a file nor a folder (sockets, events) pass through and are not counted. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { KIND_WRITE, KIND_SYNC, KIND_LINK, KIND_RENAME, KIND_COPY, KIND_TRUNCATE, KIND_COUNT };

static const char *const kind_names[KIND_COUNT] = {"write",  "sync", "link",
                                                   "rename", "copy", "truncate"};

static enum kind failing = KIND_COUNT;
static unsigned long failing_from;
static bool failing_on;
static int failing_errno;
static atomic_ulong calls;

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("ZT_FAULT");
    char kind[16];
    char plus[2] = "";

    if (text == NULL)
        return;
    if (sscanf(text, "%15[a-z]:%lu:%d", kind, &failing_from, &failing_errno) != 3 &&
        sscanf(text, "%15[a-z]:%lu%1[+]:%d", kind, &failing_from, plus, &failing_errno) != 4)
        return;
    failing_on = plus[0] == '+';
    for (unsigned i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind, kind_names[i]) == 0)
            failing = (enum kind)i;
}

static void mark(void)
{
    const char *path = getenv("ZT_FAULT_MARK");
    int descriptor = path != NULL ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;

    if (descriptor >= 0)
        close(descriptor);
}

/* Whether this call is the one. */
static bool fails(enum kind kind)
{
    unsigned long number;

    if (kind != failing)
        return false;
    number = atomic_fetch_add(&calls, 1) + 1;
    if (number != failing_from && !(failing_on && number > failing_from))
        return false;
    mark();
    errno = failing_errno;
    return true;
}

static bool is_stored(int descriptor)
{
    struct stat facts;
    int before = errno;
    bool stored =
        fstat(descriptor, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));

    errno = before;
    return stored;
}

/* POSIX has functions come out of dlsym as object pointers. */
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

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    NEXT("write", ssize_t, int, const void *, size_t);

    return is_stored(descriptor) && fails(KIND_WRITE) ? -1
                                                      : real.function(descriptor, bytes, length);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
    NEXT("pwrite64", ssize_t, int, const void *, size_t, off64_t);

    return is_stored(descriptor) && fails(KIND_WRITE)
               ? -1
               : real.function(descriptor, bytes, length, offset);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset)
{
    NEXT("pwritev64", ssize_t, int, const struct iovec *, int, off64_t);

    return is_stored(descriptor) && fails(KIND_WRITE)
               ? -1
               : real.function(descriptor, parts, count, offset);
}

int fsync(int descriptor)
{
    NEXT("fsync", int, int);

    return fails(KIND_SYNC) ? -1 : real.function(descriptor);
}

int fdatasync(int descriptor)
{
    NEXT("fdatasync", int, int);

    return fails(KIND_SYNC) ? -1 : real.function(descriptor);
}

int sync_file_range(int descriptor, off64_t offset, off64_t length, unsigned flags)
{
    NEXT("sync_file_range", int, int, off64_t, off64_t, unsigned);

    return fails(KIND_SYNC) ? -1 : real.function(descriptor, offset, length, flags);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    NEXT("linkat", int, int, const char *, int, const char *, int);

    return fails(KIND_LINK) ? -1 : real.function(from_folder, from, to_folder, to, flags);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    NEXT("renameat", int, int, const char *, int, const char *);

    return fails(KIND_RENAME) ? -1 : real.function(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    NEXT("renameat2", int, int, const char *, int, const char *, unsigned);

    return fails(KIND_RENAME) ? -1 : real.function(from_folder, from, to_folder, to, flags);
}

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length,
                        unsigned flags)
{
    NEXT("copy_file_range", ssize_t, int, off64_t *, int, off64_t *, size_t, unsigned);

    return fails(KIND_COPY) ? -1 : real.function(from, from_offset, to, to_offset, length, flags);
}

int ftruncate64(int descriptor, off64_t length)
{
    NEXT("ftruncate64", int, int, off64_t);

    return fails(KIND_TRUNCATE) ? -1 : real.function(descriptor, length);
}
