/* Checks a token in the order of RFC 7515 section 5.2 and RFC 7519 section 7.2. The header only
 * selects among the keys of the set: keys in a header, and addresses of keys, are ignored. */
#include "access/jwt.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"
#include "input/json_read.h"

/* Of the largest RSA key. */
#define SIGNATURE_MAX (JWS_RSA_BITS_MAX / 8)

struct parts {
    struct zt_text header;
    struct zt_text payload;
    struct zt_text signature;
    struct zt_text signed_text; /* header, dot, payload */
};

/* --- the form --- */

bool jwt_is_likely(struct zt_text token)
{
    size_t dots = 0;

    for (size_t i = 0; i < token.length; i++)
        dots += token.bytes[i] == '.';
    return dots == 2;
}

static bool split(struct zt_text token, struct parts *out_parts)
{
    const char *first;
    const char *second;
    const char *end = token.bytes + token.length;

    if (token.length > JWT_MAX || !jwt_is_likely(token))
        return false;
    first = memchr(token.bytes, '.', token.length);
    second = memchr(first + 1, '.', (size_t)(end - first - 1));
    assert(second != NULL && second < end);
    out_parts->header = (struct zt_text){token.bytes, (size_t)(first - token.bytes)};
    out_parts->payload = (struct zt_text){first + 1, (size_t)(second - first - 1)};
    out_parts->signature = (struct zt_text){second + 1, (size_t)(end - second - 1)};
    out_parts->signed_text = (struct zt_text){token.bytes, (size_t)(second - token.bytes)};
    return true;
}

/* The object in a part; NULL if there is none. */
static struct json_t *read_part(struct zt_text part)
{
    uint8_t bytes[JWT_MAX];
    size_t length;
    struct json_t *object = NULL;

    assert(part.length <= JWT_MAX);
    if (zt_base64_read(part, ZT_BASE64_URL, bytes, sizeof(bytes), &length))
        object = json_object_read((struct zt_text){(const char *)bytes, length}, NULL);
    explicit_bzero(bytes, sizeof(bytes));
    return object;
}

/* --- the signature --- */

static bool read_algorithm(const struct json_t *header, enum jws_algorithm *out_algorithm)
{
    struct zt_text name;

    if (json_member_text(header, "alg", &name) != JSON_FOUND)
        return false;
    if (zt_text_is(name, "RS256"))
        *out_algorithm = JWS_RS256;
    else if (zt_text_is(name, "ES256"))
        *out_algorithm = JWS_ES256;
    else
        return false;
    return true;
}

static bool is_signed(const struct jwks *keys, const struct json_t *header,
                      const struct parts *parts)
{
    uint8_t signature[SIGNATURE_MAX];
    struct jws_number number = {.bytes = signature};
    struct zt_text id = {NULL, 0};
    enum jws_algorithm algorithm;
    bool verified;

    /* crit names extensions that must be understood (RFC 7515 section 4.1.11): none is. */
    if (!read_algorithm(header, &algorithm) || json_member_exists(header, "crit") ||
        json_member_text(header, "kid", &id) == JSON_OTHER ||
        !zt_base64_read(parts->signature, ZT_BASE64_URL, signature, sizeof(signature),
                        &number.length))
        return false;
    verified = jwks_verify(keys, algorithm, id, parts->signed_text, number);
    explicit_bzero(signature, sizeof(signature));
    return verified;
}

/* --- the claims --- */

static bool is_issuer(const struct json_t *claims, const char *issuer)
{
    struct zt_text text;

    return json_member_text(claims, "iss", &text) == JSON_FOUND && zt_text_is(text, issuer);
}

/* One text, or a list of texts. */
static bool is_audience(const struct json_t *claims, const char *audience)
{
    const struct json_t *list = json_member_list(claims, "aud");
    struct zt_text text;
    bool found = false;

    if (list == NULL)
        return json_member_text(claims, "aud", &text) == JSON_FOUND && zt_text_is(text, audience);
    for (size_t i = 0; i < json_list_length(list); i++) {
        if (!json_list_text(list, i, &text))
            return false;
        found = found || zt_text_is(text, audience);
    }
    return found;
}

static enum jwt_verdict check_times(const struct json_t *claims, int64_t skew_s, int64_t now_s,
                                    int64_t *out_expires_s)
{
    int64_t expires_s;
    int64_t begins_s;
    int64_t issued_s;
    const enum json_member begins = json_member_number(claims, "nbf", &begins_s);

    if (json_member_number(claims, "exp", &expires_s) != JSON_FOUND || begins == JSON_OTHER ||
        json_member_number(claims, "iat", &issued_s) == JSON_OTHER)
        return JWT_MALFORMED;
    *out_expires_s = expires_s + skew_s;
    if (now_s >= *out_expires_s)
        return JWT_EXPIRED;
    return begins == JSON_FOUND && now_s < begins_s - skew_s ? JWT_EARLY : JWT_VALID;
}

static bool read_subject(const struct json_t *claims, struct jwt_claims *out_claims)
{
    struct zt_text subject;

    if (json_member_text(claims, "sub", &subject) != JSON_FOUND || subject.length == 0 ||
        subject.length > JWT_SUBJECT_MAX)
        return false;
    memcpy(out_claims->subject, subject.bytes, subject.length);
    out_claims->subject[subject.length] = '\0';
    out_claims->subject_length = subject.length;
    return true;
}

static enum jwt_verdict check_claims(const struct jwt_terms *terms, const struct json_t *claims,
                                     int64_t now_s, struct jwt_claims *out_claims)
{
    if (!is_issuer(claims, terms->issuer))
        return JWT_ISSUER;
    if (!is_audience(claims, terms->audience))
        return JWT_AUDIENCE;
    if (!read_subject(claims, out_claims))
        return JWT_MALFORMED;
    return check_times(claims, terms->skew_s, now_s, &out_claims->expires_s);
}

enum jwt_verdict jwt_check(const struct jwt_terms *terms, struct zt_text token, int64_t now_s,
                           struct jwt_claims *out_claims)
{
    struct parts parts;
    struct json_t *header;
    struct json_t *claims = NULL;
    enum jwt_verdict verdict = JWT_MALFORMED;

    assert(terms->skew_s >= 0);
    if (!split(token, &parts))
        return JWT_MALFORMED;
    header = read_part(parts.header);
    if (header != NULL)
        verdict = JWT_UNSIGNED;
    if (header != NULL && is_signed(terms->keys, header, &parts)) {
        claims = read_part(parts.payload);
        verdict = claims != NULL ? check_claims(terms, claims, now_s, out_claims) : JWT_MALFORMED;
    }
    json_object_free(claims);
    json_object_free(header);
    return verdict;
}
