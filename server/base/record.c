/* Writes and reads binary records. */
#include "base/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "zt/digest.h"

#define TEXT_LENGTH_BYTES 4
#define TEXT_ABSENT       UINT32_MAX
#define NUMBER_BYTES      8

/* --- writing --- */

void record_write_bytes(struct record_writer *writer, const void *bytes, size_t length)
{
    if (writer->failed || length == 0)
        return;
    if (length > SIZE_MAX - writer->length ||
        zt_array_reserve(&writer->bytes, &writer->capacity, writer->length + length, 1,
                         writer->limit_bytes > 0 ? writer->limit_bytes : SIZE_MAX) != ZT_OK) {
        writer->failed = true;
        return;
    }
    memcpy(writer->bytes + writer->length, bytes, length);
    writer->length += length;
}

void record_write_uint(struct record_writer *writer, uint64_t value, size_t width)
{
    uint8_t bytes[NUMBER_BYTES];

    assert(width > 0 && width <= NUMBER_BYTES);
    assert(width == NUMBER_BYTES || value >> (8 * width) == 0);
    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    record_write_bytes(writer, bytes, width);
}

void record_write_text(struct record_writer *writer, const char *text)
{
    const size_t length = text != NULL ? strlen(text) : 0;

    if (length >= TEXT_ABSENT) {
        writer->failed = true;
        return;
    }
    record_write_uint(writer, text != NULL ? length : TEXT_ABSENT, TEXT_LENGTH_BYTES);
    record_write_bytes(writer, text, length);
}

void record_write_hash(struct record_writer *writer, size_t from)
{
    if (writer->failed)
        return;
    assert(from <= writer->length);
    record_write_uint(writer, zt_xxh3(writer->bytes + from, writer->length - from),
                      RECORD_HASH_BYTES);
}

struct record_writer record_writer_take(struct record_writer *writer)
{
    const struct record_writer taken = *writer;

    *writer = (struct record_writer){.limit_bytes = taken.limit_bytes};
    return taken;
}

void record_writer_free(struct record_writer *writer)
{
    free(writer->bytes);
    *writer = (struct record_writer){.limit_bytes = writer->limit_bytes};
}

/* --- reading --- */

const uint8_t *record_read_bytes(struct record_reader *reader, size_t length)
{
    const uint8_t *at = reader->at;

    if (reader->failed || length > reader->left) {
        reader->failed = true;
        return NULL;
    }
    reader->at += length;
    reader->left -= length;
    return at;
}

uint64_t record_read_uint(struct record_reader *reader, size_t width)
{
    const uint8_t *bytes = record_read_bytes(reader, width);
    uint64_t value = 0;

    assert(width > 0 && width <= NUMBER_BYTES);
    for (size_t i = 0; bytes != NULL && i < width; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

char *record_read_text(struct record_reader *reader)
{
    const uint64_t length = record_read_uint(reader, TEXT_LENGTH_BYTES);
    const uint8_t *bytes;
    char *text;

    if (reader->failed || length == TEXT_ABSENT)
        return NULL;
    bytes = record_read_bytes(reader, (size_t)length);
    text = bytes != NULL ? strndup((const char *)bytes, (size_t)length) : NULL;
    reader->failed = text == NULL;
    return text;
}

bool record_read_hash(struct record_reader *reader, const uint8_t *from)
{
    const size_t covered = (size_t)(reader->at - from);
    const uint64_t stated = record_read_uint(reader, RECORD_HASH_BYTES);

    if (!reader->failed && stated != zt_xxh3(from, covered))
        reader->failed = true;
    return !reader->failed;
}

struct record_reader record_reader_checked(const uint8_t *bytes, size_t length)
{
    struct record_reader reader = {.failed = length < RECORD_HASH_BYTES};
    struct record_reader tail;

    if (reader.failed)
        return reader;
    tail =
        (struct record_reader){.at = bytes + length - RECORD_HASH_BYTES, .left = RECORD_HASH_BYTES};
    reader.failed = !record_read_hash(&tail, bytes);
    reader.at = bytes;
    reader.left = length - RECORD_HASH_BYTES;
    return reader;
}
