/* What every unit test includes: cmocka, with the headers that it needs first, what most tests use
 * of the C library, and the project's own assertions. tests.h, which includes it, defines a
 * test. */
#ifndef ZT_TEST_SUPPORT_H
#define ZT_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "zt/source.h"

/* Opens bytes that outlive it; fails the running test if that fails. */
struct zt_source *memory_source(const void *bytes, size_t length);

/* Fails the running test unless the bytes are those of the C string. */
void assert_text(const char *bytes, size_t length, const char *wanted);

/* Fails the running test unless attributes are written as that JSON. */
void assert_json(struct zt_text attributes, const char *wanted);

/* Writes a JSON text with double quotes where it has single ones. */
void json_quotes(char *text);

/* Runs commands of the shell in a folder; fails the running test if they fail. */
void run_in(const char *folder, const char *commands);

/* How many descriptors this process has open. */
unsigned open_descriptors(void);

/* For what must not happen meanwhile, and between two looks: at most 200 ms. */
void pause_ms(unsigned milliseconds);

/* Waits until the condition holds, and fails the running test if it does not within two minutes. */
#define AWAIT(condition)                                      \
    for (int64_t until_ms_ = await_until_ms(); !(condition);) \
    await_again(until_ms_, #condition)
int64_t await_until_ms(void);
void await_again(int64_t until_ms, const char *condition);

#define assert_ok(status) assert_int_equal((status), ZT_OK)

/* Asserts a failure's status, rule and offset. */
#define assert_failure(error_, status_, rule_, offset_)       \
    do {                                                      \
        assert_int_equal((error_)->status, (status_));        \
        assert_non_null((error_)->rule);                      \
        assert_string_equal((error_)->rule, (rule_));         \
        assert_true((error_)->offset == (uint64_t)(offset_)); \
    } while (0)

#endif
