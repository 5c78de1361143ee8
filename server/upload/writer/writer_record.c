/* Fields without names: a record's kind says which follow one another. */
#include "upload/writer/writer_record.h"

#include <stdlib.h>
#include <string.h>

#include "zt/digest.h"

static void store_le(uint8_t *to, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t load_le(const uint8_t *from, unsigned width)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* --- writing --- */

static bool make_room(struct record *record, size_t length)
{
    size_t capacity;
    uint8_t *bytes;

    if (record->failed || length > RECORD_MAX_BYTES || record->length + length > RECORD_MAX_BYTES)
        return false;
    if (record->length + length <= record->capacity)
        return true;
    capacity = 2 * (record->length + length) + 256;
    bytes = realloc(record->bytes, capacity);
    if (bytes == NULL)
        return false;
    record->bytes = bytes;
    record->capacity = capacity;
    return true;
}

void record_put_bytes(struct record *record, const void *bytes, size_t length)
{
    if (!make_room(record, length)) {
        record->failed = true;
        return;
    }
    if (length > 0)
        memcpy(record->bytes + record->length, bytes, length);
    record->length += length;
}

void record_begin(struct record *record, uint8_t kind)
{
    static const uint8_t head[RECORD_HEAD_BYTES] = {0};

    *record = (struct record){0};
    record_put_bytes(record, head, sizeof(head));
    record_put_bytes(record, &kind, 1);
}

void record_put_uint(struct record *record, uint64_t value)
{
    uint8_t bytes[8];

    store_le(bytes, value, sizeof(bytes));
    record_put_bytes(record, bytes, sizeof(bytes));
}

void record_put_text(struct record *record, struct zt_text text)
{
    record_put_uint(record, text.length);
    record_put_bytes(record, text.bytes, text.length);
}

void record_put_string(struct record *record, const char *text)
{
    record_put_uint(record, text != NULL);
    if (text != NULL)
        record_put_text(record, (struct zt_text){text, strlen(text)});
}

bool record_close(struct record *record)
{
    static const uint8_t end[RECORD_END_BYTES] = {0};
    size_t whole = record->length;

    record_put_bytes(record, end, sizeof(end));
    if (record->failed)
        return false;
    store_le(record->bytes, whole - RECORD_HEAD_BYTES, 4);
    store_le(record->bytes + 4,
             zt_crc32c(0, record->bytes + RECORD_HEAD_BYTES, whole - RECORD_HEAD_BYTES), 4);
    return true;
}

void record_free(struct record *record)
{
    free(record->bytes);
    record->bytes = NULL;
}

/* --- reading --- */

uint64_t record_whole_length(const uint8_t *head)
{
    return RECORD_HEAD_BYTES + load_le(head, 4);
}

bool record_read(const uint8_t *bytes, size_t length, uint8_t *out_kind,
                 struct record_reader *out_reader, size_t *out_whole)
{
    uint64_t body;
    const uint8_t *begin;

    if (length < RECORD_HEAD_BYTES + 1)
        return false;
    body = load_le(bytes, 4);
    if (body == 0 || body > length - RECORD_HEAD_BYTES)
        return false;
    begin = bytes + RECORD_HEAD_BYTES;
    if (load_le(bytes + 4, 4) != zt_crc32c(0, begin, (size_t)body))
        return false;
    *out_kind = begin[0];
    *out_reader = (struct record_reader){.at = begin + 1, .end = begin + body};
    *out_whole = RECORD_HEAD_BYTES + (size_t)body;
    return true;
}

const uint8_t *record_get_bytes(struct record_reader *reader, size_t length)
{
    const uint8_t *bytes = reader->at;

    if (reader->failed || length > (size_t)(reader->end - reader->at)) {
        reader->failed = true;
        return NULL;
    }
    reader->at += length;
    return bytes;
}

uint64_t record_get_uint(struct record_reader *reader)
{
    const uint8_t *bytes = record_get_bytes(reader, 8);

    return bytes != NULL ? load_le(bytes, 8) : 0;
}

struct zt_text record_get_text(struct record_reader *reader)
{
    uint64_t length = record_get_uint(reader);
    const uint8_t *bytes = record_get_bytes(reader, length <= SIZE_MAX ? (size_t)length : SIZE_MAX);

    return bytes != NULL ? (struct zt_text){(const char *)bytes, (size_t)length}
                         : (struct zt_text){"", 0};
}

char *record_get_string(struct record_reader *reader)
{
    struct zt_text text;
    char *copy;

    if (record_get_uint(reader) == 0)
        return NULL;
    text = record_get_text(reader);
    copy = reader->failed ? NULL : strndup(text.bytes, text.length);
    reader->failed = reader->failed || copy == NULL;
    return copy;
}
