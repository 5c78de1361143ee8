/* Calls in which each allocation fails once. */
#ifndef ZT_TEST_SURVIVES_H
#define ZT_TEST_SURVIVES_H

#include "allocation.h"
#include "support.h"

/* More allocations than any call of the tests makes. */
#define SURVIVES_CALLS_MAX 5000

/* Calls with the n-th allocation failing, for every n. Nothing may leak, and the result is either
 * ZT_NO_MEMORY or right. Each failure comes twice, because libraries keep memory that they allocate
 * on first use, even for errors. Under sanitizers it calls once. */
static inline void assert_survives(enum zt_status (*call)(void *context), void *context)
{
    bool met = true;

    assert_ok(call(context));
#ifdef ZT_SANITIZED
    met = false;
#endif
    for (long n = 0; met; n++) {
        enum zt_status status = ZT_OK;
        long before = 0;

        assert_true(n < SURVIVES_CALLS_MAX);
        for (unsigned turn = 0; turn < 2; turn++) {
            before = allocation_outstanding();
            allocation_fail(n);
            status = call(context);
            met = allocation_end();
        }
        assert_int_equal(allocation_outstanding(), before);
        assert_true(status == ZT_OK || (met && status == ZT_NO_MEMORY));
        assert_true(met || n > 1);
    }
}

#endif
