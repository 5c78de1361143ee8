/* JSON Web Tokens and the keys that check them: what is valid, and every attack that is not. */
#include "signed_tokens.h"

#include "access/jwt.h"

static EVP_PKEY *rsa;
static EVP_PKEY *ec;
static EVP_PKEY *foreign;
static EVP_PKEY *foreign_ec;
static struct jwks *keys;
static char key_set[TOKEN_SIZE];
static struct jwt_claims claims;
static char error[512];

static int setup(void **state)
{
    (void)state;
    rsa = EVP_RSA_gen(2048);
    foreign = EVP_RSA_gen(2048);
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
    EVP_PKEY_free(foreign);
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

static void tokens_of_both_algorithms_are_valid(void **state)
{
    (void)state;
    assert_int_equal(check(token_of(rsa, RS256, CLAIMS)), JWT_VALID);
    assert_string_equal(claims.subject, SUBJECT);
    assert_int_equal(claims.subject_length, strlen(SUBJECT));
    assert_int_equal(claims.expires_s, 1800000160);
    memset(&claims, 0, sizeof(claims));
    assert_int_equal(check(token_of(ec, ES256, CLAIMS)), JWT_VALID);
    assert_string_equal(claims.subject, SUBJECT);
}

static void keys_are_tried_without_an_id(void **state)
{
    (void)state;
    assert_header(rsa, "{\"alg\":\"RS256\"}", JWT_VALID);
    assert_header(ec, "{\"alg\":\"ES256\",\"typ\":\"anything\"}", JWT_VALID);
}

/* --- the signature --- */

static void signature_of_another_key_is_refused(void **state)
{
    (void)state;
    assert_header(foreign, RS256, JWT_UNSIGNED);
    assert_header(foreign, "{\"alg\":\"RS256\"}", JWT_UNSIGNED);
    assert_header(foreign_ec, ES256, JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"unknown\"}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"kid\":\"\"}", JWT_UNSIGNED);
}

static void token_without_a_signature_is_refused(void **state)
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

    (void)state;
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

static void public_key_is_no_secret(void **state)
{
    static const char *const headers[] = {"{\"alg\":\"HS256\",\"kid\":\"r\"}",
                                          "{\"alg\":\"RS256\",\"kid\":\"r\"}",
                                          "{\"alg\":\"HS256\"}"};

    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        char *token = unsigned_token(headers[i], CLAIMS);

        sign_with_text(token, key_set, strlen(key_set));
        assert_int_equal(check(token), JWT_UNSIGNED);
        token = unsigned_token(headers[i], CLAIMS);
        sign_with_text(token, "", 0);
        assert_int_equal(check(token), JWT_UNSIGNED);
    }
}

