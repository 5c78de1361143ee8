/* What every unit test includes: cmocka, with the headers that it needs first, and the project's
 * own assertions. */
#ifndef ZT_TEST_SUPPORT_H
#define ZT_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "zt/status.h"

/* Asserts a failure's status, rule and offset. */
#define assert_failure(error_, status_, rule_, offset_)       \
    do {                                                      \
        assert_int_equal((error_)->status, (status_));        \
        assert_non_null((error_)->rule);                      \
        assert_string_equal((error_)->rule, (rule_));         \
        assert_true((error_)->offset == (uint64_t)(offset_)); \
    } while (0)

#endif
