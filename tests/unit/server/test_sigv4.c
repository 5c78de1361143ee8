/* Signatures of S3 clients, made by botocore 1.44 or published by AWS: each is accepted, and not
 * once a byte of the request differs. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "http/fields/sigv4.h"
#include "zt/digest.h"

#define FIELDS_MAX 10
/* 2026-03-04 05:06:07 */
#define NOW_S 1772600767

struct vector {
    const char *name;
    const char *method;
    const char *target;
    struct {
        const char *name;
        const char *value;
    } fields[FIELDS_MAX];
};

static const char secret[] = "s3cr3t/with+signs=";

static const struct vector vectors[] = {
    {"an object",
     "GET",
     "/s3/models/llama/model.safetensors",
     {
         {"Host", "models.example:8080"},
         {"Range", "bytes=0-7"},
         {"If-Match", "\"abc-1\""},
         {"X-Amz-Date", "20260304T050607Z"},
         {"X-Amz-Content-SHA256",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
         {"Authorization",
          "AWS4-HMAC-SHA256 Credential=ci/runner+1/20260304/eu-north-1/s3/aws4_request, SignedHeade"
          "rs=host;if-match;range;x-amz-content-sha256;x-amz-date, Signature=365bd9e242601676469de0"
          "0fa743cd897e43b415fdf164fa4025db49b8c9f044"},
     }},
    {"names that need escapes",
     "GET",
     "/s3/models/a%20b/%C3%A9%2B%3D%40~%2A//c//d",
     {
         {"Host", "models.example:8080"},
         {"X-Amz-Date", "20260304T050607Z"},
         {"X-Amz-Content-SHA256",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
         {"Authorization",
          "AWS4-HMAC-SHA256 Credential=ci/runner+1/20260304/eu-north-1/s3/aws4_request, SignedHeade"
          "rs=host;x-amz-content-sha256;x-amz-date, Signature=68bc5846c339c1a1c557f8f494cb13bb50484"
          "057fbc9488d9591e52348c8c4b7"},
     }},
    {"a list",
     "GET",
     "/s3/models?list-type=2&prefix=a%20b%2F&delimiter=%2F&encoding-type=url&continuation-token"
     "=",
     {
         {"Host", "models.example:8080"},
         {"X-Amz-Date", "20260304T050607Z"},
         {"X-Amz-Content-SHA256",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
         {"Authorization",
          "AWS4-HMAC-SHA256 Credential=ci/runner+1/20260304/eu-north-1/s3/aws4_request, SignedHeade"
          "rs=host;x-amz-content-sha256;x-amz-date, Signature=f2497a99766f3895f9bc76ac7b2d011350748"
          "012a27abd488bfe2a35df972853"},
     }},
    {"parameters without a value",
     "POST",
     "/s3/models/k?uploads",
     {
         {"Host", "models.example:8080"},
         {"X-Amz-Date", "20260304T050607Z"},
         {"X-Amz-Content-SHA256",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
         {"Authorization",
          "AWS4-HMAC-SHA256 Credential=ci/runner+1/20260304/eu-north-1/s3/aws4_request, SignedHeade"
          "rs=host;x-amz-content-sha256;x-amz-date, Signature=171b4a713c197e9fd7feb30fa5ecb1997dbb2"
          "2825ad5090f260ba9ef2034e6c0"},
     }},
    {"metadata with blanks",
     "PUT",
     "/s3/models/k",
     {
         {"Host", "models.example:8080"},
         {"X-Amz-Meta-Note", "  two   words\t here "},
         {"Content-Type", "text/plain"},
         {"X-Amz-Meta-Empty", ""},
         {"X-Amz-Date", "20260304T050607Z"},
         {"X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD"},
         {"Authorization",
          "AWS4-HMAC-SHA256 Credential=ci/runner+1/20260304/eu-north-1/s3/aws4_request, SignedHeade"
          "rs=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-meta-empty;x-amz-meta-note, S"
          "ignature=3ba2b65d9c9acec9a74ced9b3c05cb0009a5b26359fb4e5381ea1df1f1d84397"},
     }},
    {"presigned",
     "GET",
     "/s3/models/k?response-content-type=text%2Fplain&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Cr"
     "edential=ci%2Frunner%2B1%2F20260304%2Feu-north-1%2Fs3%2Faws4_request&X-Amz-Date=20260304T"
     "050607Z&X-Amz-Expires=604800&X-Amz-SignedHeaders=host&X-Amz-Signature=e4e33fa2a1b961d3f49"
     "4024da2fe643c7f36bd39094a5b71de0eddd41ede47f2",
     {
         {"Host", "models.example:8080"},
     }},
    {"presigned with fields",
     "PUT",
     "/s3/models/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ci%2Frunner%2B1%2F20260304"
     "%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260304T050607Z&X-Amz-Expires=600&X-Amz-Sign"
     "edHeaders=content-type%3Bhost%3Bx-amz-meta-a&X-Amz-Signature=7f9af0548d5109e6c63828c8d6d8"
     "10f16feebdadb22f3e879fd58bec30594050",
     {
         {"Host", "models.example:8080"},
         {"Content-Type", "text/plain"},
         {"x-amz-meta-a", "b"},
     }},
};

/* https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html */
static const char published_secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
static const struct vector published = {
    "signed chunks",
    "PUT",
    "/examplebucket/chunkObject.txt",
    {{"Host", "s3.amazonaws.com"},
     {"x-amz-date", "20130524T000000Z"},
     {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
     {"Authorization",
      "AWS4-HMAC-SHA256 "
      "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=content-"
      "encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-"
      "amz-storage-class,Signature="
      "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"},
     {"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
     {"Content-Encoding", "aws-chunked"},
     {"x-amz-decoded-content-length", "66560"},
     {"Content-Length", "66824"}}};

/* --- requests --- */

/* A request that a test may change, with what it needs to be read. */
struct trial {
    struct sigv4_request request;
    struct header_field fields[FIELDS_MAX + 1];
    struct sigv4 signature;
    const char *why;
};

static void add(struct trial *trial, const char *name, const char *value)
{
    struct sigv4_request *request = &trial->request;

    assert_true(request->field_count < FIELDS_MAX + 1);
    trial->fields[request->field_count++] =
        (struct header_field){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

static void set_up(struct trial *trial, const struct vector *vector)
{
    trial->request = (struct sigv4_request){vector->method, vector->target, trial->fields, 0};
    for (size_t i = 0; i < FIELDS_MAX && vector->fields[i].name != NULL; i++)
        add(trial, vector->fields[i].name, vector->fields[i].value);
}

static void set_value(struct trial *trial, const char *name, const char *value)
{
    for (unsigned i = 0; i < trial->request.field_count; i++) {
        if (strcmp(trial->fields[i].name, name) == 0) {
            trial->fields[i].value = value;
            trial->fields[i].value_length = (uint32_t)strlen(value);
            return;
        }
    }
    add(trial, name, value);
}

static enum sigv4_form read_trial(struct trial *trial)
{
    return sigv4_read(&trial->request, &trial->signature, &trial->why);
}

static bool is_right(struct trial *trial, const char *with_secret)
{
    uint8_t key[AWS_KEY_BYTES];

    if (read_trial(trial) != SIGV4_HEADER && trial->signature.form != SIGV4_QUERY)
        return false;
    assert_null(trial->why);
    assert_true(aws_key_derive(zt_text_from(with_secret), &trial->signature.scope, key));
    return sigv4_verify(&trial->signature, &trial->request, key);
}

/* --- what is right --- */

TEST(signatures_of_clients_are_accepted)
{
    struct trial trial;

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        set_up(&trial, &vectors[i]);
        if (!is_right(&trial, secret))
            fail_msg("%s", vectors[i].name);
        assert_memory_equal(trial.signature.access_key.bytes, "ci/runner+1", 11);
        assert_int_equal(trial.signature.access_key.length, 11);
        assert_int_equal(trial.signature.date_s, NOW_S);
        assert_null(sigv4_unsigned_field(&trial.signature, &trial.request));
        assert_false(is_right(&trial, "s3cr3t/with+signs"));
    }
}

TEST(other_spellings_of_a_request_have_the_same_signature)
{
    struct trial trial;

    /* Absolute form, and escapes where none are needed. */
    set_up(&trial, &vectors[0]);
    trial.request.target = "http://other/s3/models/ll%61ma/model%2esafetensors";
    assert_true(is_right(&trial, secret));
    /* No escapes where others write some. */
    set_up(&trial, &vectors[1]);
    trial.request.target = "/s3/models/a%20b/\xC3\xA9+=@%7e*//c//d";
    assert_true(is_right(&trial, secret));
    set_up(&trial, &vectors[2]);
    trial.request.target = "/s3/models?&encoding-type=url&delimiter=/&prefix=a%20b/&list-type=2&"
                           "continuation-token";
    assert_true(is_right(&trial, secret));
    /* Names of fields in another case, blanks, and a repeated field. */
    set_up(&trial, &vectors[4]);
    set_value(&trial, "X-Amz-Meta-Note", "two words here");
    set_value(&trial, "content-length", "0");
    assert_true(is_right(&trial, secret));
}

/* --- what is changed --- */

TEST(changed_requests_are_refused)
{
    static const struct {
        size_t vector;
        const char *target;
    } targets[] = {
        {0, "/s3/models/llama/model.safetensor"},
        {0, "/s3/models/llama/Model.safetensors"},
        {0, "/s3/models/llama//model.safetensors"},
        {0, "/models/llama/model.safetensors"},
        {0, "/s3/models/llama/model.safetensors/"},
        {0, "/s3/models/llama/model.safetensors?acl"},
        {0, "/s3/models/llama/./model.safetensors"},
        {1, "/s3/models/a+b/%C3%A9%2B%3D%40~%2A//c//d"},
        {2, "/s3/models?list-type=2&prefix=a+b%2F&delimiter=%2F&encoding-type=url&continuation-"
            "token="},
        {2, "/s3/models?list-type=2&prefix=a%20b%2F&delimiter=%2F&encoding-type=url"},
        {2, "/s3/models?list-type=2&prefix=a%20b&delimiter=%2F&encoding-type=url&continuation-"
            "token=%2F"},
        {3, "/s3/models/k?uploads=x"},
        {3, "/s3/models/k"},
        {3, "/s3/models/k?uploads&uploads"},
    };
    struct trial trial;

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        set_up(&trial, &vectors[targets[i].vector]);
        trial.request.target = targets[i].target;
        if (is_right(&trial, secret))
            fail_msg("%s", targets[i].target);
    }
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        set_up(&trial, &vectors[i]);
        trial.request.method = "DELETE";
        assert_false(is_right(&trial, secret));
    }
}

TEST(changed_fields_are_refused_if_they_are_signed)
{
    struct trial trial;

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        for (size_t f = 0; f < FIELDS_MAX && vectors[i].fields[f].name != NULL; f++) {
            char value[512];

            set_up(&trial, &vectors[i]);
            snprintf(value, sizeof(value), "%s0", vectors[i].fields[f].value);
            set_value(&trial, vectors[i].fields[f].name, value);
            if (is_right(&trial, secret))
                fail_msg("%s: %s", vectors[i].name, vectors[i].fields[f].name);
            /* Once more, with another value. */
            set_up(&trial, &vectors[i]);
            add(&trial, vectors[i].fields[f].name, "x");
            assert_false(is_right(&trial, secret));
        }
    }
}

TEST(changed_parameters_of_a_presigned_address_are_refused)
{
    const char *target = vectors[5].target;
    char changed[1024];
    struct trial trial;
    size_t refused = 0;

    /* Another digit or letter at each place of the query. */
    for (const char *at = strchr(target, '?') + 1; *at != '\0'; at++) {
        if (*at == '%' || at[-1] == '%' || at[-2] == '%')
            continue;
        snprintf(changed, sizeof(changed), "%s", target);
        changed[at - target] = *at == '1' ? '2' : '1';
        set_up(&trial, &vectors[5]);
        trial.request.target = changed;
        if (is_right(&trial, secret))
            fail_msg("%s", changed);
        refused++;
    }
    assert_true(refused > 250);
}

TEST(amz_fields_that_are_not_signed_are_found)
{
    struct trial trial;
    const struct header_field *field;

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        set_up(&trial, &vectors[i]);
        set_value(&trial, "X-AMZ-Copy-Source", "models/other");
        assert_true(is_right(&trial, secret));
        field = sigv4_unsigned_field(&trial.signature, &trial.request);
        assert_non_null(field);
        assert_string_equal(field->name, "X-AMZ-Copy-Source");
    }
}

/* --- what cannot be read --- */

#define CREDENTIAL "Credential=k/20260304/r/s3/aws4_request"
#define NAMES      "SignedHeaders=host;x-amz-date"
#define DIGITS     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SIGNATURE  "Signature=" DIGITS
#define SCHEME     "AWS4-HMAC-SHA256 "

TEST(fields_are_read_as_clients_write_them)
{
    static const struct {
        const char *value;
        enum sigv4_form form;
    } rows[] = {
        {SCHEME CREDENTIAL ", " NAMES ", " SIGNATURE, SIGV4_HEADER},
        {SCHEME CREDENTIAL "," NAMES "," SIGNATURE, SIGV4_HEADER},
        {"aws4-hmac-sha256   " SIGNATURE " ,  " NAMES ", " CREDENTIAL " ", SIGV4_HEADER},
        {"Bearer abc", SIGV4_ABSENT},
        {"AWS k:signature", SIGV4_ABSENT},
        {"AWS4-HMAC-SHA256", SIGV4_ABSENT},
        {SCHEME CREDENTIAL ", " NAMES, SIGV4_MALFORMED},
        {SCHEME CREDENTIAL ", " NAMES ", " SIGNATURE ", " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME CREDENTIAL ", " NAMES ", " SIGNATURE ", X=y", SIGV4_MALFORMED},
        {SCHEME CREDENTIAL ", " NAMES ", Signature=" DIGITS "0", SIGV4_MALFORMED},
        {SCHEME CREDENTIAL ", " NAMES ", Signature=", SIGV4_MALFORMED},
        {SCHEME CREDENTIAL ", SignedHeaders=x-amz-date, " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME CREDENTIAL ", SignedHeaders=Host;x-amz-date, " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME CREDENTIAL ", SignedHeaders=host;;x-amz-date, " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME "Credential=/20260304/r/s3/aws4_request, " NAMES ", " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME "Credential=k/20260305/r/s3/aws4_request, " NAMES ", " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME "Credential=k/20260304/r/ec2/aws4_request, " NAMES ", " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME "Credential=k/20260304/r/s3/aws4, " NAMES ", " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME "Credential=k/20260304//s3/aws4_request, " NAMES ", " SIGNATURE, SIGV4_MALFORMED},
        {SCHEME "Credential=k, " NAMES ", " SIGNATURE, SIGV4_MALFORMED},
    };
    struct trial trial;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(&trial, &vectors[0]);
        set_value(&trial, "Authorization", rows[i].value);
        if (read_trial(&trial) != rows[i].form)
            fail_msg("%s", rows[i].value);
        assert_true((trial.why != NULL) == (rows[i].form == SIGV4_MALFORMED));
    }
}

TEST(dates_and_missing_fields_are_refused)
{
    static const char *const dates[] = {"",
                                        "20260304",
                                        "20260304T050607",
                                        "20260304T050607z",
                                        "20260304T250607Z",
                                        "20261304T050607Z",
                                        "2026030 T050607Z",
                                        "20260304T+50607Z",
                                        "20260305T050607Z",
                                        "Wed, 04 Mar 2026 05:06:07 GMT"};
    struct trial trial;

    for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
        set_up(&trial, &vectors[0]);
        set_value(&trial, "X-Amz-Date", dates[i]);
        if (read_trial(&trial) != SIGV4_MALFORMED)
            fail_msg("%s", dates[i]);
    }
    set_up(&trial, &vectors[0]);
    set_value(&trial, "X-Amz-Content-SHA256", "");
    add(&trial, "x-amz-content-sha256", "");
    assert_int_equal(read_trial(&trial), SIGV4_MALFORMED);
    assert_string_equal(trial.why, "the request must have only one field x-amz-content-sha256");
    set_up(&trial, &vectors[0]);
    trial.request.target = vectors[5].target;
    assert_int_equal(read_trial(&trial), SIGV4_MALFORMED);
    assert_true(strstr(trial.why, "only one kind of credentials") != NULL);
}

/* Fails unless the presigned address is malformed once old is replaced by another text. */
static void assert_presigned_is_refused(const char *old, const char *other)
{
    const char *target = vectors[5].target;
    const char *at = strstr(target, old);
    char changed[4096];
    struct trial trial;

    assert_non_null(at);
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - target), target, other,
             at + strlen(old));
    set_up(&trial, &vectors[5]);
    trial.request.target = changed;
    if (read_trial(&trial) != SIGV4_MALFORMED)
        fail_msg("%s", changed);
    assert_non_null(trial.why);
}

