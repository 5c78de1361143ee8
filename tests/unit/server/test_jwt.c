/* JSON Web Tokens and the keys that check them: what is valid, and every attack that is not. */
#include "signed_tokens.h"
#include "tests.h"

#include "access/jwt.h"

static EVP_PKEY *rsa;
static EVP_PKEY *ec;
static EVP_PKEY *foreign_rsa;
static EVP_PKEY *foreign_ec;
static struct jwks *keys;
static char key_set[TOKEN_SIZE];
static struct jwt_claims claims;
static char error[512];

static int setup(void **state)
{
    (void)state;
    rsa = EVP_RSA_gen(2048);
    foreign_rsa = EVP_RSA_gen(2048);
    ec = EVP_EC_gen("P-256");
    foreign_ec = EVP_EC_gen("P-256");
    strcpy(key_set, "{\"keys\":[");
    append_rsa(key_set, rsa, "r", ",\"use\":\"sig\",\"alg\":\"RS256\"");
    strcat(key_set, ",");
    append_ec(key_set, ec, "e", ",\"key_ops\":[\"verify\"]");
    strcat(key_set, "]}");
    keys = jwks_parse(zt_text_from(key_set), "keys", error, sizeof(error));
    if (keys == NULL)
        fail_msg("%s", error);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    jwks_free(keys);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
    EVP_PKEY_free(foreign_rsa);
    EVP_PKEY_free(foreign_ec);
    return 0;
}

static enum jwt_verdict check_at(const char *token, int64_t now_s)
{
    const struct jwt_terms terms = {keys, "https://issuer", "models", 60};

    return jwt_check(&terms, zt_text_from(token), now_s, &claims);
}

static enum jwt_verdict check(const char *token)
{
    return check_at(token, NOW);
}

static void assert_claims(const char *text, enum jwt_verdict expected)
{
    const enum jwt_verdict verdict = check(token_of(rsa, RS256, text));

    if (verdict != expected)
        fail_msg("%s: %d, not %d", text, verdict, expected);
}

static void assert_header(EVP_PKEY *key, const char *header, enum jwt_verdict expected)
{
    const enum jwt_verdict verdict = check(token_of(key, header, CLAIMS));

    if (verdict != expected)
        fail_msg("%s: %d, not %d", header, verdict, expected);
}

/* --- valid --- */

AROUND_ALL_TESTS(setup, teardown)

TEST(tokens_of_both_algorithms_are_valid)
{
    assert_int_equal(check(token_of(rsa, RS256, CLAIMS)), JWT_VALID);
    assert_string_equal(claims.subject, SUBJECT);
    assert_int_equal(claims.subject_length, strlen(SUBJECT));
    assert_int_equal(claims.expires_s, 1800000160);
    memset(&claims, 0, sizeof(claims));
    assert_int_equal(check(token_of(ec, ES256, CLAIMS)), JWT_VALID);
    assert_string_equal(claims.subject, SUBJECT);
}

TEST(keys_are_tried_without_an_id)
{
    assert_header(rsa, "{\"alg\":\"RS256\"}", JWT_VALID);
    assert_header(ec, "{\"alg\":\"ES256\",\"typ\":\"anything\"}", JWT_VALID);
}

/* --- the signature --- */

TEST(signature_of_another_key_is_refused)
{
    assert_header(foreign_rsa, RS256, JWT_UNSIGNED);
    assert_header(foreign_rsa, "{\"alg\":\"RS256\"}", JWT_UNSIGNED);
    assert_header(foreign_ec, ES256, JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"unknown\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"\"}", JWT_UNSIGNED);
}

TEST(token_without_a_signature_is_refused)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"nOnE\"}",
        "{\"alg\":\"\"}",
        "{}",
        RS256,
        ES256,
    };

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        char *token = unsigned_token(headers[i], CLAIMS);

        assert_int_equal(check(token), JWT_MALFORMED);
        strcat(token, ".");
        assert_int_equal(check(token), JWT_UNSIGNED);
    }
}

static void sign_with_text(char *token, const char *secret, size_t length)
{
    unsigned char mac[32];
    unsigned mac_length;

    HMAC(EVP_sha256(), secret, (int)length, (const unsigned char *)token, strlen(token), mac,
         &mac_length);
    strcat(token, ".");
    append_base64url(token, mac, mac_length);
}

TEST(public_key_is_no_secret)
{
    static const char *const headers[] = {"{\"alg\":\"HS256\",\"kid\":\"r\"}",
                                          "{\"alg\":\"RS256\",\"kid\":\"r\"}",
                                          "{\"alg\":\"HS256\"}"};

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        char *token = unsigned_token(headers[i], CLAIMS);

        sign_with_text(token, key_set, strlen(key_set));
        assert_int_equal(check(token), JWT_UNSIGNED);
        token = unsigned_token(headers[i], CLAIMS);
        sign_with_text(token, "", 0);
        assert_int_equal(check(token), JWT_UNSIGNED);
    }
}

