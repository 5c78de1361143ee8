/* Parses the fields strictly: values that tus does not allow are malformed. */
#include "upload/tus/tus_fields.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "http/fields/structured.h"

/* Maximum number of digits of a number below 2^63; leading zeros count. */
#define DIGITS_MAX 19

bool tus_number_parse(const char *text, uint64_t *out_number)
{
    const struct zt_text digits = zt_text_from(text);

    return digits.length <= DIGITS_MAX && zt_decimal_read(digits, INT64_MAX, out_number);
}

/* Returns the number of bytes that a base64 text encodes; SIZE_MAX if it is not valid. Padding is
 * required. */
static size_t decoded_length(struct zt_text base64)
{
    size_t padding = 0;

    if (base64.length % 4 != 0)
        return SIZE_MAX;
    while (padding < 2 && padding < base64.length &&
           base64.bytes[base64.length - 1 - padding] == '=')
        padding++;
    return base64.length / 4 * 3 - padding;
}

static bool is_key(struct zt_text key)
{
    for (size_t i = 0; i < key.length; i++)
        if (key.bytes[i] <= ' ' || key.bytes[i] >= 0x7F)
            return false;
    return key.length > 0;
}

/* Splits off the next pair; a missing value is empty. */
static bool take_pair(const char **at, struct zt_text *out_key, struct zt_text *out_value)
{
    const char *begin = *at + strspn(*at, " \t");
    const char *end = begin + strcspn(begin, ",");
    const char *blank;
    const char *key_end;
    const char *value;

    assert(**at != '\0');
    *at = *end == ',' ? end + 1 : end;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    blank = memchr(begin, ' ', (size_t)(end - begin));
    key_end = blank != NULL ? blank : end;
    value = blank != NULL ? blank + 1 : end;
    *out_key = (struct zt_text){begin, (size_t)(key_end - begin)};
    *out_value = (struct zt_text){value, (size_t)(end - value)};
    return is_key(*out_key);
}

static bool take_value(struct zt_text base64, char *out_value, size_t size)
{
    size_t length = decoded_length(base64);

    assert(size > 0);
    if (length >= size || !structured_decode(base64, (uint8_t *)out_value, length))
        return false;
    out_value[length] = '\0';
    return memchr(out_value, '\0', length) == NULL;
}

enum tus_metadata tus_metadata_find(const char *field, const char *key, char *out_value,
                                    size_t size)
{
    enum tus_metadata answer = TUS_METADATA_ABSENT;
    const char *at = field;

    while (*at != '\0') {
        struct zt_text name;
        struct zt_text value;

        if (!take_pair(&at, &name, &value) || decoded_length(value) == SIZE_MAX)
            return TUS_METADATA_MALFORMED;
        if (name.length != strlen(key) || memcmp(name.bytes, key, name.length) != 0)
            continue;
        if (answer == TUS_METADATA_FOUND || !take_value(value, out_value, size))
            return TUS_METADATA_MALFORMED;
        answer = TUS_METADATA_FOUND;
    }
    return answer;
}

bool tus_metadata_is_of_file(const char *field)
{
    char ignored[1];

    return tus_metadata_find(field, "model", ignored, sizeof(ignored)) == TUS_METADATA_ABSENT &&
           tus_metadata_find(field, "path", ignored, sizeof(ignored)) != TUS_METADATA_ABSENT;
}

enum tus_checksum tus_checksum_parse(const char *field, struct zt_digest *out_digest)
{
    static const struct {
        const char *name;
        enum zt_digest_algorithm algorithm;
        uint8_t length;
    } known[] = {{"sha1", ZT_DIGEST_SHA1, 20}, {"sha256", ZT_DIGEST_SHA256, 32}};
    size_t name_length = strcspn(field, " ");
    struct zt_text value = {field + name_length, 0};

    if (name_length == 0 || *value.bytes != ' ')
        return TUS_CHECKSUM_MALFORMED;
    value.bytes++;
    value.length = strlen(value.bytes);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct zt_digest digest;

        if (strlen(known[i].name) != name_length || memcmp(known[i].name, field, name_length) != 0)
            continue;
        digest =
            (struct zt_digest){.algorithm = known[i].algorithm, .length_bytes = known[i].length};
        if (decoded_length(value) != known[i].length ||
            !structured_decode(value, digest.bytes, known[i].length))
            return TUS_CHECKSUM_MALFORMED;
        *out_digest = digest;
        return TUS_CHECKSUM_KNOWN;
    }
    return TUS_CHECKSUM_UNKNOWN;
}

/* --- Upload-Concat --- */

#define UPLOADS_PATH "/v1/resumable"
#define BLANKS       " \t"

enum tus_concat tus_concat_parse(const char *field, const char **out_urls)
{
    static const char final[] = "final;";
    size_t length = strlen(final);

    if (strcmp(field, "partial") == 0)
        return TUS_CONCAT_PART;
    if (strncmp(field, final, length) != 0 ||
        field[length + strspn(field + length, BLANKS)] == '\0')
        return TUS_CONCAT_MALFORMED;
    *out_urls = field + length;
    return TUS_CONCAT_FINAL;
}

static bool begins_with(struct zt_text text, const char *beginning)
{
    size_t length = strlen(beginning);

    return text.length >= length && strncasecmp(text.bytes, beginning, length) == 0;
}

static bool ends_with(struct zt_text text, const char *end)
{
    size_t length = strlen(end);

    return text.length >= length && memcmp(text.bytes + text.length - length, end, length) == 0;
}

/* Returns true if a reference (RFC 3986 section 4.2) leads to UPLOADS_PATH: an absolute path,
 * perhaps with a host or a proxy's prefix before it, or a path relative to UPLOADS_PATH. */
static bool is_place_of_uploads(struct zt_text place)
{
    const bool is_absolute =
        begins_with(place, "http://") || begins_with(place, "https://") || begins_with(place, "/");

    return is_absolute ? ends_with(place, UPLOADS_PATH) : zt_text_is(place, "resumable");
}

bool tus_concat_next(const char **at, struct zt_text *out_id)
{
    const char *begin = *at + strspn(*at, BLANKS);
    const char *end = begin + strcspn(begin, BLANKS);
    const char *slash = memrchr(begin, '/', (size_t)(end - begin));

    *at = end;
    *out_id = (struct zt_text){"", 0};
    if (slash != NULL && is_place_of_uploads((struct zt_text){begin, (size_t)(slash - begin)}))
        *out_id = (struct zt_text){slash + 1, (size_t)(end - slash - 1)};
    return begin < end;
}
