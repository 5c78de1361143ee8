/* What says of a file that it is a part: its name, and the keys of a split GGUF. */
#include "join/split.h"

#include <assert.h>
#include <string.h>

#include "cbor/cbor_read.h"
#include "cbor/cbor_write.h"

/* Both families of writers format numbers with "%05d". */
#define DIGITS       5
#define BETWEEN      "-of-"
#define SUFFIX_BYTES (1 + DIGITS + (sizeof(BETWEEN) - 1) + DIGITS)

#define NUMBER_KEY  "split.no"
#define COUNT_KEY   "split.count"
#define TENSORS_KEY "split.tensors.count"

static bool read_number(const char *digits, uint32_t *out_number)
{
    uint32_t number = 0;

    for (unsigned i = 0; i < DIGITS; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(digits[i] - '0');
    }
    *out_number = number;
    return true;
}

bool zt_part_name_split(struct zt_text name, size_t *out_stem_length, uint32_t *out_number,
                        uint32_t *out_count)
{
    const char *suffix;
    uint32_t number;
    uint32_t count;

    if (name.length <= SUFFIX_BYTES)
        return false;
    suffix = name.bytes + name.length - SUFFIX_BYTES;
    if (suffix[0] != '-' || !read_number(suffix + 1, &number) ||
        memcmp(suffix + 1 + DIGITS, BETWEEN, sizeof(BETWEEN) - 1) != 0 ||
        !read_number(suffix + SUFFIX_BYTES - DIGITS, &count))
        return false;
    if (number == 0 || number > count)
        return false;
    *out_stem_length = name.length - SUFFIX_BYTES;
    *out_number = number;
    *out_count = count;
    return true;
}

/* An attribute that is an integer of at least 0; writers differ in width and sign. */
static bool read_attribute(const struct zt_model *model, const char *key, uint64_t *out_value)
{
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_error ignored;

    if (!zt_cbor_map_find(model->attributes, key, &reader) ||
        zt_cbor_next(&reader, &item, &ignored) != ZT_OK || item.kind != ZT_CBOR_UINT)
        return false;
    *out_value = item.value;
    return true;
}

bool zt_gguf_split_of(const struct zt_model *model, struct zt_gguf_split *out_split)
{
    uint64_t number;
    uint64_t count;
    uint64_t tensor_count;

    if (model->format != ZT_FORMAT_GGUF || model->attributes.length == 0 ||
        !read_attribute(model, NUMBER_KEY, &number) || !read_attribute(model, COUNT_KEY, &count) ||
        !read_attribute(model, TENSORS_KEY, &tensor_count))
        return false;
    /* A merged file keeps the keys, with a count of 0. */
    if (count < 2 || count > UINT32_MAX || number >= count)
        return false;
    *out_split = (struct zt_gguf_split){(uint32_t)number, (uint32_t)count, tensor_count};
    return true;
}

static bool is_split_key(const struct zt_cbor_item *key)
{
    const struct zt_text text = zt_cbor_content(key);

    return key->kind == ZT_CBOR_TEXT &&
           (zt_text_is(text, NUMBER_KEY) || zt_text_is(text, COUNT_KEY) ||
            zt_text_is(text, TENSORS_KEY));
}

void zt_split_attributes(const struct zt_model *model, struct zt_buffer *buffer)
{
    struct zt_buffer pairs = {0};
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_cbor_walk walk;
    struct zt_text value;
    struct zt_error ignored;
    uint64_t count = 0;

    zt_cbor_reader_init(&reader, model->attributes.bytes, model->attributes.length, 0, ZT_CBOR_ZT1,
                        NULL);
    if (zt_cbor_next(&reader, &item, &ignored) != ZT_OK || item.kind != ZT_CBOR_MAP)
        return;
    walk = zt_cbor_enter(&reader, &item);
    while (zt_cbor_more(&reader, &walk)) {
        const size_t start = reader.position;

        /* The map was written by the reader of GGUF. */
        if (zt_cbor_key(&reader, &walk, &item, &ignored) != ZT_OK ||
            zt_cbor_pass_span(&reader, &value, &ignored) != ZT_OK)
            break;
        if (is_split_key(&item))
            continue;
        zt_buffer_append(&pairs, reader.bytes + start, reader.position - start);
        count++;
    }
    zt_cbor_put_map(buffer, count);
    zt_buffer_append(buffer, pairs.bytes, pairs.length);
    buffer->failed |= pairs.failed;
    zt_buffer_free(&pairs);
}
