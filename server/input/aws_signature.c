/* The encoding of S3, which differs from other services': a path is encoded once. */
#include "input/aws_signature.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/percent.h"
#include "input/blanks.h"
#include "input/ticket.h"
#include "zt/digest.h"

/* --- bytes --- */

static void flush(struct canonical_request *request)
{
    assert(request->hash != NULL && request->used <= sizeof(request->bytes));
    zt_hasher_update(request->hash, request->bytes, request->used);
    request->used = 0;
}

static void put(struct canonical_request *request, const char *bytes, size_t length)
{
    assert(request->used <= sizeof(request->bytes));
    if (length > sizeof(request->bytes) - request->used)
        flush(request);
    if (length > sizeof(request->bytes)) {
        zt_hasher_update(request->hash, bytes, length);
        return;
    }
    memcpy(request->bytes + request->used, bytes, length);
    request->used += length;
}

static void put_text(struct canonical_request *request, struct zt_text text)
{
    if (text.length > 0)
        put(request, text.bytes, text.length);
}

/* The encoded form of what begins at *at in a raw text, which it moves on. A '%' that begins no
 * escape stands for itself. Returns the length. */
static size_t encode_next(struct zt_text raw, size_t *at, bool keeps_slash,
                          char out_bytes[ZT_PERCENT_LENGTH])
{
    const int value = zt_percent_value((struct zt_text){raw.bytes + *at, raw.length - *at});
    const char byte = value >= 0 ? (char)value : raw.bytes[*at];

    assert(*at < raw.length);
    *at += value >= 0 ? ZT_PERCENT_LENGTH : 1;
    return (size_t)(zt_percent_write(out_bytes, (struct zt_text){&byte, 1}, keeps_slash) -
                    out_bytes);
}

static void put_encoded(struct canonical_request *request, struct zt_text raw, bool keeps_slash)
{
    char bytes[ZT_PERCENT_LENGTH];

    for (size_t at = 0; at < raw.length;) {
        const size_t length = encode_next(raw, &at, keeps_slash, bytes);

        put(request, bytes, length);
    }
}

/* --- the query --- */

struct parameter {
    struct zt_text name;
    struct zt_text value;
};

/* Compares the encoded forms of two raw texts. */
static int compare_encoded(struct zt_text one, struct zt_text other)
{
    char bytes[ZT_PERCENT_LENGTH];
    char other_bytes[ZT_PERCENT_LENGTH];
    size_t at = 0;
    size_t other_at = 0;

    while (at < one.length && other_at < other.length) {
        const size_t length = encode_next(one, &at, false, bytes);
        const size_t other_length = encode_next(other, &other_at, false, other_bytes);
        const int order = memcmp(bytes, other_bytes, length < other_length ? length : other_length);

        /* An escape and a plain byte differ at once, by the '%'. */
        if (order != 0)
            return order;
    }
    return (at < one.length) - (other_at < other.length);
}

static int compare_parameters(const void *a, const void *b)
{
    const struct parameter *one = a;
    const struct parameter *other = b;
    const int order = compare_encoded(one->name, other->name);

    return order != 0 ? order : compare_encoded(one->value, other->value);
}

/* Splits a pair at its first '='. */
static struct parameter parameter_of(struct zt_text pair)
{
    const char *equals = memchr(pair.bytes, '=', pair.length);
    const size_t length = equals != NULL ? (size_t)(equals - pair.bytes) : pair.length;
    const size_t value_at = equals != NULL ? length + 1 : length;

    return (struct parameter){{pair.bytes, length},
                              {pair.bytes + value_at, pair.length - value_at}};
}

/* Returns AWS_PARAMETERS_MAX + 1 if there are too many. */
static size_t split_query(struct zt_text raw, const char *without,
                          struct parameter out_parameters[AWS_PARAMETERS_MAX])
{
    size_t count = 0;

    for (size_t at = 0; at < raw.length;) {
        const char *end = memchr(raw.bytes + at, '&', raw.length - at);
        const size_t length = (end != NULL ? (size_t)(end - raw.bytes) : raw.length) - at;
        const struct parameter parameter = parameter_of((struct zt_text){raw.bytes + at, length});

        at += length + 1;
        if (length == 0 ||
            (without != NULL && compare_encoded(parameter.name, zt_text_from(without)) == 0))
            continue;
        if (count == AWS_PARAMETERS_MAX)
            return AWS_PARAMETERS_MAX + 1;
        out_parameters[count++] = parameter;
    }
    return count;
}

