/* One counter, which every request reads and few operations write. */
#include "base/changes.h"

#include <stdatomic.h>

static _Atomic uint64_t count;

void changes_note(void)
{
    atomic_fetch_add(&count, 1);
}

uint64_t changes_count(void)
{
    return atomic_load(&count);
}
