#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kind_names[FAULT_KINDS] = {"write",  "sync", "link",
                                                    "rename", "copy", "truncate"};

static enum fault_kind failing = FAULT_KINDS;
static unsigned long first_failing;
static bool all_later_fail;
static int failing_errno;
static atomic_ulong calls;

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("ZT_FAULT");
    char kind[16];
    char plus[2] = "";

    if (text == NULL)
        return;
    if (sscanf(text, "%15[a-z]:%lu:%d", kind, &first_failing, &failing_errno) != 3 &&
        sscanf(text, "%15[a-z]:%lu%1[+]:%d", kind, &first_failing, plus, &failing_errno) != 4)
        return;
    all_later_fail = plus[0] == '+';
    for (unsigned i = 0; i < FAULT_KINDS; i++)
        if (strcmp(kind, kind_names[i]) == 0)
            failing = (enum fault_kind)i;
}

static void create_mark(void)
{
    const char *path = getenv("ZT_FAULT_MARK");
    int descriptor = path != NULL ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;

    if (descriptor >= 0)
        close(descriptor);
}

bool fault_is_due(enum fault_kind kind)
{
    unsigned long number;

    if (kind != failing)
        return false;
    number = atomic_fetch_add(&calls, 1) + 1;
    if (number != first_failing && !(all_later_fail && number > first_failing))
        return false;
    create_mark();
    errno = failing_errno;
    return true;
}
