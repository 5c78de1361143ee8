/* Encoding attributes: value by value; the entries of a map are sorted when it is complete. */
#include "cbor/attributes_encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/name.h"
#include "cbor/cbor_read.h"

/* zTensor 2's bound on names, which applies to top-level keys. */
#define KEY_MAX_BYTES 1024
#define TAG_MAJOR     0xC0
#define SIMPLE        0xE0
/* Simple values of at least this number take a second byte. */
#define SIMPLE_FOLLOWS 24
#define UNDEFINED      0xF7

struct encoder {
    struct zt_cbor_reader reader;
    struct zt_arena arena; /* joined texts */
    enum zt_attributes_form form;
    unsigned levels;
    unsigned level;
    struct zt_buffer *buffer;
    struct zt_error *error;
};

/* One entry of a map in the buffer: the key, and right after it the value. */
struct entry {
    size_t at;
    size_t key_length;
    size_t length;
    bool is_text;
    size_t text_at; /* position of the first character if it is a text */
};

struct entries {
    struct entry *list;
    size_t count;
    size_t capacity;
};

static enum zt_status put_value(struct encoder *encoder);

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for attributes");
}

static enum zt_status fail_unsupported(const struct encoder *encoder, const char *what)
{
    return zt_fail(encoder->error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                   "attributes hold %s, which %s cannot", what,
                   encoder->form == ZT_ATTRIBUTES_ZT1 ? "zTensor 1.2" : "zTensor 2");
}

/* --- the order of keys --- */

struct sorting {
    const uint8_t *bytes;
    bool shorter_first;
};

static struct zt_text key_from(const struct sorting *sorting, const struct entry *entry, size_t at)
{
    return (struct zt_text){(const char *)sorting->bytes + at, entry->at + entry->key_length - at};
}

/* Compares encoded keys: heads are shortest, so the shorter of two texts comes first. For zTensor
 * 1.2 compares texts by content. */
static int compare_entries(const void *a, const void *b, void *context)
{
    const struct sorting *sorting = context;
    const struct entry *x = a;
    const struct entry *y = b;
    bool by_content = !sorting->shorter_first && x->is_text && y->is_text;

    return zt_text_compare(key_from(sorting, x, by_content ? x->text_at : x->at),
                           key_from(sorting, y, by_content ? y->text_at : y->at));
}

/* Sorts the entries of a map, which are at the end of the buffer. */
static enum zt_status sort_entries(const struct encoder *encoder, struct entries *entries)
{
    struct zt_buffer *buffer = encoder->buffer;
    struct sorting sorting = {buffer->bytes, encoder->form != ZT_ATTRIBUTES_ZT1};
    size_t begin;
    size_t length;
    uint8_t *sorted;
    size_t at;

    if (entries->count < 2)
        return ZT_OK;
    begin = entries->list[0].at;
    length = buffer->length - begin;
    sorted = malloc(length);
    if (sorted == NULL)
        return no_memory(encoder->error);
    qsort_r(entries->list, entries->count, sizeof(*entries->list), compare_entries, &sorting);
    at = 0;
    for (size_t i = 0; i < entries->count; i++) {
        memcpy(sorted + at, buffer->bytes + entries->list[i].at, entries->list[i].length);
        at += entries->list[i].length;
    }
    assert(at == length);
    memcpy(buffer->bytes + begin, sorted, length);
    free(sorted);
    for (size_t i = 1; i < entries->count; i++)
        if (compare_entries(&entries->list[i - 1], &entries->list[i], &sorting) == 0)
            return fail_unsupported(encoder, "two keys that become equal");
    return ZT_OK;
}

static struct entry *add_entry(struct entries *entries)
{
    if (zt_array_reserve(&entries->list, &entries->capacity, entries->count + 1,
                         sizeof(*entries->list), SIZE_MAX) != ZT_OK)
        return NULL;
    memset(&entries->list[entries->count], 0, sizeof(*entries->list));
    return &entries->list[entries->count++];
}

/* --- keys --- */

static enum zt_status put_composed(struct encoder *encoder, struct zt_text name)
{
    struct zt_text composed;
    char *owned = NULL;
    enum zt_status status = zt_name_compose(name, &owned, &composed);

    if (status == ZT_NO_MEMORY)
        return no_memory(encoder->error);
    if (composed.length > KEY_MAX_BYTES) {
        free(owned);
        return fail_unsupported(encoder, "a key of more than 1024 bytes");
    }
    zt_cbor_put_text(encoder->buffer, composed);
    free(owned);
    return ZT_OK;
}

/* Encodes a top-level key. It is a text, as every reader has checked; in zTensor 2 it must also be
 * a valid name. */
