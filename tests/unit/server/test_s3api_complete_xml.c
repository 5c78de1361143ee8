/* The list of parts with which a client completes a multipart upload. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3/write/s3api_complete_xml.h"

#define OPENING "<CompleteMultipartUpload>"
#define CLOSING "</CompleteMultipartUpload>"
#define PART    "<Part><PartNumber>1</PartNumber><ETag>x</ETag></Part>"

static enum zt_status read_list(const char *document, struct s3api_named_parts *out_parts)
{
    const size_t length = strlen(document);
    /* Exactly as long as the document, so that a sanitizer sees a read past it. */
    char *copy = malloc(length + 1);
    enum zt_status status;

    assert_non_null(copy);
    memcpy(copy, document, length);
    status = s3api_complete_xml_read((struct zt_text){copy, length}, out_parts, NULL);
    free(copy);
    return status;
}

TEST(every_clients_list_is_read)
{
    static const char *const lists[] = {
        /* boto3 */
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><ETag>"
        "\"tag\"</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32><PartNumber>7</PartNumber></"
        "Part>" CLOSING,
        OPENING "<Part><PartNumber>7</PartNumber><ETag>&#34;tag&#34;</ETag>"
                "<ChecksumCRC32>AAAAAA==</ChecksumCRC32><Size>3</Size></Part>" CLOSING,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" OPENING
        "\n  <Part>\n    <ETag>\"tag\"</ETag>\n"
        "<PartNumber> 7 </PartNumber><ChecksumCRC32>AAAAAA==</ChecksumCRC32>\n  </Part>\n" CLOSING
        "\n",
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct s3api_named_parts parts;

        assert_int_equal(read_list(lists[i], &parts), ZT_OK);
        assert_int_equal(parts.count, 1);
        assert_int_equal(parts.parts[0].number, 7);
        assert_string_equal(parts.parts[0].etag, "\"tag\"");
        assert_string_equal(parts.parts[0].checksums[CHECKSUM_CRC32], "AAAAAA==");
        assert_string_equal(parts.parts[0].checksums[CHECKSUM_SHA1], "");
        s3api_named_parts_free(&parts);
    }
}

struct refused {
    const char *document;
    enum zt_status status;
};

static const struct refused refused[] = {
    {"", ZT_INVALID},
    {OPENING, ZT_INVALID},
    {OPENING CLOSING, ZT_INVALID},
    {"<Other>" PART "</Other>", ZT_INVALID},
    {OPENING "<Part/>" CLOSING, ZT_INVALID},
    {OPENING "<Part><ETag>x</ETag></Part>" CLOSING, ZT_INVALID},
    {OPENING "<Part><PartNumber>1</PartNumber></Part>" CLOSING, ZT_INVALID},
    {OPENING "<Part><PartNumber>0</PartNumber><ETag>x</ETag></Part>" CLOSING, ZT_INVALID},
    {OPENING "<Part><PartNumber>-1</PartNumber><ETag>x</ETag></Part>" CLOSING, ZT_INVALID},
    {OPENING "<Part><PartNumber>10001</PartNumber><ETag>x</ETag></Part>" CLOSING, ZT_INVALID},
    {OPENING PART "<Part><PartNumber>2</PartNumber></Part>" CLOSING, ZT_INVALID},
    {OPENING PART PART CLOSING, ZT_ARGUMENT},
    {OPENING "<Part><PartNumber>2</PartNumber><ETag>x</ETag></Part>" PART CLOSING, ZT_ARGUMENT},
    {"<!DOCTYPE a [<!ENTITY b \"c\">]>" OPENING PART CLOSING, ZT_INVALID},
};

TEST(list_that_names_no_part_or_the_wrong_order_is_refused)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct s3api_named_parts parts;

        print_message("%s\n", refused[i].document);
        assert_int_equal(read_list(refused[i].document, &parts), refused[i].status);
        s3api_named_parts_free(&parts);
    }
}

/* Writes a list of that many parts. */
static char *make_list(unsigned count)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    assert_non_null(stream);
    fputs(OPENING, stream);
    for (unsigned number = 1; number <= count; number++)
        fprintf(stream, "<Part><PartNumber>%u</PartNumber><ETag>\"%u\"</ETag></Part>",
                number <= S3API_PARTS_MAX ? number : S3API_PARTS_MAX, number);
    fputs(CLOSING, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

TEST(as_many_parts_are_read_as_there_are_numbers)
{
    struct s3api_named_parts parts;
    char *text = make_list(S3API_PARTS_MAX);

    assert_int_equal(read_list(text, &parts), ZT_OK);
    assert_int_equal(parts.count, S3API_PARTS_MAX);
    assert_string_equal(parts.parts[S3API_PARTS_MAX - 1].etag, "\"10000\"");
    s3api_named_parts_free(&parts);
    free(text);
    text = make_list(S3API_PARTS_MAX + 1);
    assert_int_not_equal(read_list(text, &parts), ZT_OK);
    s3api_named_parts_free(&parts);
    free(text);
}

TEST(long_tag_is_cut_and_equals_none)
{
    char document[4096];
    struct s3api_named_parts parts;
    const struct s3api_part part = {.number = 1};

    snprintf(document, sizeof(document),
             OPENING "<Part><PartNumber>1</PartNumber><ETag>%0*d</ETag></Part>" CLOSING, 2000, 0);
    assert_int_equal(read_list(document, &parts), ZT_OK);
    assert_int_equal(strlen(parts.parts[0].etag), sizeof(parts.parts[0].etag) - 1);
    assert_false(s3api_part_has_etag(&part, zt_text_from(parts.parts[0].etag)));
    s3api_named_parts_free(&parts);
}
