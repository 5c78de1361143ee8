/* The count is per thread, because a thread looks at the store for its own request. */
#include "catalog/failed_lookups.h"

#include <errno.h>

static _Thread_local uint64_t count;

uint64_t failed_lookups_count(void)
{
    return count;
}

void failed_lookups_note(void)
{
    count++;
}

bool failed_lookups_note_if(const struct generation *opened)
{
    const int os_error = opened->error->os_error;
    const bool is_unsure = os_error != 0 && os_error != EACCES && os_error != EPERM;

    count += is_unsure;
    return is_unsure;
}
