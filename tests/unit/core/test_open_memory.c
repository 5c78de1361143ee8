/* How much memory opening safetensors and GGUF takes, at most 16 bytes for each byte of the header
 * and 1 MiB, and what happens if allocations fail.
 *
 * This program replaces the C library's allocator; so do sanitizers, under which it tests
 * nothing. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf.h"
#include "gguf_file.h"
#include "safetensors_file.h"
#include "sanitized.h"
#include "support.h"

#ifndef ZT_SANITIZED
static long countdown = -1; /* the allocation to fail; negative: none */
static long outstanding;
static size_t held;
static size_t peak;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static bool fails_now(void)
{
    return countdown >= 0 && countdown-- == 0;
}

static void *counted(void *block)
{
    if (block != NULL) {
        outstanding++;
        held += malloc_usable_size(block);
        peak = held > peak ? held : peak;
    }
    return block;
}

void *malloc(size_t size)
{
    return fails_now() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : counted(__libc_calloc(count, size));
}

void free(void *block)
{
    if (block != NULL) {
        outstanding--;
        held -= malloc_usable_size(block);
    }
    __libc_free(block);
}

void *realloc(void *block, size_t size)
{
    size_t before;
    void *larger;

    if (fails_now())
        return NULL;
    before = block != NULL ? malloc_usable_size(block) : 0;
    larger = __libc_realloc(block, size);
    if (larger != NULL) {
        outstanding += block == NULL;
        held += malloc_usable_size(larger) - before;
        peak = held > peak ? held : peak;
    }
    return larger;
}

static enum zt_status open_once(const struct container *container)
{
    struct zt_source *source;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = zt_source_from_memory(container->bytes, container->length, &source, &error);
    if (status != ZT_OK)
        return status;
    status = zt_model_open(source, &model, &error);
    zt_model_free(model);
    zt_source_close(source);
    return status;
}

static void assert_bounded(const struct container *container)
{
    size_t before = held;
    size_t taken;
    size_t allowed;

    peak = held;
    assert_int_equal(open_once(container), ZT_OK);
    taken = peak - before;
    allowed = 16 * container->manifest_length + (1 << 20);
    if (taken > allowed)
        fail_msg("%zu bytes for a header of %zu", taken, (size_t)container->manifest_length);
}

static void assert_survives(const struct container *container)
{
    for (long n = 0; n < 500; n++) {
        long before = outstanding;
        enum zt_status status;
        bool met;

        countdown = n;
        status = open_once(container);
        met = countdown < 0;
        countdown = -1;
        assert_int_equal(outstanding, before);
        if (!met) {
            assert_int_equal(status, ZT_OK);
            assert_true(n > 5);
            return;
        }
        assert_true(status == ZT_NO_MEMORY || status == ZT_OK);
    }
    fail_msg("more allocations than expected");
}
#endif

/* Calls a function with a file, but not under sanitizers, which replace the allocator. */
#ifdef ZT_SANITIZED
#define measured(check, container) ((void)(container))
#else
#define measured(check, container) check(container)
#endif

#define ENTRIES 40000

/* Appends "text<n>rest" for every n below ENTRIES, with commas between, inside the frame's two
 * halves. */
static char *make_header(const char *begin, const char *entry, const char *end)
{
    size_t capacity = ENTRIES * (strlen(entry) + 16) + strlen(begin) + strlen(end);
    char *header = malloc(capacity);
    size_t length;

    assert_non_null(header);
    length = (size_t)snprintf(header, capacity, "%s", begin);
    for (unsigned i = 0; i < ENTRIES; i++) {
        length += (size_t)snprintf(header + length, capacity - length, "%s\"%x%s", i > 0 ? "," : "",
                                   i * 2654435761u, entry);
    }
    snprintf(header + length, capacity - length, "%s", end);
    return header;
}

static void safetensors_is_opened_within_bounds(void **state)
{
    static const char *const frames[][3] = {
        {"{", "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", "}"},
        {"{",
         "\":{\"dtype\":\"U8\",\"shape\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],\"data_"
         "offsets\":[0,0]}",
         "}"},
        {"{\"__metadata__\":{", "\":\"\"", "}}"},
    };
    struct container container = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        char *header = make_header(frames[i][0], frames[i][1], frames[i][2]);

        safetensors_make(&container, header, 0);
        measured(assert_bounded, &container);
        free(header);
    }
    safetensors_make(
        &container,
        "{\"__metadata__\":{\"b\":\"\",\"a\":\"\"},\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
        "\"data_offsets\":[2,4]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
        4);
    measured(assert_survives, &container);
    container_free(&container);
}

static void put_name(char name[16], unsigned i)
{
    snprintf(name, 16, "%x", i * 2654435761u);
}

static void gguf_is_opened_within_bounds(void **state)
{
    struct gguf_file file = {0};
    struct container container = {0};
    char name[16];

    (void)state;
    gguf_begin(&file);
    for (unsigned i = 0; i < ENTRIES; i++) {
        put_name(name, i);
        gguf_put_key(&file, name, GGUF_U8);
        gguf_put(&file, 255, 1);
    }
    gguf_finish(&file, 32, 0, &container);
    measured(assert_bounded, &container);
    gguf_begin(&file);
    for (unsigned i = 0; i < ENTRIES; i++) {
        put_name(name, i);
        gguf_put_tensor(&file, name, 0, NULL, 24);
        gguf_put_offset(&file, 0);
    }
    gguf_finish(&file, 32, 1, &container);
    measured(assert_bounded, &container);
    gguf_begin(&file);
    gguf_put_key(&file, "k", GGUF_ARRAY), gguf_put(&file, GGUF_U8, 4), gguf_put(&file, 1000000, 8);
    for (unsigned i = 0; i < 1000000; i++)
        gguf_put(&file, 255, 1);
    gguf_finish(&file, 32, 0, &container);
    measured(assert_bounded, &container);
    container_free(&container);
}

static void gguf_survives_failing_allocations(void **state)
{
    struct gguf_file file = {0};
    struct container container = {0};

    (void)state;
    gguf_begin(&file);
    gguf_put_key(&file, "b", GGUF_STRING), gguf_put_string(&file, "v");
    gguf_put_key(&file, "a", GGUF_U8), gguf_put(&file, 1, 1);
    gguf_put_tensor(&file, "y", 1, (const uint64_t[1]){32}, 2);
    gguf_put_offset(&file, 32);
    gguf_put_tensor(&file, "x", 1, (const uint64_t[1]){32}, 24);
    gguf_put_offset(&file, 0);
    gguf_finish(&file, 32, 50, &container);
    measured(assert_survives, &container);
    container_free(&container);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_is_opened_within_bounds),
        cmocka_unit_test(gguf_is_opened_within_bounds),
        cmocka_unit_test(gguf_survives_failing_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
