/* Checksums of files that were uploaded in parts. */
#include "tests.h"

#include <string.h>

#include "s3/write/s3api_whole_checksum.h"

#define LENGTH 1000

static uint8_t bytes[LENGTH];

/* Three parts: empty, short, long. */
static const size_t lengths[] = {1, 0, LENGTH - 1};
#define COUNT (sizeof(lengths) / sizeof(lengths[0]))

static struct zt_digest digest_of(enum checksum checksum, const void *data, size_t length)
{
    struct checksums checksums = {.hashers = {NULL}};
    struct zt_digest digest;

    assert_true(checksums_add(&checksums, checksum));
    checksums_update(&checksums, data, length);
    digest = checksums_finish(&checksums, checksum);
    checksums_free(&checksums);
    return digest;
}

static void make_parts(enum checksum checksum, struct s3api_part parts[COUNT])
{
    size_t at = 0;

    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t i = 0; i < COUNT; i++) {
        const struct zt_digest digest = digest_of(checksum, bytes + at, lengths[i]);

        parts[i] = (struct s3api_part){.number = (uint32_t)i + 1, .length = lengths[i]};
        strcpy(parts[i].checksum.algorithm, checksum_name(checksum));
        checksum_write(&digest, parts[i].checksum.value);
        at += lengths[i];
    }
    assert_int_equal(at, LENGTH);
}

TEST(crcs_of_parts_combine_to_that_of_all_bytes)
{
    static const enum checksum crcs[] = {CHECKSUM_CRC32, CHECKSUM_CRC32C, CHECKSUM_CRC64NVME};

    for (size_t i = 0; i < sizeof(crcs) / sizeof(crcs[0]); i++) {
        struct s3api_part parts[COUNT];
        struct zt_digest combined;
        struct zt_digest whole;

        make_parts(crcs[i], parts);
        whole = digest_of(crcs[i], bytes, LENGTH);
        print_message("%s\n", checksum_name(crcs[i]));
        assert_true(s3api_checksum_combine(crcs[i], parts, COUNT, &combined));
        assert_true(zt_digest_equal(&combined, &whole));
        parts[1].checksum.algorithm[0] = '\0';
        assert_false(s3api_checksum_combine(crcs[i], parts, COUNT, &combined));
    }
}

TEST(composite_checksum_is_of_the_parts_checksums)
{
    for (enum checksum checksum = 0; checksum < CHECKSUM_MD5; checksum++) {
        struct s3api_part parts[COUNT];
        uint8_t all[COUNT * 32];
        size_t length = 0;
        char expected[S3API_WHOLE_CHECKSUM_SIZE];
        char text[S3API_WHOLE_CHECKSUM_SIZE];
        struct zt_digest value;

        make_parts(checksum, parts);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(checksum_read(checksum, zt_text_from(parts[i].checksum.value), &value));
            memcpy(all + length, value.bytes, value.length_bytes);
            length += value.length_bytes;
        }
        value = digest_of(checksum, all, length);
        checksum_write(&value, expected);
        strcat(expected, "-3");
        assert_true(s3api_checksum_compose(checksum, parts, COUNT, text));
        assert_string_equal(text, expected);
        parts[2].checksum.value[0] = '\0';
        assert_false(s3api_checksum_compose(checksum, parts, COUNT, text));
    }
}

TEST(hashes_do_not_combine)
{
    struct s3api_part parts[COUNT];
    struct zt_digest value;

    make_parts(CHECKSUM_SHA256, parts);
    assert_false(s3api_checksum_combine(CHECKSUM_SHA256, parts, COUNT, &value));
}
