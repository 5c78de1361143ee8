/* Shards of xet: the files and terms that they list, and what is no shard. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "hub/xet/shard.h"

#define RECORDS_MAX 4096

struct records {
    size_t count; /* the header included */
    uint8_t bytes[RECORDS_MAX][XET_SHARD_RECORD_BYTES];
};

static void put(struct records *records, uint8_t hash, const uint32_t numbers[4])
{
    uint8_t *record = records->bytes[records->count++];

    memset(record, hash, 32);
    for (size_t i = 0; i < 4; i++)
        zt_store_le32(record + 32 + 4 * i, numbers[i]);
}

static void put_header(struct records *records)
{
    static const uint8_t tag[32] = "HFRepoMetaData\0UigEj{\x81W\x83\xa5\xbd\xd9\\\xcd\xd1J\xa9";

    records->count = 0;
    put(records, 0, (const uint32_t[4]){2, 0, 0, 0});
    memcpy(records->bytes[0], tag, 32);
}

static void put_file(struct records *records, uint32_t flags, uint32_t terms)
{
    put(records, 7, (const uint32_t[4]){flags, terms, 0, 0});
    for (uint32_t i = 0; i < terms; i++)
        put(records, (uint8_t)i, (const uint32_t[4]){0, 100 + i, i, i + 1});
    for (uint32_t i = 0; i < terms && (flags >> 31) != 0; i++)
        put(records, 9, (const uint32_t[4]){0, 0, 0, 0});
    if ((flags >> 30 & 1) != 0) {
        put(records, 0, (const uint32_t[4]){0, 0, 0, 0});
        for (uint8_t i = 0; i < 32; i++)
            records->bytes[records->count - 1][i] = i;
    }
}

static void put_end(struct records *records)
{
    put(records, 0xff, (const uint32_t[4]){0, 0, 0, 0});
}

/* Both are freed by the caller. */
struct opened {
    struct xet_shard *shard;
    struct zt_source *source;
};

static enum zt_status open_bytes(const struct records *records, size_t length,
                                 struct opened *out_opened)
{
    struct zt_error error;

    out_opened->shard = malloc(sizeof(*out_opened->shard));
    assert_non_null(out_opened->shard);
    assert_ok(zt_source_from_memory(records->bytes, length, &out_opened->source, NULL));
    return xet_shard_open(out_opened->shard, out_opened->source, 0, length, &error);
}

static struct opened open_all(const struct records *records)
{
    struct opened opened;

    assert_ok(open_bytes(records, records->count * XET_SHARD_RECORD_BYTES, &opened));
    return opened;
}

static void close_all(const struct opened *opened)
{
    zt_source_close(opened->source);
    free(opened->shard);
}

TEST(files_and_terms_are_listed)
{
    static struct records records;
    struct xet_shard_file file;
    struct xet_shard_term term;
    struct opened opened;

    put_header(&records);
    put_file(&records, UINT32_C(3) << 30, 3);
    put_file(&records, 0, 1);
    put_file(&records, UINT32_C(1) << 30, 0);
    put_end(&records);
    put(&records, 1, (const uint32_t[4]){1, 2, 3, 4}); /* what follows does not matter */
    opened = open_all(&records);
    assert_ok(xet_shard_file_read(opened.shard, 0, &file, NULL));
    assert_false(file.is_end);
    assert_int_equal(file.term_count, 3);
    assert_true(file.has_sha256);
    assert_int_equal(file.sha256[0], 7);
    assert_int_equal(file.sha256[7], 0);
    assert_int_equal(file.sha256[31], 24);
    assert_ok(xet_shard_term_read(opened.shard, &file, 2, &term, NULL));
    assert_int_equal(term.xorb[31], 2);
    assert_int_equal(term.bytes, 102);
    assert_int_equal(term.first, 2);
    assert_int_equal(term.end, 3);
    assert_ok(xet_shard_file_read(opened.shard, file.next, &file, NULL));
    assert_int_equal(file.term_count, 1);
    assert_false(file.has_sha256);
    assert_ok(xet_shard_file_read(opened.shard, file.next, &file, NULL));
    assert_int_equal(file.term_count, 0);
    assert_true(file.has_sha256);
    assert_ok(xet_shard_file_read(opened.shard, file.next, &file, NULL));
    assert_true(file.is_end);
    close_all(&opened);
}

/* More records than are read at a time, asked for in both directions. */
TEST(terms_are_found_in_any_order)
{
    static struct records records;
    struct xet_shard_file file;
    struct xet_shard_term term;
    struct opened opened;

    put_header(&records);
    put_file(&records, 0, 3000);
    put_end(&records);
    opened = open_all(&records);
    assert_ok(xet_shard_file_read(opened.shard, 0, &file, NULL));
    for (uint32_t i = 0; i < 6000; i++) {
        const uint32_t index = i < 3000 ? i : 5999 - i;

        assert_ok(xet_shard_term_read(opened.shard, &file, index, &term, NULL));
        assert_int_equal(term.first, index);
    }
    close_all(&opened);
}

TEST(every_prefix_ends_within_the_list)
{
    static struct records records;
    size_t whole;

    put_header(&records);
    put_file(&records, UINT32_C(3) << 30, 2);
    put_end(&records);
    whole = records.count * XET_SHARD_RECORD_BYTES;
    for (size_t length = 0; length < whole; length++) {
        struct xet_shard_file file = {.next = 0};
        struct opened opened;
        enum zt_status status = open_bytes(&records, length, &opened);

        assert_int_equal(status, length < 48 ? ZT_INVALID : ZT_OK);
        if (status == ZT_OK) {
            status = xet_shard_file_read(opened.shard, 0, &file, NULL);
            if (status == ZT_OK)
                status = xet_shard_file_read(opened.shard, file.next, &file, NULL);
            assert_int_equal(status, ZT_INVALID);
        }
        close_all(&opened);
    }
}

TEST(counts_beyond_the_shard_are_refused)
{
    static const uint32_t counts[] = {3, 1000, UINT32_MAX};
    static struct records records;

    for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(*counts); i++) {
        struct xet_shard_file file;
        struct opened opened;

        put_header(&records);
        put_file(&records, 0, 2);
        put_end(&records);
        zt_store_le32(records.bytes[1] + 36, counts[i / 2]);
        zt_store_le32(records.bytes[1] + 32, i % 2 == 0 ? 0 : UINT32_C(3) << 30);
        opened = open_all(&records);
        assert_int_equal(xet_shard_file_read(opened.shard, 0, &file, NULL), ZT_INVALID);
        close_all(&opened);
    }
}

TEST(term_without_chunks_is_refused)
{
    static struct records records;
    struct xet_shard_file file;
    struct xet_shard_term term;
    struct opened opened;

    put_header(&records);
    put_file(&records, 0, 1);
    put_end(&records);
    zt_store_le32(records.bytes[2] + 44, 0);
    opened = open_all(&records);
    assert_ok(xet_shard_file_read(opened.shard, 0, &file, NULL));
    assert_int_equal(xet_shard_term_read(opened.shard, &file, 0, &term, NULL), ZT_INVALID);
    close_all(&opened);
}

TEST(other_headers_are_refused)
{
    static struct records records;
    struct opened opened;

    for (size_t at = 0; at < 40; at++) {
        put_header(&records);
        put_end(&records);
        records.bytes[0][at] ^= 1;
        assert_int_equal(open_bytes(&records, 96, &opened), ZT_INVALID);
        close_all(&opened);
    }
}
