#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *const kind_names[FAULT_KINDS] = {"write", "sync",     "link",    "rename",
                                                    "copy",  "truncate", "open",    "duplicate",
                                                    "mkdir", "unlink",   "discard", "walk"};

/* In place of an errno: before the call, the program is killed. All threads' calls count then. */
#define KILLS UINT64_C(0xffff)

/* What a test reads and writes while the program runs (faulty.py). */
struct fault_control {
    atomic_uint_fast64_t wanted; /* the number of the call, from 1, that fails; 0: none */
    atomic_uint_fast64_t number; /* errno, or KILLS */
    atomic_uint_fast64_t calls;  /* since the test set it to 0, of all kinds */
    atomic_uint_fast64_t met;    /* 1 + the kind of the call that failed; 0: none has */
    atomic_uint_fast64_t ahead;  /* seconds by which the time of day is ahead */
};

static struct fault_control *control;

static enum fault_kind failing = FAULT_KINDS;
static unsigned long first_failing;
static bool all_later_fail;
static int failing_errno;
static atomic_ulong calls;
static int mark = -1;
static long delay_ms;
static size_t send_bytes;
static atomic_ulong sends;

/* Mapped now: later the program may not open files outside of its folders. */
static void map_control(const char *path)
{
    const int descriptor = open(path, O_RDWR | O_CLOEXEC);
    void *mapped = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    if (mapped == MAP_FAILED)
        abort();
    control = mapped;
    close(descriptor);
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("ZT_FAULT");
    const char *path = getenv("ZT_FAULT_MARK");
    const char *delay = getenv("ZT_SLOW_READ_MS");
    const char *most = getenv("ZT_SEND_BYTES");
    char kind[16];
    char plus[2] = "";

    if (getenv("ZT_FAULT_CONTROL") != NULL)
        map_control(getenv("ZT_FAULT_CONTROL"));
    if (delay != NULL)
        delay_ms = strtol(delay, NULL, 10);
    if (most != NULL)
        send_bytes = strtoul(most, NULL, 10);
    if (text == NULL)
        return;
    /* Opened now: later the program may not open files outside of its folders. */
    if (path != NULL)
        mark = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (sscanf(text, "%15[a-z]:%lu:%d", kind, &first_failing, &failing_errno) != 3 &&
        sscanf(text, "%15[a-z]:%lu%1[+]:%d", kind, &first_failing, plus, &failing_errno) != 4)
        return;
    all_later_fail = plus[0] == '+';
    for (unsigned i = 0; i < FAULT_KINDS; i++)
        if (strcmp(kind, kind_names[i]) == 0)
            failing = (enum fault_kind)i;
}

/* Not by write, which may be what fails. */
static void write_mark(void)
{
    (void)syscall(SYS_write, mark, "x", (size_t)1);
}

void fault_delay(void)
{
    const struct timespec time = {delay_ms / 1000, delay_ms % 1000 * 1000000};

    if (delay_ms > 0)
        nanosleep(&time, NULL);
}

bool fault_delays(void)
{
    return delay_ms > 0;
}

size_t fault_shorten(size_t length)
{
    if (send_bytes == 0)
        return length;
    if (atomic_fetch_add(&sends, 1) % 2 == 0)
        return 0;
    return length < send_bytes ? length : send_bytes;
}

/* Requests are answered by these threads; what others do at the same time is left alone. */
static _Thread_local bool is_for_requests;

void fault_name_thread(const char *name)
{
    is_for_requests = strcmp(name, "worker") == 0 || strcmp(name, "loop") == 0;
}

static bool is_wanted(enum fault_kind kind)
{
    bool kills;

    if (control == NULL || atomic_load(&control->wanted) == 0)
        return false;
    kills = atomic_load(&control->number) == KILLS;
    if ((!is_for_requests && !kills) ||
        atomic_fetch_add(&control->calls, 1) + 1 != atomic_load(&control->wanted))
        return false;
    atomic_store(&control->met, (uint64_t)kind + 1);
    /* The sandbox forbids signals; for the disk, this is the same. */
    if (kills)
        _exit(128 + SIGKILL);
    errno = (int)atomic_load(&control->number);
    return true;
}

bool fault_is_controlled(void)
{
    return control != NULL;
}

long fault_clock_ahead_s(void)
{
    return control != NULL ? (long)atomic_load(&control->ahead) : 0;
}

bool fault_is_due(enum fault_kind kind)
{
    unsigned long number;

    if (is_wanted(kind))
        return true;
    if (kind != failing)
        return false;
    number = atomic_fetch_add(&calls, 1) + 1;
    if (number != first_failing && !(all_later_fail && number > first_failing))
        return false;
    write_mark();
    errno = failing_errno;
    return true;
}
