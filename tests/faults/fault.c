#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *const kind_names[FAULT_KINDS] = {"write",  "sync", "link",
                                                    "rename", "copy", "truncate"};

static enum fault_kind failing = FAULT_KINDS;
static unsigned long first_failing;
static bool all_later_fail;
static int failing_errno;
static atomic_ulong calls;
static int mark = -1;
static long delay_ms;
static size_t send_bytes;
static atomic_ulong sends;

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("ZT_FAULT");
    const char *path = getenv("ZT_FAULT_MARK");
    const char *delay = getenv("ZT_SLOW_READ_MS");
    const char *most = getenv("ZT_SEND_BYTES");
    char kind[16];
    char plus[2] = "";

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

bool fault_is_due(enum fault_kind kind)
{
    unsigned long number;

    if (kind != failing)
        return false;
    number = atomic_fetch_add(&calls, 1) + 1;
    if (number != first_failing && !(all_later_fail && number > first_failing))
        return false;
    write_mark();
    errno = failing_errno;
    return true;
}
