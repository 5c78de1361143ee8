/* Reads the keys of a set one by one. Keys for other uses than signatures are ignored, and the
 * file's statements about a key must fit the one algorithm that the key can check. */
#include "access/jwks.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "input/json_read.h"
#include "input/text_file.h"

#define KEY "auth.jwks"
/* Names and ids are cut in messages. */
#define SHOWN 64

struct jwk {
    char *id; /* NULL: none */
    struct jws_key *key;
};

struct jwks {
    struct jwk keys[JWKS_MAX];
    size_t count;
};

/* One key while it is read. */
struct reader {
    const char *path;
    char *error;
    size_t error_size;
    size_t number; /* from 1 */
    const struct json_t *object;
    struct zt_text id; /* bytes NULL: none */
};

/* "auth.jwks: FILE, key 2 (id): " */
static size_t begin_message(const struct reader *reader, char *text, size_t size)
{
    const int shown = (int)(reader->id.length < SHOWN ? reader->id.length : SHOWN);
    const int length =
        reader->id.bytes != NULL
            ? snprintf(text, size, KEY ": %s, key %zu (%.*s): ", reader->path, reader->number,
                       shown, reader->id.bytes)
            : snprintf(text, size, KEY ": %s, key %zu: ", reader->path, reader->number);

    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

static bool fail(const struct reader *reader, const char *why)
{
    const size_t length = begin_message(reader, reader->error, reader->error_size);

    snprintf(reader->error + length, reader->error_size - length, "%s", why);
    return false;
}

static void warn(const struct reader *reader, const char *what)
{
    char text[512];

    begin_message(reader, text, sizeof(text));
    log_write(LOG_LEVEL_WARN, "%s%s", text, what);
}

/* --- members --- */

/* Whether a member is absent or this text. */
static bool may_be(const struct reader *reader, const char *name, const char *wanted)
{
    struct zt_text text;
    const enum json_member found = json_member_text(reader->object, name, &text);

    return found == JSON_ABSENT || (found == JSON_FOUND && zt_text_is(text, wanted));
}

/* RFC 7517 sections 4.2 to 4.4: what the key is for. */
static bool is_for_signatures(const struct reader *reader, const char *algorithm)
{
    const struct json_t *operations = json_member_list(reader->object, "key_ops");
    bool verifies = operations == NULL && !json_member_exists(reader->object, "key_ops");

    for (size_t i = 0; operations != NULL && i < json_list_length(operations); i++) {
        struct zt_text text;

        verifies = verifies || (json_list_text(operations, i, &text) && zt_text_is(text, "verify"));
    }
    return verifies && may_be(reader, "use", "sig") && may_be(reader, "alg", algorithm);
}

static bool read_number(const struct reader *reader, const char *name, uint8_t *out_bytes,
                        struct jws_number *number, size_t size)
{
    struct zt_text text;

    number->bytes = out_bytes;
    return json_member_text(reader->object, name, &text) == JSON_FOUND &&
           zt_base64_read(text, ZT_BASE64_URL, out_bytes, size, &number->length) &&
           number->length > 0;
}

static struct jws_key *read_rsa(const struct reader *reader)
{
    uint8_t modulus_bytes[JWS_RSA_BITS_MAX / 8 + 1];
    uint8_t exponent_bytes[sizeof(uint64_t)];
    struct jws_number modulus;
    struct jws_number exponent;
    const char *why = "";
    struct jws_key *key;

    if (!read_number(reader, "n", modulus_bytes, &modulus, sizeof(modulus_bytes)) ||
        !read_number(reader, "e", exponent_bytes, &exponent, sizeof(exponent_bytes))) {
        fail(reader, "n and e must be numbers in base64url, of at most 8192 and 32 bits");
        return NULL;
    }
    key = jws_key_rsa(modulus, exponent, &why);
    if (key == NULL)
        fail(reader, why);
    return key;
}

static struct jws_key *read_ec(const struct reader *reader)
{
    uint8_t bytes[2][JWS_EC_BYTES];
    struct jws_number x;
    struct jws_number y;
    const char *why = "";
    struct jws_key *key;

    if (!read_number(reader, "x", bytes[0], &x, JWS_EC_BYTES) ||
        !read_number(reader, "y", bytes[1], &y, JWS_EC_BYTES) || x.length != JWS_EC_BYTES ||
        y.length != JWS_EC_BYTES) {
        fail(reader, "x and y must be 32 bytes each, in base64url");
        return NULL;
    }
    key = jws_key_ec(bytes[0], bytes[1], &why);
    if (key == NULL)
        fail(reader, why);
    return key;
}

/* --- keys --- */

/* Takes over the key. */
static bool add(struct jwks *keys, const struct reader *reader, struct jws_key *key)
{
    struct jwk *jwk = &keys->keys[keys->count];

    assert(keys->count < JWKS_MAX);
    if (key == NULL)
        return false;
    jwk->id = reader->id.bytes != NULL ? strdup(reader->id.bytes) : NULL;
    if (reader->id.bytes != NULL && jwk->id == NULL) {
        jws_key_free(key);
        return fail(reader, "out of memory");
    }
    jwk->key = key;
    keys->count++;
    if (json_member_exists(reader->object, "d"))
        warn(reader, "this is a private key; only its public part is needed");
    return true;
}

static bool read_key(struct jwks *keys, struct reader *reader)
{
    struct zt_text kind;
    const enum json_member id = json_member_text(reader->object, "kid", &reader->id);

    if (id != JSON_FOUND)
        reader->id = (struct zt_text){NULL, 0};
    if (id == JSON_OTHER)
        return fail(reader, "kid must be a string");
    if (json_member_text(reader->object, "kty", &kind) != JSON_FOUND)
        return fail(reader, "kty must be a string");
    if (zt_text_is(kind, "RSA") && is_for_signatures(reader, "RS256"))
        return add(keys, reader, read_rsa(reader));
    if (zt_text_is(kind, "EC") && may_be(reader, "crv", "P-256") &&
        is_for_signatures(reader, "ES256"))
        return add(keys, reader, read_ec(reader));
    warn(reader, "skipped, because it cannot check RS256 or ES256");
    return true;
}

static bool read_keys(struct jwks *keys, const struct json_t *document, struct reader *reader)
{
    const struct json_t *list = json_member_list(document, "keys");

    if (list == NULL) {
        snprintf(reader->error, reader->error_size, KEY ": %s: there is no list \"keys\"",
                 reader->path);
        return false;
    }
    for (size_t i = 0; i < json_list_length(list); i++) {
        reader->number = i + 1;
        reader->id = (struct zt_text){NULL, 0};
        reader->object = json_list_object(list, i);
        if (reader->object == NULL)
            return fail(reader, "not an object");
        if (i == JWKS_MAX)
            return fail(reader, "there are more than 32 keys");
        if (!read_key(keys, reader))
            return false;
    }
    if (keys->count > 0)
        return true;
    snprintf(reader->error, reader->error_size,
             KEY ": %s: none of the %zu keys can check RS256 or ES256", reader->path,
             json_list_length(list));
    return false;
}

/* --- the file --- */

static void say_mistake(const struct reader *reader, const struct json_mistake *mistake)
{
    if (mistake->line > 0)
        snprintf(reader->error, reader->error_size,
                 KEY ": %s: line %d, column %d: not valid JSON: %s", reader->path, mistake->line,
                 mistake->column, mistake->why);
    else
        snprintf(reader->error, reader->error_size, KEY ": %s: %s", reader->path, mistake->why);
}

struct jwks *jwks_parse(struct zt_text text, const char *path, char *error, size_t error_size)
{
    struct reader reader = {.path = path, .error = error, .error_size = error_size};
    struct json_mistake mistake;
    struct json_t *document = json_object_read(text, &mistake);
    struct jwks *keys;

    if (document == NULL) {
        say_mistake(&reader, &mistake);
        return NULL;
    }
    keys = calloc(1, sizeof(*keys));
    if (keys == NULL)
        snprintf(error, error_size, KEY ": out of memory");
    if (keys != NULL && !read_keys(keys, document, &reader)) {
        jwks_free(keys);
        keys = NULL;
    }
    json_object_free(document);
    return keys;
}

struct jwks *jwks_load(const char *path, char *error, size_t error_size)
{
    struct text_file file;
    struct jwks *keys;

    if (!text_file_read(KEY, path, &file, error, error_size))
        return NULL;
    keys = jwks_parse((struct zt_text){file.text, file.length}, path, error, error_size);
    text_file_free(&file);
    return keys;
}

void jwks_free(struct jwks *keys)
{
    if (keys == NULL)
        return;
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->keys[i].id);
        jws_key_free(keys->keys[i].key);
    }
    free(keys);
}

bool jwks_verify(const struct jwks *keys, enum jws_algorithm algorithm, struct zt_text id,
                 struct zt_text text, struct jws_number signature)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct jwk *jwk = &keys->keys[i];

        if (jws_key_algorithm(jwk->key) != algorithm ||
            (id.bytes != NULL && (jwk->id == NULL || !zt_text_is(id, jwk->id))))
            continue;
        if (jws_key_verifies(jwk->key, text, signature.bytes, signature.length))
            return true;
    }
    return false;
}