static void header_cannot_choose_the_algorithm_of_a_key(void **state)
{
    (void)state;
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

static void header_cannot_bring_its_own_key(void **state)
{
    char header[TOKEN_SIZE] = "{\"alg\":\"RS256\",\"kid\":\"r\",\"jku\":\"https://evil/keys\","
                              "\"x5u\":\"https://evil/chain\",\"jwk\":";

    (void)state;
    append_rsa(header, foreign, "r", "");
    strcat(header, "}");
    assert_header(foreign, header, JWT_UNSIGNED);
}

static void unknown_extensions_are_refused(void **state)
{
    (void)state;
    assert_header(rsa, "{\"alg\":\"RS256\",\"crit\":[\"b64\"],\"b64\":false}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"crit\":[]}", JWT_UNSIGNED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"crit\":null}", JWT_UNSIGNED);
}

static void signature_in_another_form_is_refused(void **state)
{
    unsigned char zeros[64] = {0};
    unsigned char signature[1024];
    char *token = unsigned_token(ES256, CLAIMS);
    size_t length = sign(ec, token, signature);

    (void)state;
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

static void every_changed_character_is_noticed(void **state)
{
    char token[TOKEN_SIZE];

    (void)state;
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

static void every_cut_is_refused(void **state)
{
    const struct jwt_terms terms = {keys, "https://issuer", "models", 60};
    const char *token = token_of(rsa, RS256, CLAIMS);
    const size_t length = strlen(token);

    (void)state;
    for (size_t i = 0; i < length; i++) {
        /* In memory of its own, so that reading past the end is found. */
        char *cut = malloc(i + 1);

        assert_non_null(cut);
        memcpy(cut, token, i);
        assert_int_not_equal(jwt_check(&terms, (struct zt_text){cut, i}, NOW, &claims), JWT_VALID);
        free(cut);
    }
}

static void other_forms_are_refused(void **state)
{
    char token[TOKEN_SIZE];
    char changed[TOKEN_SIZE + 8];

    (void)state;
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

static void header_must_be_one_object_without_repetitions(void **state)
{
    (void)state;
    assert_header(rsa, "[]", JWT_MALFORMED);
    assert_header(rsa, "\"RS256\"", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"RS256\"}x", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"none\",\"alg\":\"RS256\"}", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"RS256\"", JWT_MALFORMED);
    assert_header(rsa, "{\"alg\":\"RS256\",\"x\":\"\xff\"}", JWT_MALFORMED);
}

static void bits_left_over_must_be_zero(void **state)
{
    char token[TOKEN_SIZE];
    size_t length;

    (void)state;
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

static void issuer_must_be_exact(void **state)
{
    (void)state;
    assert_claims(WITH(ISS "," AUD "," EXP), JWT_VALID);
    assert_claims(WITH(AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":\"https://issuer/\"," AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":\"HTTPS://issuer\"," AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":[\"https://issuer\"]," AUD "," EXP), JWT_ISSUER);
    assert_claims(WITH("\"iss\":null," AUD "," EXP), JWT_ISSUER);
}

static void audience_must_be_listed(void **state)
{
    (void)state;
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

static void expiry_is_required_and_kept(void **state)
{
    const char *token = token_of(rsa, RS256, WITH(ISS "," AUD "," EXP));

    (void)state;
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

static void not_before_is_kept(void **state)
{
    const char *token = token_of(rsa, RS256, WITH(ISS "," AUD "," EXP ",\"nbf\":1800000000"));

    (void)state;
    assert_int_equal(check_at(token, 1799999940), JWT_VALID);
    assert_int_equal(check_at(token, 1799999939), JWT_EARLY);
    assert_claims(WITH(ISS "," AUD "," EXP ",\"nbf\":\"0\""), JWT_MALFORMED);
    assert_claims(WITH(ISS "," AUD "," EXP ",\"iat\":\"0\""), JWT_MALFORMED);
}

static void subject_is_required(void **state)
{
    static char long_claims[TOKEN_SIZE];

    (void)state;
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

static void assert_set_refused(const char *text, const char *expected)
{
    struct jwks *set = jwks_parse(zt_text_from(text), "keys", error, sizeof(error));

    if (set != NULL)
        fail_msg("accepted: %s", text);
    assert_string_equal(error, expected);
}

static void wrong_sets_are_named(void **state)
{
    (void)state;
    assert_set_refused("{\"keys\":\n[}", "auth.jwks: keys: line 2, column 2: not valid JSON: "
                                         "unexpected token near '}'");
    assert_set_refused("[]", "auth.jwks: keys: not an object");
    assert_set_refused("{}", "auth.jwks: keys: there is no list \"keys\"");
    assert_set_refused("{\"keys\":{}}", "auth.jwks: keys: there is no list \"keys\"");
    assert_set_refused("{\"keys\":[]}",
                       "auth.jwks: keys: none of the 0 keys checks RS256 or ES256");
    assert_set_refused("{\"keys\":[1]}", "auth.jwks: keys, key 1: not an object");
    assert_set_refused("{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}",
                       "auth.jwks: keys: none of the 1 keys checks RS256 or ES256");
    assert_set_refused("{\"keys\":[{\"kid\":\"a\"}]}",
                       "auth.jwks: keys, key 1 (a): kty must be a text");
    assert_set_refused("{\"keys\":[{\"kty\":\"RSA\",\"kid\":7}]}",
                       "auth.jwks: keys, key 1: kid must be a text");
    assert_set_refused("{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"a\",\"n\":\"AQAB\"}]}",
                       "auth.jwks: keys, key 1 (a): n and e must be numbers in base64url, of at "
                       "most 8192 and 32 bits");
    assert_set_refused("{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
                       "auth.jwks: keys, key 1: the key must have 2048 to 8192 bits");
    assert_set_refused("{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQ\"}]}",
                       "auth.jwks: keys, key 1: the exponent is not usual");
    assert_set_refused("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}",
                       "auth.jwks: keys, key 1: x and y must be 32 bytes each, in base64url");
    assert_set_refused("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
                       "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
                       "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
                       "auth.jwks: keys, key 1: the point is not on the curve P-256");
}

static void weak_keys_are_refused(void **state)
{
    EVP_PKEY *weak = EVP_RSA_gen(1024);
    char text[TOKEN_SIZE] = "{\"keys\":[";

    (void)state;
    append_rsa(text, weak, "weak", "");
    strcat(text, "]}");
    assert_set_refused(text, "auth.jwks: keys, key 1 (weak): the key must have 2048 to 8192 bits");
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

static void keys_for_something_else_are_skipped(void **state)
{
    (void)state;
    assert_not_used(",\"use\":\"enc\"");
    assert_not_used(",\"use\":7");
    assert_not_used(",\"alg\":\"RS512\"");
    assert_not_used(",\"key_ops\":[\"sign\"]");
    assert_not_used(",\"key_ops\":\"verify\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_both_algorithms_are_valid),
        cmocka_unit_test(keys_are_tried_without_an_id),
        cmocka_unit_test(signature_of_another_key_is_refused),
        cmocka_unit_test(token_without_a_signature_is_refused),
        cmocka_unit_test(public_key_is_no_secret),
        cmocka_unit_test(header_cannot_choose_the_algorithm_of_a_key),
        cmocka_unit_test(header_cannot_bring_its_own_key),
        cmocka_unit_test(unknown_extensions_are_refused),
        cmocka_unit_test(signature_in_another_form_is_refused),
        cmocka_unit_test(every_changed_character_is_noticed),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(header_must_be_one_object_without_repetitions),
        cmocka_unit_test(bits_left_over_must_be_zero),
        cmocka_unit_test(issuer_must_be_exact),
        cmocka_unit_test(audience_must_be_listed),
        cmocka_unit_test(expiry_is_required_and_kept),
        cmocka_unit_test(not_before_is_kept),
        cmocka_unit_test(subject_is_required),
        cmocka_unit_test(wrong_sets_are_named),
        cmocka_unit_test(weak_keys_are_refused),
        cmocka_unit_test(keys_for_something_else_are_skipped),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
