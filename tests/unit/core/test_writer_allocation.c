/* Memory that runs out while a model is projected and written: every n-th allocation fails once;
 * nothing is leaked.
 *
 * The C library's allocator is replaced in this program, so it tests nothing under sanitizers,
 * which do the same. */
#include "support.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "allocation.h"
#include "written.h"

/* More allocations than any conversion here makes. */
#define CALLS_MAX 2000
#define SINK_SIZE 1048576

/* What was written is kept here, so that the sink itself allocates nothing. */
static uint8_t output[SINK_SIZE];
static size_t output_length;

static enum zt_status take(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    (void)context;
    (void)error;
    assert_true(length <= SINK_SIZE - output_length);
    memcpy(output + output_length, bytes, length);
    output_length += length;
    return ZT_OK;
}

static enum zt_status convert(const struct written *from, enum zt_target target, bool zstd)
{
    struct zt_source *files[] = {from->source};
    struct zt_conversion conversion = {.source = from->model, .files = files};
    struct zt_sink sink = {take, NULL};
    struct zt_projection *projection = NULL;
    struct zt_error error;
    enum zt_status status = zt_model_project(from->model, target, &projection, &error);

    output_length = 0;
    /* OpenSSL keeps blocks of its own when its caches cannot grow: no SHA-256 here. */
    conversion.options = (struct zt_writer_options){.zstd = zstd, .without_digests = true};
    conversion.projection = projection;
    if (status == ZT_OK)
        status = zt_model_convert(&conversion, &sink, &error);
    zt_projection_free(projection);
    return status;
}

static enum zt_status convert_failing(const struct written *from, enum zt_target target, bool zstd,
                                      long n)
{
    enum zt_status status;

    allocation_fail(n);
    status = convert(from, target, zstd);
    return status;
}

static void assert_survives(const struct written *from, enum zt_target target, bool zstd)
{
    size_t whole;

    /* Each failure twice: libraries keep what they allocate on first use, for errors too. */
    assert_int_equal(convert(from, target, zstd), ZT_OK);
    whole = output_length;
    for (long n = 0; n < CALLS_MAX; n++) {
        long before;
        enum zt_status status;
        bool met;

        convert_failing(from, target, zstd, n);
        before = allocation_outstanding();
        status = convert_failing(from, target, zstd, n);
        met = allocation_end();
        assert_int_equal(allocation_outstanding(), before);
        assert_true(status == ZT_NO_MEMORY || (status == ZT_OK && output_length == whole));
        if (!met) {
            assert_true(n > 10);
            return;
        }
    }
    fail_msg("a conversion makes more than %d allocations", CALLS_MAX);
}

#define MANIFEST                                                                                  \
    "{\"version\":\"1.2.0\",\"attributes\":{\"n\":7,\"text\":\"t\"},\"objects\":{"                \
    "\"e\u0301\":{\"shape\":[2,2],\"format\":\"dense\",\"attributes\":{\"b\":{\"y\":1,\"x\":2}}," \
    "\"components\":{"                                                                            \
    "\"data\":{\"dtype\":\"f32\",\"offset\":64,\"length\":16}}},\"f\":{\"shape\":[4],\"format\":" \
    "\"dense\","                                                                                  \
    "\"components\":{\"data\":{\"dtype\":\"f32\",\"offset\":64,\"length\":16}}}}}"

static void every_allocation_may_fail(void **state)
{
    struct written from = {0};

    (void)state;
    written_from_text(&from, 64, MANIFEST);
#ifndef ZT_SANITIZED
    for (unsigned target = ZT_TARGET_ZT1; target <= ZT_TARGET_NPZ; target++)
        assert_survives(&from, (enum zt_target)target, false);
    assert_survives(&from, ZT_TARGET_ZT1, true);
    assert_survives(&from, ZT_TARGET_ZT2, true);
#else
    (void)assert_survives;
#endif
    written_free(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
