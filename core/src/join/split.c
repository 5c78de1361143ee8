/* What says of a file that it is a part: its name, and the keys of a split GGUF. */
#include "join/split.h"

#include <inttypes.h>
#include <string.h>

#include "base/decimal.h"
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
    uint64_t number;

    if (!zt_decimal_read((struct zt_text){digits, DIGITS}, UINT32_MAX, &number))
        return false;
    *out_number = (uint32_t)number;
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

/* A name without its extension; a name without one is left whole. */
static struct zt_text without_extension(struct zt_text name)
{
    size_t length = name.length;

    while (length > 0 && name.bytes[length - 1] != '.')
        length--;
    return length > 0 ? (struct zt_text){name.bytes, length - 1} : name;
}

enum zt_status zt_gguf_check_name(const struct zt_model *model, struct zt_text name,
                                  struct zt_error *error)
{
    uint64_t stated_count;
    uint64_t stated_number;
    uint32_t number;
    uint32_t count;
    size_t stem;

    if (model->format != ZT_FORMAT_GGUF || model->attributes.length == 0 ||
        !read_attribute(model, COUNT_KEY, &stated_count) || stated_count < 2)
        return ZT_OK;
    if (!read_attribute(model, NUMBER_KEY, &stated_number))
        return zt_fail(error, ZT_INVALID, "gguf §Split Keys", ZT_NO_OFFSET,
                       "the file is one of %" PRIu64 " parts, but does not state which",
                       stated_count);
    if (zt_part_name_split(without_extension(name), &stem, &number, &count) &&
        count == stated_count && number - 1 == stated_number)
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, "gguf §Split PartName", ZT_NO_OFFSET,
                   "the file is part %" PRIu64 " of %" PRIu64
                   ", not a whole model, and its name does not end in -%05" PRIu64 "-of-%05" PRIu64
                   ".gguf",
                   stated_number + 1, stated_count, stated_number + 1, stated_count);
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
