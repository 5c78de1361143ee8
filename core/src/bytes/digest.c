/* Digests: their text and their comparison (zTensor 1.2 section 1, zTensor 2 parts). hasher.c
 * computes them. */
#include "zt/digest.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"

/* The algorithms of digests in files. SHA-512 and SHA-1 are for requests, CRC-32 for the entries of
 * ZIP archives: in any other file they are unknown. */
struct spelling {
    const char *prefix;
    enum zt_digest_algorithm algorithm;
    uint8_t length_bytes;
    /* A number: it may begin with 0x, and leading zeros may be missing. */
    bool is_number;
};

static const struct spelling spellings[] = {
    {"sha256:", ZT_DIGEST_SHA256, 32, false},
    {"crc32c:", ZT_DIGEST_CRC32C, 4, true},
    {"xxh3:", ZT_DIGEST_XXH3, 8, false},
};

static const struct spelling zip_spelling = {"crc32:", ZT_DIGEST_CRC32, 4, false};

static const struct spelling *find_spelling(struct zt_text text)
{
    for (size_t i = 0; i < sizeof(spellings) / sizeof(*spellings); i++) {
        size_t length = strlen(spellings[i].prefix);

        if (text.length >= length && strncasecmp(text.bytes, spellings[i].prefix, length) == 0)
            return &spellings[i];
    }
    return NULL;
}

/* Fills bytes from the right, so that a number with fewer digits keeps its value. False for
 * anything but hex digits. */
static bool read_hex(const char *hex, size_t digits, uint8_t *bytes, size_t length_bytes)
{
    assert(digits <= 2 * length_bytes);
    memset(bytes, 0, length_bytes);
    for (size_t i = 0; i < digits; i++) {
        int value = zt_hex_value(hex[digits - 1 - i]);

        if (value < 0)
            return false;
        bytes[length_bytes - 1 - i / 2] |= (uint8_t)(value << (i % 2 * 4));
    }
    return true;
}

/* The text begins with the spelling's prefix. */
static enum zt_status parse_hex(struct zt_text text, const struct spelling *spelling,
                                struct zt_digest *out_digest, struct zt_error *error)
{
    struct zt_digest digest = {0};
    const char *hex;
    size_t digits;

    hex = text.bytes + strlen(spelling->prefix);
    digits = text.length - strlen(spelling->prefix);
    if (spelling->is_number && digits > 2 && hex[0] == '0' && (hex[1] == 'x' || hex[1] == 'X')) {
        hex += 2;
        digits -= 2;
    }
    if (spelling->is_number ? digits == 0 || digits > 2u * spelling->length_bytes
                            : digits != 2u * spelling->length_bytes)
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                       "a digest of %zu hex digits cannot be %.*s", digits,
                       (int)strlen(spelling->prefix) - 1, spelling->prefix);
    digest.algorithm = spelling->algorithm;
    digest.length_bytes = spelling->length_bytes;
    if (!read_hex(hex, digits, digest.bytes, digest.length_bytes))
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "the digest is not hexadecimal");
    *out_digest = digest;
    return ZT_OK;
}

enum zt_status zt_digest_parse(struct zt_text text, struct zt_digest *out_digest,
                               struct zt_error *error)
{
    const struct spelling *spelling = find_spelling(text);

    if (spelling == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "the digest's algorithm is not known");
    return parse_hex(text, spelling, out_digest, error);
}

bool zt_digest_algorithm(struct zt_text text, enum zt_digest_algorithm *out_algorithm)
{
    const struct spelling *spelling = find_spelling(text);

    if (spelling != NULL)
        *out_algorithm = spelling->algorithm;
    return spelling != NULL;
}

enum zt_status zt_digest_parse_zip(struct zt_text text, struct zt_digest *out_digest,
                                   struct zt_error *error)
{
    if (!zt_text_starts_with(text, zt_text_from(zip_spelling.prefix)))
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "the digest's algorithm is not known");
    return parse_hex(text, &zip_spelling, out_digest, error);
}

bool zt_digest_equal(const struct zt_digest *a, const struct zt_digest *b)
{
    return a->algorithm == b->algorithm && a->length_bytes == b->length_bytes &&
           memcmp(a->bytes, b->bytes, a->length_bytes) == 0;
}

static const char *format_prefix(enum zt_digest_algorithm algorithm)
{
    switch (algorithm) {
    case ZT_DIGEST_SHA256:
        return "sha256:";
    case ZT_DIGEST_CRC32C:
        return "crc32c:0x";
    case ZT_DIGEST_XXH3:
        return "xxh3:";
    case ZT_DIGEST_CRC32:
        return "crc32:";
    case ZT_DIGEST_SHA1:
        return "sha1:";
    case ZT_DIGEST_SHA512:
        break;
    }
    return "sha512:";
}

void zt_digest_format(const struct zt_digest *digest, char out_text[ZT_DIGEST_TEXT_SIZE])
{
    bool upper = digest->algorithm == ZT_DIGEST_CRC32C;
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char *at = stpcpy(out_text, format_prefix(digest->algorithm));

    assert(digest->length_bytes <= ZT_DIGEST_MAX_BYTES);
    for (size_t i = 0; i < digest->length_bytes; i++) {
        *at++ = digits[digest->bytes[i] >> 4];
        *at++ = digits[digest->bytes[i] & 15];
    }
    assert(at < out_text + ZT_DIGEST_TEXT_SIZE);
    *at = '\0';
}
