/* The JSON reader, and attributes made from its values: CBOR that is valid by zTensor 2's rules,
 * and JSON again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cbor/cbor_read.h"
#include "cbor/json_cbor.h"
#include "zt/attributes.h"

#define ARENA_BYTES ((size_t)4 << 20)

static const struct zt_json_rules rules = {"json §Syntax", "json §Depth"};

struct text {
    char *bytes;
    size_t length;
};

static void collect(void *context, const char *text, size_t length)
{
    struct text *all = context;

    all->bytes = realloc(all->bytes, all->length + length + 1);
    FUZZ_ASSERT(all->bytes != NULL);
    memcpy(all->bytes + all->length, text, length);
    all->length += length;
}

static struct zt_json_reader reader_over(char *bytes, size_t length)
{
    return (struct zt_json_reader){.bytes = bytes, .length = length, .rules = &rules};
}

/* The value becomes valid CBOR, which becomes JSON that can be read again. */
static void check_value(struct zt_text value)
{
    struct zt_cbor_reader cbor;
    struct zt_error error;
    struct text json = {NULL, 0};
    struct zt_json_reader reader;

    zt_cbor_reader_init(&cbor, value.bytes, value.length, 0, ZT_CBOR_ZT1, NULL);
    FUZZ_ASSERT(zt_cbor_skip(&cbor, &error) == ZT_OK && zt_cbor_end(&cbor, &error) == ZT_OK);
    FUZZ_ASSERT(zt_attributes_write_json(value, collect, &json, &error) == ZT_OK);
    reader = reader_over(json.bytes, json.length);
    FUZZ_ASSERT(zt_json_skip(&reader, &error) == ZT_OK && zt_json_end(&reader, &error) == ZT_OK);
    free(json.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *copy = fuzz_string(bytes, length);
    struct zt_json_reader reader = reader_over(copy, length);
    struct zt_arena arena;
    struct zt_text value;
    struct zt_error error;
    enum zt_status skipped = zt_json_skip(&reader, &error);
    enum zt_status read;

    if (skipped == ZT_OK)
        skipped = zt_json_end(&reader, &error);
    if (skipped != ZT_OK)
        fuzz_failure(skipped, &error, length);
    free(copy);
    copy = fuzz_string(bytes, length);
    reader = reader_over(copy, length);
    zt_arena_init(&arena, ARENA_BYTES);
    read = zt_json_to_cbor(&reader, &arena, &value, &error);
    if (read == ZT_OK)
        check_value(value);
    else
        fuzz_failure(read, &error, length);
    /* What is read is at least JSON. */
    FUZZ_ASSERT(read != ZT_OK || skipped == ZT_OK || reader.position < length);
    zt_arena_free(&arena);
    free(copy);
    return 0;
}