TEST(header_cannot_choose_the_algorithm_of_a_key)
{
    assert_header(rsa, "{\"alg\":\"ES256\",\"kid\":\"r\"}", JWT_UNSIGNED);
    assert_header(ec, "{\"alg\":\"RS256\",\"kid\":\"e\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"e\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"PS256\",\"kid\":\"r\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS384\",\"kid\":\"r\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"rs256\",\"kid\":\"r\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":[\"RS256\"],\"kid\":\"r\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"kid\":\"r\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"kid\":1}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\\u0000\",\"kid\":\"r\"}", JWT_MALFORMED);
}

TEST(header_cannot_bring_its_own_key)
{
    char header[TOKEN_SIZE] = "{\"alg\":\"RS256\",\"kid\":\"r\",\"jku\":\"https://evil/keys\","
                              "\"x5u\":\"https://evil/chain\",\"jwk\":";

    append_rsa(header, foreign_rsa, "r", "");
    strcat(header, "}");
    assert_header(foreign_rsa, header, JWT_UNSIGNED);
}

TEST(unknown_extensions_are_refused)
{
    assert_header(rsa, "{\"alg\":\"RS256\",\"crit\":[\"b64\"],\"b64\":false}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"crit\":[]}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"crit\":null}", JWT_UNSIGNED);
}

TEST(signature_in_another_form_is_refused)
{
    unsigned char zeros[64] = {0};
    unsigned char signature[1024];
    char *token = unsigned_token(ES256, CLAIMS);
    size_t length = sign(ec, token, signature);

    assert_int_equal(length, 64);
    strcat(token, ".");
    append_base64url(token, zeros, sizeof(zeros));
    assert_int_equal(check(token), JWT_UNSIGNED);
    token = unsigned_token(ES256, CLAIMS);
    strcat(token, ".");
    append_base64url(token, signature, 63);
    assert_int_equal(check(token), JWT_UNSIGNED);
    token = unsigned_token(ES256, CLAIMS);
    signature[64] = 0;
    strcat(token, ".");
    append_base64url(token, signature, 65);
    assert_int_equal(check(token), JWT_UNSIGNED);
    /* As long as the modulus, and no signature. */
    token = unsigned_token(RS256, CLAIMS);
    memset(signature, 0, sizeof(signature));
    strcat(token, ".");
    append_base64url(token, signature, 256);
    assert_int_equal(check(token), JWT_UNSIGNED);
}

TEST(every_changed_character_is_noticed)
{
    char token[TOKEN_SIZE];

    strcpy(token, token_of(ec, ES256, CLAIMS));
    assert_int_equal(check(token), JWT_VALID);
    for (size_t i = 0; token[i] != '\0'; i++) {
        const char before = token[i];

        token[i] = before == 'A' ? 'B' : 'A';
        assert_int_not_equal(check(token), JWT_VALID);
        token[i] = before;
    }
}

/* --- the form --- */

TEST(every_cut_is_refused)
{
    const struct jwt_terms terms = {keys, "https://issuer", "models", 60};
    const char *token = token_of(rsa, RS256, CLAIMS);
    const size_t length = strlen(token);

    for (size_t i = 0; i < length; i++) {
        /* In memory of its own, so that reading past the end is found. */
        char *cut = malloc(i + 1);

        assert_non_null(cut);
        memcpy(cut, token, i);
        assert_int_not_equal(jwt_check(&terms, (struct zt_text){cut, i}, NOW, &claims), JWT_VALID);
        free(cut);
    }
}

TEST(other_forms_are_refused)
{
    char token[TOKEN_SIZE];
    char changed[TOKEN_SIZE + 8];

    strcpy(token, token_of(rsa, RS256, CLAIMS));
    snprintf(changed, sizeof(changed), "%s.", token);
    assert_int_equal(check(changed), JWT_MALFORMED);
    snprintf(changed, sizeof(changed), "%s.a.b", token);
    assert_int_equal(check(changed), JWT_MALFORMED);
    snprintf(changed, sizeof(changed), "%s=", token);
    assert_int_equal(check(changed), JWT_UNSIGNED);
    snprintf(changed, sizeof(changed), " %s", token);
    assert_int_equal(check(changed), JWT_MALFORMED);
    assert_int_equal(check(".."), JWT_MALFORMED);
    assert_int_equal(check("..."), JWT_MALFORMED);
    assert_int_equal(check(""), JWT_MALFORMED);
    memset(changed, 'A', JWT_MAX);
    strcpy(changed + JWT_MAX, "..");
    assert_int_equal(check(changed), JWT_MALFORMED);
}

TEST(header_must_be_one_object_without_repetitions)
{
    assert_header(rsa, "[]", JWT_MALFORMED);
    assert_header(rsa, "\"RS256\"", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"RS256\"}x", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"none\",\"alg\":\"RS256\"}", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"RS256\"", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"x\":\"\xff\"}", JWT_MALFORMED);
}

TEST(bits_left_over_must_be_zero)
{
    char token[TOKEN_SIZE];
    size_t length;

    /* 64 bytes take 86 characters; the last one has four bits to spare. */
    strcpy(token, token_of(ec, ES256, CLAIMS));
    length = strlen(token);
    assert_non_null(strchr("AQgw", token[length - 1]));
    token[length - 1]++;
    assert_int_equal(check(token), JWT_UNSIGNED);
}

/* --- the claims --- */

#define WITH(members) "{" members ",\"sub\":\"s\"}"
#define ISS           "\"iss\":\"https://issuer\""
#define AUD           "\"aud\":\"models\""
#define EXP           "\"exp\":1800000100"

TEST(issuer_must_be_exact)
{
    assert_claims(WITH(ISS "," AUD "," EXP), JWT_VALID);
    assert_claims(WITH(AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":\"https://issuer/\"," AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":\"HTTPS://issuer\"," AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":[\"https://issuer\"]," AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":null," AUD "," EXP), JWT_ISSUER);
}

TEST(audience_must_be_listed)
{
    assert_claims(WITH(ISS ",\"aud\":[\"models\"]," EXP), JWT_VALID);
    assert_claims(WITH(ISS ",\"aud\":[\"a\",\"b\",\"models\"]," EXP), JWT_VALID);
    assert_claims(WITH(ISS "," EXP), JWT_AUDIENCE);
    assert_claims(WITH(ISS ",\"aud\":\"other\"," EXP), JWT_AUDIENCE);
    assert_claims(WITH(ISS ",\"aud\":\"models,other\"," EXP), JWT_AUDIENCE);
    assert_claims(WITH(ISS ",\"aud\":[]," EXP), JWT_AUDIENCE);
    assert_claims(WITH(ISS ",\"aud\":[\"models\",1]," EXP), JWT_AUDIENCE);
    assert_claims(WITH(ISS ",\"aud\":[[\"models\"]]," EXP), JWT_AUDIENCE);
    assert_claims(WITH(ISS ",\"aud\":{\"models\":1}," EXP), JWT_AUDIENCE);
}

TEST(expiry_is_required_and_kept)
{
    const char *token = token_of(rsa, RS256, WITH(ISS "," AUD "," EXP));

    assert_int_equal(check_at(token, 1800000159), JWT_VALID);
    assert_int_equal(check_at(token, 1800000160), JWT_EXPIRED);
    assert_int_equal(check_at(token, INT64_MAX), JWT_EXPIRED);
    assert_claims(WITH(ISS "," AUD), JWT_MALFORMED);
    assert_claims(WITH(ISS "," AUD ",\"exp\":\"1800000100\""), JWT_MALFORMED);
    assert_claims(WITH(ISS "," AUD ",\"exp\":null"), JWT_MALFORMED);
    assert_claims(WITH(ISS "," AUD ",\"exp\":true"), JWT_MALFORMED);
    assert_claims(WITH(ISS "," AUD ",\"exp\":1800000100.5"), JWT_VALID);
    assert_claims(WITH(ISS "," AUD ",\"exp\":1e300"), JWT_VALID);
    assert_claims(WITH(ISS "," AUD ",\"exp\":-1e300"), JWT_EXPIRED);
    assert_claims(WITH(ISS "," AUD ",\"exp\":0"), JWT_EXPIRED);
    assert_claims(WITH(ISS "," AUD ",\"exp\":9223372036854775807"), JWT_VALID);
    assert_claims(WITH(ISS "," AUD ",\"exp\":99999999999999999999"), JWT_MALFORMED);
}

TEST(not_before_is_kept)
{
    const char *token = token_of(rsa, RS256, WITH(ISS "," AUD "," EXP ",\"nbf\":1800000000"));

    assert_int_equal(check_at(token, 1799999940), JWT_VALID);
    assert_int_equal(check_at(token, 1799999939), JWT_EARLY);
    assert_claims(WITH(ISS "," AUD "," EXP ",\"nbf\":\"0\""), JWT_MALFORMED);
    assert_claims(WITH(ISS "," AUD "," EXP ",\"iat\":\"0\""), JWT_MALFORMED);
}

TEST(subject_is_required)
{
    static char long_claims[TOKEN_SIZE];

    assert_claims("{" ISS "," AUD "," EXP "}", JWT_MALFORMED);
    assert_claims("{" ISS "," AUD "," EXP ",\"sub\":\"\"}", JWT_MALFORMED);
    assert_claims("{" ISS "," AUD "," EXP ",\"sub\":7}", JWT_MALFORMED);
    assert_claims("{" ISS "," AUD "," EXP ",\"sub\":\"a\",\"sub\":\"b\"}", JWT_MALFORMED);
    assert_claims("[]", JWT_MALFORMED);
    sprintf(long_claims, "{" ISS "," AUD "," EXP ",\"sub\":\"%0*d\"}", JWT_SUBJECT_MAX, 0);
    assert_claims(long_claims, JWT_VALID);
    sprintf(long_claims, "{" ISS "," AUD "," EXP ",\"sub\":\"%0*d\"}", JWT_SUBJECT_MAX + 1, 0);
    assert_claims(long_claims, JWT_MALFORMED);
}

/* --- sets of keys --- */

static void assert_set_refused(const char *text, const char *message)
{
    struct jwks *set = jwks_parse(zt_text_from(text), "keys", error, sizeof(error));

    if (set != NULL)
        fail_msg("accepted: %s", text);
    assert_int_equal(strncmp(error, "auth.jwks: keys", 15), 0);
    assert_string_equal(error + 15, message);
}

#define KEY_REFUSED(members, message) assert_set_refused("{\"keys\":[{" members "}]}", message)

TEST(wrong_sets_are_named)
{
    assert_set_refused("{\"keys\":\n[}", ": line 2, column 2: not valid JSON: "
                                         "unexpected token near '}'");
    assert_set_refused("[]", ": not an object");
    assert_set_refused("{}", ": there is no list \"keys\"");
    assert_set_refused("{\"keys\":{}}", ": there is no list \"keys\"");
    assert_set_refused("{\"keys\":[]}", ": none of the 0 keys can check RS256 or ES256");
    assert_set_refused("{\"keys\":[1]}", ", key 1: not an object");
    KEY_REFUSED("\"kty\":\"oct\",\"k\":\"AA\"", ": none of the 1 keys can check RS256 or ES256");
    KEY_REFUSED("\"kid\":\"a\"", ", key 1 (a): kty must be a string");
    KEY_REFUSED("\"kty\":\"RSA\",\"kid\":7", ", key 1: kid must be a string");
    KEY_REFUSED("\"kty\":\"RSA\",\"kid\":\"a\",\"n\":\"AQAB\"",
                ", key 1 (a): n and e must be numbers in base64url, of at "
                "most 8192 and 32 bits");
    KEY_REFUSED("\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"",
                ", key 1: the key must have 2048 to 8192 bits");
    KEY_REFUSED("\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQ\"",
                ", key 1: the exponent must be an odd number from 3 to 2^32");
    KEY_REFUSED("\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"",
                ", key 1: x and y must be 32 bytes each, in base64url");
    KEY_REFUSED("\"kty\":\"EC\",\"crv\":\"P-256\","
                "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
                "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"",
                ", key 1: the point is not on the curve P-256");
}

TEST(weak_keys_are_refused)
{
    EVP_PKEY *weak = EVP_RSA_gen(1024);
    char text[TOKEN_SIZE] = "{\"keys\":[";

    append_rsa(text, weak, "weak", "");
    strcat(text, "]}");
    assert_set_refused(text, ", key 1 (weak): the key must have 2048 to 8192 bits");
    EVP_PKEY_free(weak);
}

static void assert_not_used(const char *extra)
{
    char text[TOKEN_SIZE] = "{\"keys\":[";
    struct jwks *before = keys;

    append_ec(text, ec, "e", "");
    strcat(text, ",");
    append_rsa(text, rsa, "r", extra);
    strcat(text, "]}");
    keys = jwks_parse(zt_text_from(text), "keys", error, sizeof(error));
    if (keys == NULL)
        fail_msg("%s", error);
    assert_int_equal(check(token_of(rsa, RS256, CLAIMS)), JWT_UNSIGNED);
    assert_int_equal(check(token_of(ec, ES256, CLAIMS)), JWT_VALID);
    jwks_free(keys);
    keys = before;
}

TEST(keys_for_something_else_are_skipped)
{
    assert_not_used(",\"use\":\"enc\"");
    assert_not_used(",\"use\":7");
    assert_not_used(",\"alg\":\"RS512\"");
    assert_not_used(",\"key_ops\":[\"sign\"]");
    assert_not_used(",\"key_ops\":\"verify\"");
}
