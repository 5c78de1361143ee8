/* aws-chunked: every form that clients send, in pieces that end anywhere, and what is refused. */
#include "tests.h"

#include <inttypes.h>
#include <stdio.h>

#include "http/fields/aws_chunked.h"

/* What was decoded, as text: "(size,signature)" at a chunk, its data, "." at its end, "name=value;"
 * for a field, "!" for malformed, "$" if the body is over. */
struct record {
    char text[4096];
    size_t length;
};

static void add(struct record *record, struct zt_text text)
{
    assert_true(record->length + text.length < sizeof(record->text));
    if (text.length > 0)
        memcpy(record->text + record->length, text.bytes, text.length);
    record->length += text.length;
    record->text[record->length] = '\0';
}

static void add_event(struct record *record, enum aws_chunked_event event,
                      const struct aws_chunked_part *part)
{
    char number[32];

    switch (event) {
    case AWS_CHUNKED_CHUNK:
        snprintf(number, sizeof(number), "(%" PRIu64, part->size);
        add(record, zt_text_from(number));
        add(record, zt_text_from(part->signature.length > 0 ? "," : ""));
        add(record, part->signature);
        add(record, zt_text_from(")"));
        break;
    case AWS_CHUNKED_DATA:
        add(record, part->text);
        break;
    case AWS_CHUNKED_COMPLETE:
        add(record, zt_text_from("."));
        break;
    case AWS_CHUNKED_FIELD:
        add(record, part->name);
        add(record, zt_text_from("="));
        add(record, part->text);
        add(record, zt_text_from(";"));
        break;
    case AWS_CHUNKED_MALFORMED:
        add(record, zt_text_from("!"));
        break;
    case AWS_CHUNKED_MORE:
        break;
    }
}

static enum aws_chunked_event take(struct aws_chunked *decoder, struct record *record,
                                   struct zt_text piece)
{
    struct aws_chunked_part part;
    enum aws_chunked_event event;

    do {
        event = aws_chunked_next(decoder, &piece, &part);
        add_event(record, event, &part);
    } while (event != AWS_CHUNKED_MORE && event != AWS_CHUNKED_MALFORMED);
    assert_true(event == AWS_CHUNKED_MALFORMED || piece.length == 0);
    return event;
}

/* The first cut bytes in one piece, the others in steps. */
static void decode(const char *text, size_t cut, bool is_signed, size_t step, struct record *record)
{
    const size_t length = strlen(text);
    struct aws_chunked decoder;
    enum aws_chunked_event event;

    record->length = 0;
    record->text[0] = '\0';
    aws_chunked_begin(&decoder, is_signed);
    event = take(&decoder, record, (struct zt_text){text, cut});
    for (size_t at = cut; at < length && event != AWS_CHUNKED_MALFORMED; at += step)
        event = take(&decoder, record,
                     (struct zt_text){text + at, step < length - at ? step : length - at});
    assert_true((event == AWS_CHUNKED_MALFORMED) == (decoder.why != NULL));
    if (aws_chunked_is_over(&decoder))
        add(record, zt_text_from("$"));
}

static void assert_decodes_as(const char *text, bool is_signed, const char *expected)
{
    struct record record;

    for (size_t cut = 0; cut <= strlen(text); cut++)
        for (unsigned i = 0; i < 2; i++) {
            decode(text, cut, is_signed, i == 0 ? 1 : sizeof(record.text), &record);
            assert_string_equal(record.text, expected);
        }
}