static enum zt_status put_top_key(struct encoder *encoder, struct zt_text name)
{
    if (encoder->form == ZT_ATTRIBUTES_ZT1) {
        zt_cbor_put_text(encoder->buffer, name);
        return ZT_OK;
    }
    if (name.length == 0 || name.length > KEY_MAX_BYTES)
        return fail_unsupported(encoder, "a key that is not 1 to 1024 bytes long");
    if (memchr(name.bytes, 0, name.length) != NULL)
        return fail_unsupported(encoder, "a key with a NUL character");
    if (encoder->form == ZT_ATTRIBUTES_ZT2_CANONICAL)
        return put_composed(encoder, name);
    zt_cbor_put_text(encoder->buffer, name);
    return ZT_OK;
}

/* Encodes the next key, which may be any value. */
static enum zt_status put_key(struct encoder *encoder, struct zt_cbor_walk *walk,
                              struct entry *entry)
{
    struct zt_cbor_item key;
    size_t begin = encoder->reader.position;
    enum zt_status status = zt_cbor_key(&encoder->reader, walk, &key, encoder->error);

    if (status != ZT_OK)
        return status;
    entry->at = encoder->buffer->length;
    if (key.kind == ZT_CBOR_TEXT) {
        struct zt_text name = zt_cbor_content(&key);

        entry->is_text = true;
        if (encoder->level == 1)
            status = put_top_key(encoder, name);
        else
            zt_cbor_put_text(encoder->buffer, name);
    } else {
        /* The whole key has been read: go back and encode it as a value. */
        size_t end = encoder->reader.position;

        encoder->reader.position = begin;
        status = put_value(encoder);
        assert(status != ZT_OK || encoder->reader.position == end);
        encoder->reader.position = end;
    }
    entry->key_length = encoder->buffer->length - entry->at;
    return status;
}

static void find_characters(const struct zt_buffer *buffer, struct entry *entry)
{
    static const uint8_t head_lengths[] = {2, 3, 5, 9};
    unsigned info = buffer->bytes[entry->at] & 0x1F;

    entry->text_at = entry->at + (info < 24 ? 1 : head_lengths[(info - 24) & 3]);
}

/* --- values --- */

static enum zt_status put_entry(struct encoder *encoder, struct zt_cbor_walk *walk,
                                struct entries *entries)
{
    struct entry *entry = add_entry(entries);
    enum zt_status status;

    if (entry == NULL)
        return no_memory(encoder->error);
    status = put_key(encoder, walk, entry);
    if (status == ZT_OK)
        status = put_value(encoder);
    if (encoder->buffer->failed)
        return no_memory(encoder->error);
    if (status == ZT_OK && entry->is_text)
        find_characters(encoder->buffer, entry);
    assert(entry->at <= encoder->buffer->length);
    entry->length = encoder->buffer->length - entry->at;
    return status;
}

/* Counts the items of an array or the pairs of a map of indefinite length. The reader is just after
 * its head. */
static enum zt_status count_items(struct zt_cbor_reader ahead, const struct zt_cbor_item *head,
                                  uint64_t *out_count, struct zt_error *error)
{
    struct zt_cbor_walk walk = zt_cbor_enter(&ahead, head);
    struct zt_cbor_item key;
    uint64_t count = 0;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && zt_cbor_more(&ahead, &walk)) {
        count++;
        if (head->kind == ZT_CBOR_MAP)
            status = zt_cbor_key(&ahead, &walk, &key, error);
        if (status == ZT_OK)
            status = zt_cbor_skip(&ahead, error);
    }
    *out_count = count;
    return status;
}

static enum zt_status put_container(struct encoder *encoder, const struct zt_cbor_item *head)
{
    struct entries entries = {0};
    struct zt_cbor_walk walk;
    uint64_t count = head->value;
    enum zt_status status =
        head->indefinite ? count_items(encoder->reader, head, &count, encoder->error) : ZT_OK;

    assert(head->kind == ZT_CBOR_MAP || head->kind == ZT_CBOR_ARRAY);
    if (status != ZT_OK)
        return status;
    walk = zt_cbor_enter(&encoder->reader, head);
    if (head->kind == ZT_CBOR_MAP)
        zt_cbor_put_map(encoder->buffer, count);
    else
        zt_cbor_put_array(encoder->buffer, count);
    encoder->level++;
    while (status == ZT_OK && zt_cbor_more(&encoder->reader, &walk))
        status =
            head->kind == ZT_CBOR_MAP ? put_entry(encoder, &walk, &entries) : put_value(encoder);
    encoder->level--;
    assert(status != ZT_OK || head->kind != ZT_CBOR_MAP || entries.count == count);
    if (status == ZT_OK && head->kind == ZT_CBOR_MAP)
        status = sort_entries(encoder, &entries);
    free(entries.list);
    return status;
}

static enum zt_status put_tag(struct encoder *encoder, uint64_t tag)
{
    size_t at = encoder->buffer->length;
    enum zt_status status;

