/* JSON values as CBOR. The JSON reader's depth bounds the recursion. */
#include "cbor/json_cbor.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cbor/cbor_read.h"
#include "cbor/cbor_write.h"

#define NUMBER_MAX 400

static enum zt_status put_value(struct zt_json_reader *reader, struct zt_buffer *out,
                                struct zt_error *error);

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
}

/* Whether the number is written with digits only. */
static bool is_whole(const struct zt_json_item *item)
{
    for (size_t i = 0; i < item->text.length; i++)
        if (item->text.bytes[i] < '0' || item->text.bytes[i] > '9')
            return false;
    return true;
}

static enum zt_status put_number(const struct zt_json_reader *reader,
                                 const struct zt_json_item *item, struct zt_buffer *out,
                                 struct zt_error *error)
{
    struct zt_json_item positive = *item;
    bool is_negative = item->text.bytes[0] == '-';
    char text[NUMBER_MAX + 1];
    uint64_t value;
    double number;

    assert(item->kind == ZT_JSON_NUMBER && item->text.length > 0);
    positive.text.bytes += is_negative;
    positive.text.length -= is_negative;
    if (zt_json_uint(&positive, &value) && !(is_negative && value == 0)) {
        if (is_negative)
            zt_cbor_put_nint(out, value - 1);
        else
            zt_cbor_put_uint(out, value);
        return ZT_OK;
    }
    if (item->text.length > NUMBER_MAX)
        return zt_fail(error, ZT_INVALID, reader->rules->syntax, item->offset,
                       "a number of over 400 characters");
    memcpy(text, item->text.bytes, item->text.length);
    text[item->text.length] = '\0';
    number = strtod(text, NULL);
    if (reader->wants_exact && (isinf(number) || (is_whole(&positive) && number != 0)))
        return zt_fail(error, ZT_INVALID, reader->rules->syntax, item->offset,
                       "a number that fits neither 64 bits nor a float: %.40s", text);
    zt_cbor_put_float(out, number);
    return ZT_OK;
}

/* Entries are collected in a separate buffer first, because the head in front of them states their
 * number. */
static enum zt_status put_entries(struct zt_json_reader *reader, bool is_map, struct zt_buffer *out,
                                  struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item key;
    struct zt_buffer body = {0};
    uint64_t count = 0;
    enum zt_status status;

    for (;; count++) {
        bool more = false;

        status = is_map ? zt_json_member(reader, &walk, &more, &key, error)
                        : zt_json_element(reader, &walk, &more, error);
        if (status != ZT_OK)
            goto out;
        if (!more)
            break;
        if (is_map)
            zt_cbor_put_text(&body, key.text);
        status = put_value(reader, &body, error);
        if (status != ZT_OK)
            goto out;
    }
    if (is_map)
        zt_cbor_put_map(out, count);
    else
        zt_cbor_put_array(out, count);
    if (body.length > 0)
        zt_buffer_append(out, body.bytes, body.length);
    if (body.failed || out->failed)
        status = no_memory(error);
out:
    zt_buffer_free(&body);
    return status;
}

static enum zt_status put_value(struct zt_json_reader *reader, struct zt_buffer *out,
                                struct zt_error *error)
{
    struct zt_json_item item;
    enum zt_status status = zt_json_next(reader, &item, error);

    if (status != ZT_OK)
        return status;
    switch (item.kind) {
    case ZT_JSON_OBJECT:
    case ZT_JSON_ARRAY:
        return put_entries(reader, item.kind == ZT_JSON_OBJECT, out, error);
    case ZT_JSON_NUMBER:
        return put_number(reader, &item, out, error);
    case ZT_JSON_TEXT:
        zt_cbor_put_text(out, item.text);
        break;
    case ZT_JSON_TRUE:
    case ZT_JSON_FALSE:
        zt_cbor_put_bool(out, item.kind == ZT_JSON_TRUE);
        break;
    case ZT_JSON_NULL:
        zt_cbor_put_null(out);
        break;
    }
    return ZT_OK;
}

/* Uses the CBOR reader to find repeated keys at any depth. */
static enum zt_status check_keys(const struct zt_json_reader *reader, const struct zt_buffer *value,
                                 uint64_t at, struct zt_error *error)
{
    struct zt_cbor_reader cbor;
    enum zt_status status;

    zt_cbor_reader_init(&cbor, value->bytes, value->length, 0, ZT_CBOR_ZT1, NULL);
    status = zt_cbor_skip(&cbor, error);
    if (status == ZT_INVALID)
        return zt_fail(error, ZT_INVALID, reader->rules->syntax, at,
                       "a key occurs twice in an object");
    return status;
}

enum zt_status zt_json_to_cbor(struct zt_json_reader *reader, struct zt_arena *arena,
                               struct zt_text *out_value, struct zt_error *error)
{
    uint64_t at = reader->base_offset + reader->position;
    struct zt_buffer buffer = {0};
    void *held;
    enum zt_status status = put_value(reader, &buffer, error);

    if (status == ZT_OK && buffer.failed)
        status = no_memory(error);
    if (status == ZT_OK)
        status = check_keys(reader, &buffer, at, error);
    if (status == ZT_OK)
        status = zt_arena_take(arena, buffer.length, &held, error);
    if (status == ZT_OK) {
        memcpy(held, buffer.bytes, buffer.length);
        *out_value = (struct zt_text){held, buffer.length};
    }
    zt_buffer_free(&buffer);
    return status;
}
