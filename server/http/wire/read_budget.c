#include "http/wire/read_budget.h"

#include <assert.h>
#include <stdatomic.h>

#define BUDGET_BYTES ((size_t)64 << 20)

static atomic_size_t spent;
static atomic_uint sharers;

void read_budget_join(void)
{
    atomic_fetch_add(&sharers, 1);
}

void read_budget_leave(void)
{
    const unsigned before = atomic_fetch_sub(&sharers, 1);

    assert(before > 0);
    (void)before;
}

size_t read_budget_take(size_t wanted, size_t least)
{
    const size_t share = BUDGET_BYTES / 2 / atomic_load_explicit(&sharers, memory_order_relaxed);

    assert(wanted >= least && least > 0);
    while (wanted > least && wanted > share)
        wanted /= 2;
    while (wanted > least && atomic_fetch_add(&spent, wanted) > BUDGET_BYTES - wanted) {
        atomic_fetch_sub(&spent, wanted);
        wanted /= 2;
    }
    if (wanted <= least)
        atomic_fetch_add(&spent, wanted);
    return wanted;
}

void read_budget_give(size_t bytes)
{
    const size_t before = atomic_fetch_sub(&spent, bytes);

    assert(before >= bytes);
    (void)before;
}

bool read_budget_is_spent(void)
{
    return atomic_load(&spent) >= BUDGET_BYTES;
}