    if (encoder->form != ZT_ATTRIBUTES_ZT1)
        return fail_unsupported(encoder, "a tagged value");
    zt_cbor_put_uint(encoder->buffer, tag);
    if (encoder->buffer->failed)
        return no_memory(encoder->error);
    encoder->buffer->bytes[at] |= TAG_MAJOR;
    /* A tag counts as a level, as in the reader. */
    encoder->level++;
    status = put_value(encoder);
    encoder->level--;
    return status;
}

static enum zt_status put_undefined(struct encoder *encoder)
{
    if (encoder->form != ZT_ATTRIBUTES_ZT1)
        return fail_unsupported(encoder, "an undefined value");
    zt_buffer_append(encoder->buffer, &(uint8_t){UNDEFINED}, 1);
    return ZT_OK;
}

/* Writes an unassigned simple value in one or two bytes (RFC 8949 section 3.3). */
static enum zt_status put_simple(struct encoder *encoder, uint64_t value)
{
    const uint8_t wide[2] = {SIMPLE | SIMPLE_FOLLOWS, (uint8_t)value};

    assert(value <= UINT8_MAX);
    if (encoder->form != ZT_ATTRIBUTES_ZT1)
        return fail_unsupported(encoder, "a simple value");
    if (value < SIMPLE_FOLLOWS)
        zt_buffer_append(encoder->buffer, &(uint8_t){SIMPLE | (uint8_t)value}, 1);
    else
        zt_buffer_append(encoder->buffer, wide, sizeof(wide));
    return ZT_OK;
}

static enum zt_status put_item(struct encoder *encoder, const struct zt_cbor_item *item)
{
    struct zt_buffer *buffer = encoder->buffer;

    switch (item->kind) {
    case ZT_CBOR_UINT:
        zt_cbor_put_uint(buffer, item->value);
        return ZT_OK;
    case ZT_CBOR_NINT:
        zt_cbor_put_nint(buffer, item->value);
        return ZT_OK;
    case ZT_CBOR_BYTES:
        zt_cbor_put_bytes(buffer, item->bytes, (size_t)item->value);
        return ZT_OK;
    case ZT_CBOR_TEXT:
        zt_cbor_put_text(buffer, zt_cbor_content(item));
        return ZT_OK;
    case ZT_CBOR_ARRAY:
    case ZT_CBOR_MAP:
        return put_container(encoder, item);
    case ZT_CBOR_TAG:
        return put_tag(encoder, item->value);
    case ZT_CBOR_FALSE:
    case ZT_CBOR_TRUE:
        zt_cbor_put_bool(buffer, item->kind == ZT_CBOR_TRUE);
        return ZT_OK;
    case ZT_CBOR_NULL:
        zt_cbor_put_null(buffer);
        return ZT_OK;
    case ZT_CBOR_UNDEFINED:
        return put_undefined(encoder);
    case ZT_CBOR_SIMPLE:
        return put_simple(encoder, item->value);
    case ZT_CBOR_FLOAT:
        zt_cbor_put_float(buffer, item->number);
        return ZT_OK;
    case ZT_CBOR_BREAK:
        break;
    }
    return zt_fail(encoder->error, ZT_INVALID, NULL, item->offset,
                   "attributes end where a value is expected");
}

/* Recurses at most 128 levels deep, the reader's limit on nesting. */
static enum zt_status put_value(struct encoder *encoder)
{
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next(&encoder->reader, &item, encoder->error);

    if (status != ZT_OK)
        return status;
    if (encoder->level > encoder->levels)
        return fail_unsupported(encoder, "values nested so deep");
    status = put_item(encoder, &item);
    return status == ZT_OK && encoder->buffer->failed ? no_memory(encoder->error) : status;
}

enum zt_status zt_attributes_encode(struct zt_text map, enum zt_attributes_form form,
                                    unsigned levels, struct zt_buffer *buffer,
                                    struct zt_error *error)
{
    struct encoder encoder = {.form = form, .levels = levels, .buffer = buffer, .error = error};
    enum zt_status status;

    /* Joined texts are not longer than the map. */
    zt_arena_init(&encoder.arena, SIZE_MAX / 2);
    zt_cbor_reader_init(&encoder.reader, map.bytes, map.length, 0, ZT_CBOR_ZT1, &encoder.arena);
    status = put_value(&encoder);
    assert(encoder.level == 0);
    zt_arena_free(&encoder.arena);
    return status;
}

uint64_t zt_attributes_count(struct zt_text map)
{
    struct zt_arena arena;
    struct zt_cbor_reader reader;
    struct zt_cbor_item head;
    uint64_t count = 0;

    if (map.length == 0)
        return 0;
    zt_arena_init(&arena, SIZE_MAX / 2);
    zt_cbor_reader_init(&reader, map.bytes, map.length, 0, ZT_CBOR_ZT1, &arena);
    if (zt_cbor_next(&reader, &head, NULL) == ZT_OK && head.kind == ZT_CBOR_MAP) {
        count = head.value;
        if (head.indefinite && count_items(reader, &head, &count, NULL) != ZT_OK)
            count = 0;
    }
    zt_arena_free(&arena);
    return count;
}