TEST(presigned_addresses_are_refused_if_a_part_is_missing_repeated_or_out_of_bounds)
{
    char longer[3000];

    assert_presigned_is_refused("604800", "604801");
    assert_presigned_is_refused("604800", "0");
    assert_presigned_is_refused("604800", "");
    assert_presigned_is_refused("604800", "-1");
    assert_presigned_is_refused("604800", "99999999999999999999");
    assert_presigned_is_refused("X-Amz-Expires=604800", "a=b");
    assert_presigned_is_refused("&X-Amz-Date=", "&X-Amz-Date=20260304T050607Z&X-Amz-Date=");
    assert_presigned_is_refused("=AWS4-HMAC-SHA256&", "=AWS4-ECDSA-P256-SHA256&");
    assert_presigned_is_refused("%2Fs3%2F", "%2Fs4%2F");
    assert_presigned_is_refused("SignedHeaders=host", "SignedHeaders=hos%zz");
    memset(longer, 'h', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_presigned_is_refused("host", longer);
}

TEST(queries_with_too_many_parameters_are_refused)
{
    char target[2 * AWS_PARAMETERS_MAX + 8] = "/?";
    struct trial trial;

    for (unsigned i = 0; i < AWS_PARAMETERS_MAX + 1; i++)
        strcat(target, "a&");
    set_up(&trial, &vectors[0]);
    trial.request.target = target;
    assert_false(is_right(&trial, secret));
}

/* --- time --- */

TEST(a_signature_is_valid_for_fifteen_minutes_before_and_after_its_date)
{
    struct trial trial;

    set_up(&trial, &vectors[0]);
    assert_int_equal(read_trial(&trial), SIGV4_HEADER);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S), SIGV4_TIMELY);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S + 900), SIGV4_TIMELY);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S - 900), SIGV4_TIMELY);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S + 901), SIGV4_SKEWED);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S - 901), SIGV4_SKEWED);
}

