/* The lines that say which parts of a multipart upload have arrived. */
#include "tests.h"

#include <string.h>

#include "s3/write/s3api_records.h"

static const struct s3api_record records[] = {
    {.kind = S3API_RECORD_PART, .part = {.number = 1, .length = 8, .modified = 5}, .unit = 8},
    {.kind = S3API_RECORD_PART,
     .part = {.number = S3API_PARTS_MAX,
              .version = UINT32_MAX,
              .length = INT64_MAX,
              .xxh3 = UINT64_MAX,
              .modified = INT64_MAX,
              .checksum = {"CRC64NVME", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}}},
    {.kind = S3API_RECORD_END, .when = 1764500000, .sha256 = {1, 2, 3}, .is_whole = true},
    {.kind = S3API_RECORD_END, .when = 0, .sha256 = {0xff}},
    {.kind = S3API_RECORD_OPEN},
};

static void assert_part_equal(const struct s3api_part *a, const struct s3api_part *b)
{
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->xxh3, b->xxh3);
    assert_int_equal(a->modified, b->modified);
    assert_string_equal(a->checksum.algorithm, b->checksum.algorithm);
    assert_string_equal(a->checksum.value, b->checksum.value);
}

TEST(line_reads_back_as_printed_and_no_prefix_of_it_is_a_line)
{
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        char line[S3API_RECORD_MAX];
        const size_t length = s3api_record_print(&records[i], line);
        struct s3api_record read;

        assert_int_equal(s3api_record_read((struct zt_text){line, length}, &read), length);
        assert_int_equal(read.kind, records[i].kind);
        assert_part_equal(&read.part, &records[i].part);
        assert_int_equal(read.unit, records[i].unit);
        assert_int_equal(read.when, records[i].when);
        assert_int_equal(read.is_whole, records[i].is_whole);
        assert_memory_equal(read.sha256, records[i].sha256, sizeof(read.sha256));
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(s3api_record_read((struct zt_text){line, cut}, &read), 0);
    }
}

TEST(line_that_was_not_printed_is_rejected)
{
    static const char *const lines[] = {
        "\n",
        ".\n",
        "open\n",
        "open . .\n",
        "end 1 00 data .\n",
        "part 0 0 0 8 1 5 8 - - .\n",
        "part 10001 0 0 8 1 5 8 - - .\n",
        "part 1 4294967296 0 8 1 5 8 - - .\n",
        "part 1 0 9223372036854775807 1 1 5 8 - - .\n",
        "part 1 0 0 9223372036854775808 1 5 8 - - .\n",
        "part 1 0 0 8 1 5 9223372036854775807 - - .\n",
        "part 1 0 0 8 1 5 8 -  .\n",
        "part 1 0 0 8 1 5 8 A-LONG-ALGORITHM - .\n",
        "part 1 0 0 8 1 5 8 - - - .\n",
        "part -1 0 0 8 1 5 8 - - .\n",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct s3api_record read;

        print_message("%s", lines[i]);
        assert_int_equal(s3api_record_read(zt_text_from(lines[i]), &read), 0);
    }
}
