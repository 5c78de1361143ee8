#include "s3/write/s3api_complete_xml.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/memory.h"
#include "input/xml_read.h"

#define ROOT     "CompleteMultipartUpload"
#define PART     ROOT "/Part"
#define CHECKSUM PART "/Checksum"

struct reading {
    struct s3api_named_parts *parts;
    struct s3api_named_part part; /* being read */
    bool has_root;
    bool is_unordered;
    bool is_out_of_memory;
};

static void copy_cut(struct zt_text text, char *out_text, size_t size)
{
    const size_t length = text.length < size ? text.length : size - 1;

    assert(size > 0 && length < size);
    memcpy(out_text, text.bytes, length);
    out_text[length] = '\0';
}

static bool add_part(struct reading *reading)
{
    struct s3api_named_parts *parts = reading->parts;

    reading->is_out_of_memory = zt_array_reserve(&parts->parts, &parts->capacity, parts->count + 1,
                                                 sizeof(*parts->parts), S3API_PARTS_MAX) != ZT_OK;
    if (reading->is_out_of_memory)
        return false;
    assert(parts->count < parts->capacity);
    parts->parts[parts->count++] = reading->part;
    reading->part = (struct s3api_named_part){.number = 0};
    return true;
}

static bool end_part(struct reading *reading)
{
    const struct s3api_named_parts *parts = reading->parts;

    if (reading->part.number == 0 || reading->part.etag[0] == '\0' ||
        parts->count == S3API_PARTS_MAX)
        return false;
    if (parts->count > 0 && parts->parts[parts->count - 1].number >= reading->part.number) {
        reading->is_unordered = true;
        return false;
    }
    return add_part(reading);
}

static bool read_number(struct zt_text text, uint32_t *out_number)
{
    uint64_t number;

    if (!zt_decimal_read(text, S3API_PARTS_MAX, &number) || number == 0)
        return false;
    *out_number = (uint32_t)number;
    return true;
}

static void read_checksum(const char *algorithm, struct zt_text text, struct s3api_named_part *part)
{
    enum checksum checksum;

    if (checksum_find_name(zt_text_from(algorithm), &checksum))
        copy_cut(text, part->checksums[checksum], sizeof(part->checksums[checksum]));
}

/* Text around a number or a tag makes XML readable. */
static struct zt_text trim(struct zt_text text)
{
    while (text.length > 0 && strchr(" \t\r\n", text.bytes[0]) != NULL)
        text = (struct zt_text){text.bytes + 1, text.length - 1};
    while (text.length > 0 && strchr(" \t\r\n", text.bytes[text.length - 1]) != NULL)
        text.length--;
    return text;
}

/* Elements that are not known are ignored, as S3 does. */
static bool visit(void *context, const char *path, struct zt_text text)
{
    struct reading *reading = context;

    if (strcmp(path, ROOT) == 0) {
        reading->has_root = true;
        return true;
    }
    if (strcmp(path, PART) == 0)
        return end_part(reading);
    if (text.bytes == NULL)
        return true;
    text = trim(text);
    if (strcmp(path, PART "/PartNumber") == 0)
        return read_number(text, &reading->part.number);
    if (strcmp(path, PART "/ETag") == 0)
        copy_cut(text, reading->part.etag, sizeof(reading->part.etag));
    else if (strncmp(path, CHECKSUM, strlen(CHECKSUM)) == 0)
        read_checksum(path + strlen(CHECKSUM), text, &reading->part);
    return true;
}

enum zt_status s3api_complete_xml_read(struct zt_text document, struct s3api_named_parts *out_parts,
                                       struct zt_error *error)
{
    struct reading reading = {.parts = out_parts};
    enum zt_status status;

    *out_parts = (struct s3api_named_parts){.count = 0};
    status = xml_read(document, visit, &reading, error);
    if (reading.is_out_of_memory)
        return zt_fail_memory(error, "a list of parts");
    if (reading.is_unordered)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "the parts must be listed in the order of their numbers");
    if (status == ZT_OK && (!reading.has_root || out_parts->count == 0))
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "the list names no part");
    return status;
}

void s3api_named_parts_free(struct s3api_named_parts *parts)
{
    free(parts->parts);
    *parts = (struct s3api_named_parts){.count = 0};
}
