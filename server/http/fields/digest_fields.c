/* Reads the digests that a request sends or wants, and writes an answer's digests (RFC 9530). It
 * reads only sha-256 and sha-512, the algorithms that the standard recommends. */
#include "http/fields/digest_fields.h"

#include <assert.h>
#include <string.h>

#include "http/fields/structured.h"

/* Weights of Want-… fields (RFC 9530 section 4). */
#define WEIGHT_MAX 10

static bool key_is(const struct structured_member *member, const char *name)
{
    return member->key.length == strlen(name) &&
           memcmp(member->key.bytes, name, member->key.length) == 0;
}

void digest_field_format(const uint8_t sha256[32], char out_text[DIGEST_FIELD_SIZE])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char prefix[] = "sha-256=:";
    char *at;

    memcpy(out_text, prefix, sizeof(prefix) - 1);
    at = out_text + sizeof(prefix) - 1;
    for (unsigned i = 0; i < 32; i += 3) {
        bool cut = i == 30; /* 32 is not a multiple of 3: the last group has two bytes */
        uint32_t group =
            (uint32_t)sha256[i] << 16 | (uint32_t)sha256[i + 1] << 8 | (cut ? 0 : sha256[i + 2]);

        *at++ = alphabet[group >> 18];
        *at++ = alphabet[group >> 12 & 63];
        *at++ = alphabet[group >> 6 & 63];
        *at++ = cut ? '=' : alphabet[group & 63];
    }
    *at++ = ':';
    *at = '\0';
    assert(at < out_text + DIGEST_FIELD_SIZE);
}

/* Returns false if a known algorithm has a malformed value. */
static bool take_digest(const struct structured_member *member, struct digest_field *field)
{
    if (key_is(member, "sha-256")) {
        field->has_sha256 = true;
        return member->kind == STRUCTURED_BYTES &&
               structured_decode(member->text, field->sha256, sizeof(field->sha256));
    }
    if (key_is(member, "sha-512")) {
        field->has_sha512 = true;
        return member->kind == STRUCTURED_BYTES &&
               structured_decode(member->text, field->sha512, sizeof(field->sha512));
    }
    return true;
}

bool digest_field_parse(const char *text, struct digest_field *out_field)
{
    struct digest_field field = {0};
    struct structured_reader reader;
    struct structured_member member;
    enum structured_answer answer;

    structured_begin(&reader, text);
    while ((answer = structured_next(&reader, &member)) == STRUCTURED_MEMBER)
        if (!take_digest(&member, &field))
            return false;
    if (answer == STRUCTURED_MALFORMED)
        return false;
    *out_field = field;
    return true;
}

int digest_field_wants_sha256(const char *text)
{
    int weight;
    struct structured_reader reader;
    struct structured_member member;
    enum structured_answer answer;

    if (text == NULL)
        return 0;
    weight = 0;
    structured_begin(&reader, text);
    while ((answer = structured_next(&reader, &member)) == STRUCTURED_MEMBER) {
        if (key_is(&member, "sha-256")) {
            bool good = member.kind == STRUCTURED_INTEGER && member.integer >= 0 &&
                        member.integer <= WEIGHT_MAX;

            weight = good ? (int)member.integer : 0;
        }
    }
    return answer == STRUCTURED_END ? weight : 0;
}