TEST(every_form_that_clients_send_is_decoded)
{
    static const struct {
        const char *text;
        bool is_signed;
        const char *expected;
    } forms[] = {
        /* botocore over TLS */
        {"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", false,
         "(5)hello.(0).x-amz-checksum-crc32=AAAAAA==;$"},
        /* older SDKs, signed */
        {"a;chunk-signature=ab12\r\n0123456789\r\n0;chunk-signature=cd34\r\n\r\n", false,
         "(10,ab12)0123456789.(0,cd34).$"},
        {"1;chunk-signature=1\r\nx\r\n0;chunk-signature=2\r\nX-Amz-Checksum-Crc32c: AQ \r\n"
         "x-amz-trailer-signature:ef\r\n\r\n",
         true, "(1,1)x.(0,2).x-amz-checksum-crc32c=AQ;x-amz-trailer-signature=ef;$"},
        /* minio-go: LF alone, and an empty line before the signature or after the end */
        {"1;chunk-signature=1\r\nx\r\n0;chunk-signature=2\r\na:b\n\r\n"
         "x-amz-trailer-signature:ef\r\n\r\n",
         true, "(1,1)x.(0,2).a=b;x-amz-trailer-signature=ef;$"},
        {"1\r\nx\r\n0\r\na:b\n\r\n\r\n", false, "(1)x.(0).a=b;$"},
        /* nothing, and several chunks */
        {"0\r\n\r\n", false, "(0).$"},
        {"1\r\n\r\r\n2\r\n\n\n\r\n0\r\n\r\n", false, "(1)\r.(2)\n\n.(0).$"},
        {"0A ;x=y;chunk-signature=z\r\n0123456789\r\n0\r\n\r\n", false, "(10,z)0123456789.(0).$"},
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        assert_decodes_as(forms[i].text, forms[i].is_signed, forms[i].expected);
}

TEST(what_is_no_aws_chunked_is_refused_at_every_split)
{
    static const struct {
        const char *text;
        const char *expected;
    } forms[] = {
        {"\r\n", "!"},
        {"-1\r\n", "!"},
        {"0x5\r\nhello", "!"},
        {"g\r\n", "!"},
        {";chunk-signature=1\r\n", "!"},
        {"1000000000000000\r\n", "!"}, /* 16 digits */
        {"2\r\nabc\r\n", "(2)ab!"},
        {"0\r\nname\r\n\r\n", "(0).!"},
        {"0\r\n:value\r\n\r\n", "(0).!"},
        {"0\r\na b:value\r\n\r\n", "(0).!"},
        {"0\r\na:v\x01w\r\n\r\n", "(0).!"},
        {"0\r\n\r\nmore\r\n", "(0).!"},
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        assert_decodes_as(forms[i].text, false, forms[i].expected);
}

TEST(a_body_that_ends_early_is_not_over)
{
    static const char text[] = "3\r\nabc\r\n0\r\na:b\r\n\r\n";
    struct record record;

    for (size_t length = 0; length + 1 < sizeof(text); length++) {
        char cut[sizeof(text)] = "";

        memcpy(cut, text, length);
        decode(cut, 0, false, sizeof(record.text), &record);
        assert_null(strchr(record.text, '$'));
    }
    /* Nor is one that promised a signature. */
    decode("0\r\na:b\r\n\r\n", 0, true, sizeof(record.text), &record);
    assert_string_equal(record.text, "(0).a=b;");
}

TEST(lines_and_fields_have_a_bound)
{
    static char text[AWS_CHUNKED_LINE_MAX + 64];
    struct aws_chunked decoder;
    struct record record = {.length = 0};

    /* Without an end of line, the decoder must not wait for ever. */
    memset(text, '0', sizeof(text));
    aws_chunked_begin(&decoder, false);
    assert_int_equal(take(&decoder, &record, (struct zt_text){text, sizeof(text)}),
                     AWS_CHUNKED_MALFORMED);

    record.length = 0;
    aws_chunked_begin(&decoder, false);
    take(&decoder, &record, zt_text_from("0\r\n"));
    for (unsigned i = 0; i < AWS_CHUNKED_FIELDS_MAX; i++)
        assert_int_equal(take(&decoder, &record, zt_text_from("a:b\r\n")), AWS_CHUNKED_MORE);
    assert_int_equal(take(&decoder, &record, zt_text_from("a:b\r\n")), AWS_CHUNKED_MALFORMED);
}

TEST(the_bytes_of_a_chunk_are_not_copied)
{
    static const char text[] = "3\r\nabc\r\n";
    struct zt_text piece = zt_text_from(text);
    struct aws_chunked decoder;
    struct aws_chunked_part part;

    aws_chunked_begin(&decoder, false);
    assert_int_equal(aws_chunked_next(&decoder, &piece, &part), AWS_CHUNKED_CHUNK);
    assert_int_equal(aws_chunked_next(&decoder, &piece, &part), AWS_CHUNKED_DATA);
    assert_ptr_equal(part.text.bytes, text + 3);
}
