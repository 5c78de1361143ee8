/* Signatures against those that AWS has published for its test suite and for S3. */
#include "tests.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "input/aws_signature.h"
#include "remote/sign.h"

/* --- credentials, as a test sets them --- */

struct credentials {
    struct credential credential;
    bool is_available;
};

bool credentials_get(struct credentials *credentials, struct credential *out_credential)
{
    *out_credential = credentials->credential;
    return credentials->is_available;
}

bool credentials_refused(struct credentials *credentials)
{
    return credentials->is_available;
}

static struct credentials suite = {
    {.key = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}, true};
static struct credentials example = {
    {.key = "AKIAIOSFODNN7EXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}, true};

/* 2015-08-30 12:36:00 */
#define SUITE_S 1440938160
/* 2013-05-24 00:00:00 */
#define EXAMPLE_S 1369353600

static void exchange_of(struct remote_exchange *exchange, const char *method, const char *path,
                        const char *query)
{
    remote_exchange_init(exchange);
    exchange->method = method;
    exchange->path = path;
    exchange->query = query;
}

static void assert_ends_with(const char *text, const char *end)
{
    assert_true(strlen(text) > strlen(end));
    assert_string_equal(text + strlen(text) - strlen(end), end);
}

/* --- the test suite of version 4 --- */

static void assert_suite(const char *method, const char *path, const char *query,
                         const char *signature)
{
    struct signer *signer = signer_new(&suite, "us-east-1", "service");
    struct remote_exchange exchange;
    struct signed_fields fields;

    exchange_of(&exchange, method, path, query);
    assert_true(signer_sign(signer, &exchange, "example.amazonaws.com", SUITE_S, &fields));
    assert_string_equal(fields.date, "20150830T123600Z");
    assert_string_equal(fields.content_sha256, "");
    assert_string_equal(fields.token, "");
    assert_memory_equal(fields.authorization,
                        "AWS4-HMAC-SHA256 "
                        "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                        "SignedHeaders=host;x-amz-date, Signature=",
                        121);
    assert_ends_with(fields.authorization, signature);
    signer_free(signer);
}

TEST(suite_is_signed_as_published)
{
    /* get-vanilla, get-vanilla-query, post-vanilla */
    assert_suite("GET", "/", NULL,
                 "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    assert_suite("GET", "/", "",
                 "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    assert_suite("POST", "/", NULL,
                 "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
    /* post-vanilla-query */
    assert_suite("POST", "/", "Param1=value1",
                 "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11");
    /* get-vanilla-empty-query-key */
    assert_suite("GET", "/", "Param1=value1",
                 "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb");
    /* get-vanilla-query-order-key-case, whose parts come in the wrong order */
    assert_suite("GET", "/", "Param2=value2&Param1=value1",
                 "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
    /* Names are compared, not names with what follows: '-' comes before '='. By botocore. */
    assert_suite("GET", "/", "a-b=1&a=2",
                 "3195c10f6c70f9392a7764f6f83099349c32cf39a12222f775fca70b6227a5a4");
    /* get-utf8 */
    assert_suite("GET", "/%E1%88%B4", NULL,
                 "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
}

/* --- the examples of S3 --- */

static void assert_example(struct remote_exchange *exchange, const char *names,
                           const char *signature)
{
    struct signer *signer = signer_new(&example, "us-east-1", "s3");
    struct signed_fields fields;
    char expected[SIGN_AUTHORIZATION_SIZE];

    snprintf(expected, sizeof(expected),
             "AWS4-HMAC-SHA256 "
             "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
             "SignedHeaders=%s, Signature=%s",
             names, signature);
    exchange->body_sha256 = AWS_EMPTY_SHA256;
    assert_true(
        signer_sign(signer, exchange, "examplebucket.s3.amazonaws.com", EXAMPLE_S, &fields));
    assert_string_equal(fields.authorization, expected);
    assert_string_equal(fields.content_sha256, AWS_EMPTY_SHA256);
    signer_free(signer);
}

TEST(examples_of_s3_are_signed_as_published)
{
    struct remote_exchange exchange;

    exchange_of(&exchange, "GET", "/test.txt", NULL);
    exchange.has_range = true;
    exchange.range_last = 9;
    /* No part of the example, nor signed. */
    exchange.fields[0] = (struct remote_field){"content-type", "text/plain"};
    exchange.field_count = 1;
    assert_example(&exchange, "host;range;x-amz-content-sha256;x-amz-date",
                   "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    exchange_of(&exchange, "GET", "/", "lifecycle");
    assert_example(&exchange, "host;x-amz-content-sha256;x-amz-date",
                   "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    exchange_of(&exchange, "GET", "/", "max-keys=2&prefix=J");
    assert_example(&exchange, "host;x-amz-content-sha256;x-amz-date",
                   "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* --- what is signed --- */

static void sign_for_s3(struct remote_exchange *exchange, struct signed_fields *out_fields)
{
    struct signer *signer = signer_new(&example, "us-east-1", "s3");

    assert_true(signer_sign(signer, exchange, "h", EXAMPLE_S, out_fields));
    signer_free(signer);
}

TEST(conditions_and_all_of_amz_are_signed_in_order)
{
    struct remote_exchange exchange;
    struct signed_fields fields;

    exchange_of(&exchange, "PUT", "/", NULL);
    exchange.fields[0] = (struct remote_field){"x-amz-meta-b", "  two   words "};
    exchange.fields[1] = (struct remote_field){"x-amz-meta", "1"};
    exchange.fields[2] = (struct remote_field){"if-none-match", "*"};
    exchange.fields[3] = (struct remote_field){"cache-control", "no-cache"};
    exchange.field_count = 4;
    sign_for_s3(&exchange, &fields);
    assert_non_null(strstr(fields.authorization,
                           "SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date;"
                           "x-amz-meta;x-amz-meta-b, "));
}

TEST(blanks_in_a_value_count_once)
{
    struct remote_exchange exchange;
    struct signed_fields one;
    struct signed_fields other;

    exchange_of(&exchange, "PUT", "/", NULL);
    exchange.fields[0] = (struct remote_field){"x-amz-meta-b", " two \t  words "};
    exchange.field_count = 1;
    sign_for_s3(&exchange, &one);
    exchange.fields[0].value = "two words";
    sign_for_s3(&exchange, &other);
    assert_string_equal(one.authorization, other.authorization);
    exchange.fields[0].value = "twowords";
    sign_for_s3(&exchange, &other);
    assert_string_not_equal(one.authorization, other.authorization);
}

TEST(bodies_are_signed_as_far_as_they_are_known)
{
    struct remote_exchange exchange;
    struct signed_fields fields;

    exchange_of(&exchange, "GET", "/", NULL);
    sign_for_s3(&exchange, &fields);
    assert_string_equal(fields.content_sha256, "UNSIGNED-PAYLOAD");
    exchange.method = "DELETE";
    sign_for_s3(&exchange, &fields);
    assert_string_equal(fields.content_sha256, AWS_EMPTY_SHA256);
    exchange.method = "PUT";
    exchange.body = REMOTE_BODY_MEMORY;
    exchange.body_bytes = "hello";
    exchange.body_length = 5;
    sign_for_s3(&exchange, &fields);
    assert_string_equal(fields.content_sha256,
                        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    exchange.body = REMOTE_BODY_FILE;
    sign_for_s3(&exchange, &fields);
    assert_string_equal(fields.content_sha256, "UNSIGNED-PAYLOAD");
    exchange.body_sha256 = AWS_EMPTY_SHA256;
    sign_for_s3(&exchange, &fields);
    assert_string_equal(fields.content_sha256, AWS_EMPTY_SHA256);
}

TEST(token_is_sent_and_signed)
{
    struct credentials temporary = {{.key = "K", .secret = "S", .token = "T"}, true};
    struct signer *signer = signer_new(&temporary, "r", "s3");
    struct remote_exchange exchange;
    struct signed_fields fields;
    uint64_t number;

    exchange_of(&exchange, "GET", "/", NULL);
    assert_true(signer_sign(signer, &exchange, "h", EXAMPLE_S, &fields));
    assert_string_equal(fields.token, "T");
    assert_non_null(strstr(fields.authorization, ";x-amz-security-token,"));
    number = fields.credential;
    strcpy(temporary.credential.token, "U");
    assert_true(signer_sign(signer, &exchange, "h", EXAMPLE_S, &fields));
    assert_true(fields.credential != number);
    signer_free(signer);
}

TEST(longest_credentials_fit)
{
    struct credentials longest = {.is_available = true};
    struct signer *signer = signer_new(&longest, "r", "s3");
    struct remote_exchange exchange;
    struct signed_fields fields;

    memset(longest.credential.key, 'k', CREDENTIALS_KEY_SIZE - 1);
    memset(longest.credential.secret, 's', CREDENTIALS_SECRET_SIZE - 1);
    memset(longest.credential.token, 't', CREDENTIALS_TOKEN_SIZE - 1);
    exchange_of(&exchange, "GET", "/", NULL);
    assert_true(signer_sign(signer, &exchange, "h", EXAMPLE_S, &fields));
    assert_int_equal(strlen(fields.token), CREDENTIALS_TOKEN_SIZE - 1);
    signer_free(signer);
}

TEST(anonymous_requests_are_not_signed)
{
    struct credentials nobody = {.is_available = true};
    struct signer *signer = signer_new(&nobody, "r", "s3");
    struct remote_exchange exchange;
    struct signed_fields fields;

    exchange_of(&exchange, "GET", "/", NULL);
    assert_true(signer_sign(signer, &exchange, "h", EXAMPLE_S, &fields));
    assert_string_equal(fields.authorization, "");
    nobody.is_available = false;
    assert_false(signer_sign(signer, &exchange, "h", EXAMPLE_S, &fields));
    assert_false(signer_note_refusal(signer));
    signer_free(signer);
}

TEST(too_long_a_query_is_not_signed)
{
    struct signer *signer = signer_new(&example, "r", "s3");
    struct remote_exchange exchange;
    struct signed_fields fields;
    char query[4 * AWS_PARAMETERS_MAX + 8] = "";

    for (unsigned i = 0; i <= AWS_PARAMETERS_MAX; i++)
        strcat(query, "a=b&");
    exchange_of(&exchange, "GET", "/", query);
    assert_false(signer_sign(signer, &exchange, "h", EXAMPLE_S, &fields));
    signer_free(signer);
}

/* --- the clock --- */

TEST(clock_of_the_service_is_kept_if_it_differs)
{
    struct signer *signer = signer_new(&example, "r", "s3");
    const int64_t now_s = (int64_t)time(NULL);
    struct remote_exchange exchange;
    struct signed_fields fields;

    exchange_of(&exchange, "GET", "/", NULL);
    assert_false(signer_adjust_clock(signer, "", "20380101T000000Z"));
    assert_false(signer_adjust_clock(signer, "yesterday", "20380101T000000Z"));
    assert_false(signer_adjust_clock(signer, "Fri, 01 Jan 2038 00:04:00 GMT", "20380101T000000Z"));
    assert_true(signer_adjust_clock(signer, "Fri, 01 Jan 2038 00:00:00 GMT", "20371231T235000Z"));
    assert_true(signer_sign(signer, &exchange, "h", now_s, &fields));
    assert_memory_equal(fields.date, "20380101T0000", 13);
    /* Another request that was signed before that is signed again as well. */
    assert_true(signer_adjust_clock(signer, "Fri, 01 Jan 2038 00:00:00 GMT", "20261231T235000Z"));
    assert_false(signer_adjust_clock(signer, "Fri, 01 Jan 2038 00:00:00 GMT", fields.date));
    signer_free(signer);
}

TEST(clock_that_is_corrected_is_told_of_once)
{
    struct signer *signer = signer_new(&example, "r", "s3");
    char written[1024];
    const char *line;
    long offset_s = 0;
    FILE *file = tmpfile();
    const int saved = dup(STDERR_FILENO);

    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    signer_adjust_clock(signer, "Fri, 01 Jan 2038 00:00:00 GMT", "20380101T000100Z");
    for (unsigned i = 0; i < 2; i++)
        signer_adjust_clock(signer, "Fri, 01 Jan 2038 00:00:00 GMT", "20261231T235000Z");
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    written[fread(written, 1, sizeof(written) - 1, file)] = '\0';
    fclose(file);
    line = strstr(written, " warn the clock of this machine is ");
    assert_non_null(line);
    assert_null(strstr(strchr(line, '\n'), "clock"));
    assert_int_equal(sscanf(line, " warn the clock of this machine is %ld s behind", &offset_s), 1);
    assert_in_range(offset_s, 2145916800 - (long)time(NULL) - 60,
                    2145916800 - (long)time(NULL) + 60);
    signer_free(signer);
}
