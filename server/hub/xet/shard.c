#include "hub/xet/shard.h"

#include <assert.h>
#include <string.h>

#include "base/little_endian.h"

#define HEADER_BYTES     48
#define VERSION          2
#define HAS_VERIFICATION (UINT32_C(1) << 31)
#define HAS_SHA256       (UINT32_C(1) << 30)
#define HASH_BYTES       32

static const uint8_t header_tag[32] = {
    'H', 'F', 'R', 'e', 'p', 'o',  'M', 'e',  't',  'a',  'D',  'a',  't',  'a',  0,    'U',
    'i', 'g', 'E', 'j', '{', 0x81, 'W', 0x83, 0xa5, 0xbd, 0xd9, 0x5c, 0xcd, 0xd1, 0x4a, 0xa9,
};

enum zt_status xet_shard_open(struct xet_shard *shard, struct zt_source *source, uint64_t offset,
                              uint64_t length, struct zt_error *error)
{
    uint8_t header[HEADER_BYTES];
    enum zt_status status;

    if (length < HEADER_BYTES)
        return zt_fail(error, ZT_INVALID, NULL, 0, "the shard is shorter than its header");
    status = zt_source_read_at(source, offset, header, sizeof(header), error);
    if (status != ZT_OK)
        return status;
    if (memcmp(header, header_tag, sizeof(header_tag)) != 0)
        return zt_fail(error, ZT_INVALID, NULL, 0, "this is not a shard");
    if (zt_load_le64(header + sizeof(header_tag)) != VERSION)
        return zt_fail(error, ZT_INVALID, NULL, sizeof(header_tag),
                       "the shard is of an unknown version");
    shard->source = source;
    shard->offset = offset + HEADER_BYTES;
    shard->count = (length - HEADER_BYTES) / XET_SHARD_RECORD_BYTES;
    shard->first = 0;
    shard->window_count = 0;
    return ZT_OK;
}

static uint64_t place_of(uint64_t record)
{
    return HEADER_BYTES + record * XET_SHARD_RECORD_BYTES;
}

/* *out_record is valid until the next call. */
static enum zt_status read_record(struct xet_shard *shard, uint64_t record,
                                  const uint8_t **out_record, struct zt_error *error)
{
    if (record >= shard->count)
        return zt_fail(error, ZT_INVALID, NULL, place_of(shard->count),
                       "the shard ends within the list of its files");
    if (record < shard->first || record - shard->first >= shard->window_count) {
        const uint64_t left = shard->count - record;
        const uint32_t count =
            left < XET_SHARD_WINDOW_RECORDS ? (uint32_t)left : (uint32_t)XET_SHARD_WINDOW_RECORDS;
        enum zt_status status;

        shard->window_count = 0;
        status = zt_source_read_at(shard->source, shard->offset + record * XET_SHARD_RECORD_BYTES,
                                   shard->window, (size_t)count * XET_SHARD_RECORD_BYTES, error);
        if (status != ZT_OK)
            return status;
        shard->first = record;
        shard->window_count = count;
    }
    *out_record = shard->window + (record - shard->first) * XET_SHARD_RECORD_BYTES;
    return ZT_OK;
}

static bool is_end(const uint8_t *record)
{
    for (size_t i = 0; i < HASH_BYTES; i++)
        if (record[i] != 0xff)
            return false;
    return true;
}

/* Reads a hash of four numbers, each with its most significant byte first in the text. */
static void read_sha256(const uint8_t *record, uint8_t out_sha256[HASH_BYTES])
{
    for (size_t i = 0; i < HASH_BYTES; i++)
        out_sha256[i] = record[i / 8 * 8 + 7 - i % 8];
}

enum zt_status xet_shard_file_read(struct xet_shard *shard, uint64_t record,
                                   struct xet_shard_file *out_file, struct zt_error *error)
{
    struct xet_shard_file file = {.record = record};
    const uint8_t *bytes;
    uint32_t flags;
    enum zt_status status = read_record(shard, record, &bytes, error);

    if (status != ZT_OK)
        return status;
    if (is_end(bytes)) {
        *out_file = (struct xet_shard_file){.is_end = true};
        return ZT_OK;
    }
    flags = zt_load_le32(bytes + HASH_BYTES);
    file.term_count = zt_load_le32(bytes + HASH_BYTES + 4);
    file.has_sha256 = (flags & HAS_SHA256) != 0;
    file.next = record + 1 + file.term_count;
    if ((flags & HAS_VERIFICATION) != 0)
        file.next += file.term_count;
    if (file.next >= shard->count)
        return zt_fail(error, ZT_INVALID, NULL, place_of(record),
                       "a file has more terms than the shard has records");
    if (file.has_sha256) {
        status = read_record(shard, file.next, &bytes, error);
        if (status != ZT_OK)
            return status;
        read_sha256(bytes, file.sha256);
        file.next++;
    }
    *out_file = file;
    return ZT_OK;
}

enum zt_status xet_shard_term_read(struct xet_shard *shard, const struct xet_shard_file *file,
                                   uint32_t index, struct xet_shard_term *out_term,
                                   struct zt_error *error)
{
    const uint64_t record = file->record + 1 + index;
    struct xet_shard_term term;
    const uint8_t *bytes;
    enum zt_status status;

    assert(index < file->term_count);
    status = read_record(shard, record, &bytes, error);
    if (status != ZT_OK)
        return status;
    memcpy(term.xorb, bytes, HASH_BYTES);
    term.bytes = zt_load_le32(bytes + HASH_BYTES + 4);
    term.first = zt_load_le32(bytes + HASH_BYTES + 8);
    term.end = zt_load_le32(bytes + HASH_BYTES + 12);
    if (term.first >= term.end)
        return zt_fail(error, ZT_INVALID, NULL, place_of(record), "a term has no chunks");
    *out_term = term;
    return ZT_OK;
}
