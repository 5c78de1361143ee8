/* Signed aws-chunked bodies: the two examples that AWS publishes, in pieces of every kind, and with
 * one bit changed. */
#include "tests.h"

#include <stdio.h>

#include "s3/write/s3api_coding.h"

#define DATA_LENGTH 66560u /* in chunks of 64 KiB and 1 KiB */
#define FIRST       65536u

struct body {
    char *text;
    size_t length;
    struct sigv4_body stated;
};

struct decoded {
    size_t data_length;
    size_t others; /* bytes that are not 'a' */
    size_t deliveries;
    char fields[128];
};

static void append(struct body *body, const char *text)
{
    memcpy(body->text + body->length, text, strlen(text));
    body->length += strlen(text);
}

static void append_data(struct body *body, size_t length)
{
    memset(body->text + body->length, 'a', length);
    body->length += length;
    append(body, "\r\n");
}

/* The signatures are of the seed, the two chunks, and the last one. */
static struct body make(enum sigv4_payload payload, const char *const signatures[4],
                        const char *trailer)
{
    static const char secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const struct aws_scope scope = {zt_text_from("20130524"), zt_text_from("us-east-1"),
                                    zt_text_from("s3")};
    struct body body = {.text = malloc(DATA_LENGTH + 4096)};
    char line[160];

    assert_non_null(body.text);
    body.stated.payload = payload;
    body.stated.is_verified = true;
    assert_true(aws_key_derive(zt_text_from(secret), &scope, body.stated.key));
    snprintf(body.stated.seed, sizeof(body.stated.seed), "%s", signatures[0]);
    snprintf(body.stated.date, sizeof(body.stated.date), "20130524T000000Z");
    aws_scope_write(&scope, body.stated.scope);
    snprintf(line, sizeof(line), "10000;chunk-signature=%s\r\n", signatures[1]);
    append(&body, line);
    append_data(&body, FIRST);
    snprintf(line, sizeof(line), "400;chunk-signature=%s\r\n", signatures[2]);
    append(&body, line);
    append_data(&body, DATA_LENGTH - FIRST);
    snprintf(line, sizeof(line), "0;chunk-signature=%s\r\n", signatures[3]);
    append(&body, line);
    append(&body, trailer);
    append(&body, "\r\n");
    return body;
}

static struct body make_chunks(void)
{
    static const char *const signatures[] = {
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"};

    return make(SIGV4_PAYLOAD_CHUNKS, signatures, "");
}

static struct body make_trailer(void)
{
    static const char *const signatures[] = {
        "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"};

    return make(SIGV4_PAYLOAD_CHUNKS_TRAILER, signatures,
                "x-amz-checksum-crc32c:sOO8/Q==\n\r\n"
                "x-amz-trailer-signature:"
                "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n");
}

static bool take_data(void *context, struct zt_text data)
{
    struct decoded *decoded = context;

    for (size_t i = 0; i < data.length; i++)
        decoded->others += data.bytes[i] != 'a';
    decoded->data_length += data.length;
    decoded->deliveries++;
    return true;
}

static bool take_field(void *context, struct zt_text name, struct zt_text value)
{
    struct decoded *decoded = context;

    snprintf(decoded->fields, sizeof(decoded->fields), "%.*s=%.*s", (int)name.length, name.bytes,
             (int)value.length, value.bytes);
    return true;
}

static enum s3api_coding_result decode(const struct body *body, size_t step,
                                       struct decoded *decoded, bool *out_is_over)
{
    const struct s3api_coding_outputs outputs = {take_data, take_field, decoded};
    struct s3api_coding *coding = s3api_coding_new(&body->stated);
    enum s3api_coding_result result = S3API_CODING_SOUND;

    assert_non_null(coding);
    *decoded = (struct decoded){.data_length = 0};
    for (size_t at = 0; at < body->length && result == S3API_CODING_SOUND; at += step) {
        const size_t left = body->length - at;

        result = s3api_coding_take(
            coding, (struct zt_text){body->text + at, left < step ? left : step}, &outputs);
    }
    *out_is_over = s3api_coding_is_over(coding);
    s3api_coding_free(coding);
    return result;
}

static void assert_is_decoded(struct body body, const char *fields)
{
    static const size_t steps[] = {1, 7, 4095, 65536, 100000};
    struct decoded decoded;
    bool is_over;

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        assert_int_equal(decode(&body, steps[i], &decoded, &is_over), S3API_CODING_SOUND);
        assert_true(is_over);
        assert_true(decoded.data_length == DATA_LENGTH && decoded.others == 0);
        assert_string_equal(decoded.fields, fields);
    }
    free(body.text);
}

TEST(published_examples_are_decoded_and_verified)
{
    assert_is_decoded(make_chunks(), "");
    assert_is_decoded(make_trailer(), "x-amz-checksum-crc32c=sOO8/Q==");
}

/* Every byte of the head and of the trailer, and some of the data. */
static void assert_no_bit_can_change(struct body body)
{
    const size_t head = 120;
    struct decoded decoded;
    bool is_over;

    for (size_t at = 0; at < body.length; at += at < head || at + 600 > body.length ? 1 : 9999) {
        const char right = body.text[at];

        body.text[at] ^= 1;
        if (decode(&body, 65536, &decoded, &is_over) == S3API_CODING_SOUND)
            assert_false(is_over);
        body.text[at] = right;
    }
    free(body.text);
}

TEST(a_change_of_any_bit_is_refused)
{
    assert_no_bit_can_change(make_chunks());
    assert_no_bit_can_change(make_trailer());
}

TEST(chunks_are_not_verified_without_a_verified_request)
{
    struct body body = make_trailer();
    struct decoded decoded;
    bool is_over;

    body.stated.is_verified = false;
    body.stated.seed[0] = 'x';
    assert_int_equal(decode(&body, 65536, &decoded, &is_over), S3API_CODING_SOUND);
    assert_true(is_over);
    free(body.text);
}

TEST(tiny_chunks_are_joined)
{
    static const struct sigv4_body unsigned_body = {.payload = SIGV4_PAYLOAD_UNSIGNED_TRAILER};
    struct body body = {.text = malloc(8000), .stated = unsigned_body};
    struct decoded decoded;
    bool is_over;

    assert_non_null(body.text);
    for (unsigned i = 0; i < 1000; i++)
        append(&body, "1\r\na\r\n");
    append(&body, "0\r\n\r\n");
    assert_int_equal(decode(&body, body.length, &decoded, &is_over), S3API_CODING_SOUND);
    assert_true(is_over && decoded.data_length == 1000 && decoded.deliveries == 1);
    free(body.text);
}
