/* The CBOR reader in its three profiles: skipping values, and reading a map as the readers of
 * containers do. The first byte chooses the profile. */
#include "fuzz.h"

#include <stdlib.h>

#include "cbor/cbor_read.h"
#include "zt/attributes.h"
#include "zt/utf8.h"

#define ARENA_BYTES ((size_t)1 << 20)

static void check_item(const struct zt_cbor_item *item, const struct zt_cbor_reader *reader)
{
    FUZZ_ASSERT(item->offset < reader->base_offset + reader->length);
    if (item->kind == ZT_CBOR_TEXT && item->bytes != NULL)
        FUZZ_ASSERT(zt_utf8_valid((const char *)item->bytes, (size_t)item->value));
}

static enum zt_status walk_pairs(struct zt_cbor_reader *reader, const struct zt_cbor_item *map,
                                 struct zt_error *error)
{
    struct zt_cbor_keys keys = {0};
    struct zt_cbor_walk walk = zt_cbor_enter(reader, map);
    struct zt_cbor_item key;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && zt_cbor_more(reader, &walk)) {
        status = zt_cbor_key(reader, &walk, &key, error);
        if (status == ZT_OK) {
            check_item(&key, reader);
            status = zt_cbor_keys_add(&keys, reader, &key, error);
        }
        if (status == ZT_OK)
            status = zt_cbor_skip(reader, error);
    }
    if (status == ZT_OK)
        status = zt_cbor_keys_check(&keys, 0, reader, error);
    zt_cbor_keys_free(&keys);
    return status;
}

/* Reads a map at the top pair by pair, everything else whole. */
static enum zt_status walk(struct zt_cbor_reader *reader, struct zt_error *error)
{
    struct zt_cbor_reader start = *reader;
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next_untagged(reader, &item, error);

    if (status != ZT_OK)
        return status;
    check_item(&item, reader);
    if (item.kind == ZT_CBOR_MAP)
        return walk_pairs(reader, &item, error);
    *reader = start;
    return zt_cbor_skip(reader, error);
}

static void emit(void *context, const char *text, size_t length)
{
    FUZZ_ASSERT(zt_utf8_valid(text, length));
    *(size_t *)context += length;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct zt_cbor_reader reader;
    struct zt_arena arena;
    struct zt_text span;
    struct zt_error error;
    size_t json = 0;
    enum zt_cbor_profile profile;
    enum zt_status skipped;
    enum zt_status walked;

    if (length == 0)
        return 0;
    profile = (enum zt_cbor_profile)(bytes[0] % 3);
    zt_arena_init(&arena, ARENA_BYTES);
    zt_cbor_reader_init(&reader, bytes + 1, length - 1, 1, profile, &arena);
    skipped = zt_cbor_skip_span(&reader, &span, &error);
    if (skipped != ZT_OK) {
        fuzz_failure(skipped, &error, length);
    } else {
        FUZZ_ASSERT(span.bytes == (const char *)bytes + 1 && span.length == reader.position);
        FUZZ_ASSERT(reader.depth == 0);
        FUZZ_ASSERT(zt_attributes_write_json(span, emit, &json, &error) == ZT_OK && json > 0);
    }
    zt_cbor_reader_init(&reader, bytes + 1, length - 1, 1, profile, &arena);
    walked = walk(&reader, &error);
    if (walked != ZT_OK)
        fuzz_failure(walked, &error, length);
    else
        FUZZ_ASSERT(reader.position <= reader.length && reader.depth == 0);
    zt_arena_free(&arena);
    return 0;
}