bool canonical_request_query(struct canonical_request *request, struct zt_text raw,
                             const char *without)
{
    struct parameter parameters[AWS_PARAMETERS_MAX];
    const size_t count = split_query(raw, without, parameters);

    if (count > 1 && count <= AWS_PARAMETERS_MAX)
        qsort(parameters, count, sizeof(parameters[0]), compare_parameters);
    for (size_t i = 0; i < count && count <= AWS_PARAMETERS_MAX; i++) {
        if (i > 0)
            put(request, "&", 1);
        put_encoded(request, parameters[i].name, false);
        put(request, "=", 1);
        put_encoded(request, parameters[i].value, false);
    }
    put(request, "\n", 1);
    return count <= AWS_PARAMETERS_MAX;
}

/* --- the rest of the request --- */

bool canonical_request_begin(struct canonical_request *request, const char *method)
{
    assert(method[0] != '\0');
    request->used = 0;
    if (zt_hasher_new(ZT_DIGEST_SHA256, &request->hash) != ZT_OK)
        return false;
    put_text(request, zt_text_from(method));
    put(request, "\n", 1);
    return true;
}

void canonical_request_path(struct canonical_request *request, struct zt_text raw)
{
    put_encoded(request, raw, true);
    put(request, "\n", 1);
}

void canonical_request_field(struct canonical_request *request, struct zt_text name)
{
    put_text(request, name);
    put(request, ":", 1);
}

/* Without blanks around it, and with one where there are several. */
static void put_value(struct canonical_request *request, struct zt_text value)
{
    const struct zt_text text = text_trimmed(value);

    for (size_t at = 0; at < text.length; at++)
        if (!is_blank(text.bytes[at]))
            put(request, &text.bytes[at], 1);
        else if (!is_blank(text.bytes[at - 1]))
            put(request, " ", 1);
}

void canonical_request_value(struct canonical_request *request, struct zt_text value, bool is_first)
{
    if (!is_first)
        put(request, ",", 1);
    put_value(request, value);
}

void canonical_request_field_end(struct canonical_request *request)
{
    put(request, "\n", 1);
}

void canonical_request_end(struct canonical_request *request, struct zt_text names,
                           struct zt_text payload, char out_hex[AWS_HEX_SIZE])
{
    struct zt_digest digest;

    put(request, "\n", 1);
    put_text(request, names);
    put(request, "\n", 1);
    put_text(request, payload);
    flush(request);
    zt_hasher_finish(request->hash, &digest);
    zt_hasher_free(request->hash);
    request->hash = NULL;
    assert(2 * (size_t)digest.length_bytes + 1 == AWS_HEX_SIZE);
    zt_hex_write(out_hex, digest.bytes, digest.length_bytes);
}

/* --- the signature --- */

void aws_scope_write(const struct aws_scope *scope, char out_text[AWS_SCOPE_SIZE])
{
    int length;

    assert(scope->day.length == AWS_DAY_LENGTH);
    assert(scope->region.length <= AWS_SCOPE_MAX && scope->service.length <= AWS_SCOPE_MAX);
    length = snprintf(out_text, AWS_SCOPE_SIZE, "%.*s/%.*s/%.*s/" AWS_TERMINATOR,
                      (int)scope->day.length, scope->day.bytes, (int)scope->region.length,
                      scope->region.bytes, (int)scope->service.length, scope->service.bytes);
    assert(length > 0 && length < AWS_SCOPE_SIZE);
    (void)length;
}

bool aws_key_derive(struct zt_text secret, const struct aws_scope *scope,
                    uint8_t out_key[AWS_KEY_BYTES])
{
    char start[AWS_SECRET_MAX + 4] = "AWS4";
    uint8_t key[AWS_KEY_BYTES];
    uint8_t other[AWS_KEY_BYTES];
    bool derived;

    assert(scope->day.length == AWS_DAY_LENGTH && scope->service.length > 0);
    if (secret.length > AWS_SECRET_MAX)
        return false;
    memcpy(start + 4, secret.bytes, secret.length);
    derived = hmac_sha256(start, 4 + secret.length, scope->day, key) &&
              hmac_sha256(key, sizeof(key), scope->region, other) &&
              hmac_sha256(other, sizeof(other), scope->service, key) &&
              hmac_sha256(key, sizeof(key), zt_text_from(AWS_TERMINATOR), out_key);
    explicit_bzero(start, sizeof(start));
    explicit_bzero(key, sizeof(key));
    explicit_bzero(other, sizeof(other));
    return derived;
}

bool aws_sign(const uint8_t key[AWS_KEY_BYTES], const struct aws_head *head, const char *rest,
              uint8_t out_code[AWS_KEY_BYTES])
{
    char text[32 + AWS_DATE_SIZE + AWS_SCOPE_SIZE + AWS_REST_MAX];
    const int length = snprintf(text, sizeof(text), "%s\n%s\n%s\n%s", head->algorithm, head->date,
                                head->scope, rest);

    assert(length > 0 && (size_t)length < sizeof(text));
    return hmac_sha256(key, AWS_KEY_BYTES, (struct zt_text){text, (size_t)length}, out_code);
}
