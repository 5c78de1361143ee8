/* How much memory opening safetensors and GGUF takes, at most 16 bytes for each byte of the header
 * and 1 MiB, and what happens if allocations fail.
 *
 * This program replaces the C library's allocator; so do sanitizers, under which it tests
 * nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf/gguf.h"
#include "gguf_file.h"
#include "safetensors_file.h"
#include "survives.h"
#include "tests.h"

static enum zt_status open_once(void *context)
{
    const struct container *container = context;
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

static void assert_bounded(struct container *container)
{
    const size_t allowed = 16 * container->manifest_length + (1 << 20);

    allocation_measure();
    assert_ok(open_once(container));
    if (allocation_taken() > allowed)
        fail_msg("%zu bytes for a header of %zu", allocation_taken(),
                 (size_t)container->manifest_length);
}

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

TEST(safetensors_is_opened_within_bounds)
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

    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        char *header = make_header(frames[i][0], frames[i][1], frames[i][2]);

        safetensors_make(&container, header, 0);
        assert_bounded(&container);
        free(header);
    }
    safetensors_make(
        &container,
        "{\"__metadata__\":{\"b\":\"\",\"a\":\"\"},\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
        "\"data_offsets\":[2,4]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
        4);
    assert_survives(open_once, &container);
    container_free(&container);
}

static void put_name(char name[16], unsigned i)
{
    snprintf(name, 16, "%x", i * 2654435761u);
}

TEST(gguf_is_opened_within_bounds)
{
    struct gguf_file file = {0};
    struct container container = {0};
    char name[16];

    gguf_begin(&file);
    for (unsigned i = 0; i < ENTRIES; i++) {
        put_name(name, i);
        gguf_put_key(&file, name, GGUF_U8);
        gguf_put(&file, 255, 1);
    }
    gguf_finish(&file, 32, 0, &container);
    assert_bounded(&container);
    gguf_begin(&file);
    for (unsigned i = 0; i < ENTRIES; i++) {
        put_name(name, i);
        gguf_put_tensor(&file, name, 0, NULL, 24);
        gguf_put_offset(&file, 0);
    }
    gguf_finish(&file, 32, 1, &container);
    assert_bounded(&container);
    gguf_begin(&file);
    gguf_put_key(&file, "k", GGUF_ARRAY), gguf_put(&file, GGUF_U8, 4), gguf_put(&file, 1000000, 8);
    for (unsigned i = 0; i < 1000000; i++)
        gguf_put(&file, 255, 1);
    gguf_finish(&file, 32, 0, &container);
    assert_bounded(&container);
    container_free(&container);
}

TEST(gguf_survives_failing_allocations)
{
    struct gguf_file file = {0};
    struct container container = {0};

    gguf_begin(&file);
    gguf_put_key(&file, "b", GGUF_STRING), gguf_put_string(&file, "v");
    gguf_put_key(&file, "a", GGUF_U8), gguf_put(&file, 1, 1);
    gguf_put_tensor(&file, "y", 1, (const uint64_t[1]){32}, 2);
    gguf_put_offset(&file, 32);
    gguf_put_tensor(&file, "x", 1, (const uint64_t[1]){32}, 24);
    gguf_put_offset(&file, 0);
    gguf_finish(&file, 32, 50, &container);
    assert_survives(open_once, &container);
    container_free(&container);
}
