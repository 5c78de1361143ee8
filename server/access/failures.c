/* Counts refused requests by their reasons. */
#include "access/access.h"

#include <assert.h>
#include <stdatomic.h>

static atomic_uint_fast64_t counts[ACCESS_FAILURES];

void access_count_failure(enum access_failure failure)
{
    assert(failure < ACCESS_FAILURES);
    atomic_fetch_add_explicit(&counts[failure], 1, memory_order_relaxed);
}

uint64_t access_failures(enum access_failure failure)
{
    assert(failure < ACCESS_FAILURES);
    return atomic_load_explicit(&counts[failure], memory_order_relaxed);
}

const char *access_failure_name(enum access_failure failure)
{
    static const char *const names[] = {
        [ACCESS_NO_CREDENTIALS] = "no_credentials",
        [ACCESS_BAD_CREDENTIALS] = "bad_credentials",
        [ACCESS_UNKNOWN_TOKEN] = "unknown_token",
        [ACCESS_FOREIGN_TOKEN] = "foreign_token",
        [ACCESS_EXPIRED_TOKEN] = "expired_token",
        [ACCESS_UNKNOWN_SUBJECT] = "unknown_subject",
        [ACCESS_UNKNOWN_CERTIFICATE] = "unknown_certificate",
        [ACCESS_UNNAMED_CERTIFICATE] = "unnamed_certificate",
        [ACCESS_UNKNOWN_KEY] = "unknown_key",
        [ACCESS_BAD_SIGNATURE] = "bad_signature",
        [ACCESS_EXPIRED_SIGNATURE] = "expired_signature",
        [ACCESS_NO_MEMORY] = "no_memory",
        [ACCESS_SCOPE] = "scope",
        [ACCESS_MODEL] = "model",
    };

    assert(failure < ACCESS_FAILURES);
    return names[failure];
}