TEST(a_presigned_address_is_valid_until_it_expires)
{
    struct trial trial;

    set_up(&trial, &vectors[5]);
    assert_int_equal(read_trial(&trial), SIGV4_QUERY);
    assert_int_equal(trial.signature.expires_s, SIGV4_EXPIRES_MAX);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S - 901), SIGV4_EARLY);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S - 900), SIGV4_TIMELY);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S + 604800), SIGV4_TIMELY);
    assert_int_equal(sigv4_check_time(&trial.signature, NOW_S + 604801), SIGV4_EXPIRED);
}

/* --- bodies --- */

TEST(payloads_are_told_apart)
{
    static const struct {
        const char *text;
        enum sigv4_payload payload;
    } rows[] = {
        {"", SIGV4_PAYLOAD_UNSTATED},
        {AWS_EMPTY_SHA256, SIGV4_PAYLOAD_SHA256},
        {"UNSIGNED-PAYLOAD", SIGV4_PAYLOAD_UNSIGNED},
        {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", SIGV4_PAYLOAD_UNSIGNED_TRAILER},
        {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", SIGV4_PAYLOAD_CHUNKS},
        {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", SIGV4_PAYLOAD_CHUNKS_TRAILER},
        {"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", SIGV4_PAYLOAD_UNKNOWN},
        {AWS_EMPTY_SHA256 "0", SIGV4_PAYLOAD_UNKNOWN},
        {"unsigned-payload", SIGV4_PAYLOAD_UNKNOWN},
    };
    struct sigv4_body body;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sigv4_payload_read(zt_text_from(rows[i].text), &body);
        assert_int_equal(body.payload, rows[i].payload);
        assert_false(body.is_verified);
    }
}

static void hash(const void *bytes, size_t length, uint8_t out_sha256[32])
{
    struct zt_digest digest;

    assert_int_equal(zt_digest_of(ZT_DIGEST_SHA256, bytes, length, &digest), ZT_OK);
    memcpy(out_sha256, digest.bytes, 32);
}

TEST(signed_chunks_are_signed_as_published)
{
    static char bytes[65536];
    struct trial trial;
    struct sigv4_body body;
    uint8_t key[AWS_KEY_BYTES];
    uint8_t sha256[32];
    char signature[AWS_HEX_SIZE];

    set_up(&trial, &published);
    assert_true(is_right(&trial, published_secret));
    sigv4_payload_read(trial.signature.payload, &body);
    assert_int_equal(body.payload, SIGV4_PAYLOAD_CHUNKS);
    assert_true(aws_key_derive(zt_text_from(published_secret), &trial.signature.scope, key));
    sigv4_body_seed(&trial.signature, key, &body);
    assert_true(body.is_verified);
    memset(bytes, 'a', sizeof(bytes));
    hash(bytes, 65536, sha256);
    assert_true(sigv4_sign_chunk(&body, body.seed, sha256, signature));
    assert_string_equal(signature,
                        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
    hash(bytes, 1024, sha256);
    assert_true(sigv4_sign_chunk(&body, signature, sha256, signature));
    assert_string_equal(signature,
                        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
    hash("", 0, sha256);
    assert_true(sigv4_sign_chunk(&body, signature, sha256, signature));
    assert_true(sigv4_is_signature(
        zt_text_from("b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        signature));
    assert_false(sigv4_is_signature(
        zt_text_from("b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df8"),
        signature));
    assert_false(sigv4_is_signature(zt_text_from("b6"), signature));
    /* The last chunk of the example with a trailer. */
    hash("x-amz-checksum-crc32c:sOO8/Q==\n", 31, sha256);
    assert_true(sigv4_sign_trailer(
        &body, "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992", sha256,
        signature));
    assert_string_equal(signature,
                        "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435");
}
