/* Reads signatures and checks them. Clients separate the parts of the field by commas with or
 * without blanks; the same parts are parameters of a presigned address, percent-encoded. */
#include "http/fields/sigv4.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/hex.h"
#include "http/fields/grammar.h"
#include "http/fields/uri.h"
#include "input/blanks.h"
#include "input/ticket.h"

/* More than a header has fields. */
#define NAMES_MAX 100

#define DATE_FIELD    "x-amz-date"
#define PAYLOAD_FIELD "x-amz-content-sha256"
#define UNSIGNED      "UNSIGNED-PAYLOAD"

static const char malformed_credential[] =
    "the credential must be KEY/YYYYMMDD/REGION/s3/aws4_request";

/* --- fields --- */

static bool is_named(const struct header_field *field, struct zt_text name)
{
    return field->name_length == name.length &&
           strncasecmp(field->name, name.bytes, name.length) == 0;
}

/* Finds the only field of a name. Returns how many there are. */
static unsigned find_field(const struct sigv4_request *request, const char *name,
                           struct zt_text *out_value)
{
    const struct zt_text wanted = zt_text_from(name);
    unsigned count = 0;

    for (unsigned i = 0; i < request->field_count; i++) {
        const struct header_field *field = &request->fields[i];

        if (!is_named(field, wanted))
            continue;
        *out_value = text_trimmed((struct zt_text){field->value, field->value_length});
        count++;
    }
    return count;
}

/* Cuts off what comes before the first separator, and the separator. The rest may be empty. */
static struct zt_text take_until(struct zt_text *rest, char separator)
{
    const char *end = memchr(rest->bytes, separator, rest->length);
    const size_t length = end != NULL ? (size_t)(end - rest->bytes) : rest->length;
    const size_t taken = end != NULL ? length + 1 : length;
    const struct zt_text part = {rest->bytes, length};

    *rest = (struct zt_text){rest->bytes + taken, rest->length - taken};
    return part;
}

/* --- the parts of a signature --- */

/* An access key may contain '/', so the four other parts are taken from the end. */
static bool read_credential(struct zt_text text, struct sigv4 *signature, const char **out_why)
{
    struct zt_text parts[4]; /* the last first */
    size_t count = 0;

    while (count < 4) {
        const char *slash = memrchr(text.bytes, '/', text.length);
        const size_t at = slash != NULL ? (size_t)(slash - text.bytes) : 0;

        *out_why = malformed_credential;
        if (slash == NULL)
            return false;
        parts[count++] = (struct zt_text){slash + 1, text.length - at - 1};
        text.length = at;
    }
    if (text.length == 0 || text.length > SIGV4_KEY_MAX || parts[3].length != AWS_DAY_LENGTH ||
        parts[2].length == 0 || parts[2].length > AWS_SCOPE_MAX || !zt_text_is(parts[1], "s3") ||
        !zt_text_is(parts[0], AWS_TERMINATOR))
        return false;
    assert(zt_text_is(parts[0], AWS_TERMINATOR) && parts[3].length == AWS_DAY_LENGTH);
    signature->access_key = text;
    signature->scope = (struct aws_scope){.day = parts[3], .region = parts[2], .service = parts[1]};
    return true;
}

/* "20150830T123600Z" */
static bool read_date(struct zt_text text, struct sigv4 *signature, const char **out_why)
{
    struct tm parts = {0};
    const char *end;

    assert(signature->scope.day.length == AWS_DAY_LENGTH);
    *out_why = "the date must be like 20150830T123600Z, in " DATE_FIELD " or X-Amz-Date";
    if (text.length != AWS_DATE_SIZE - 1)
        return false;
    memcpy(signature->date, text.bytes, text.length);
    signature->date[text.length] = '\0';
    for (size_t i = 0; i < text.length; i++)
        if (!is_digit(text.bytes[i]) != (i == AWS_DAY_LENGTH || i == text.length - 1))
            return false;
    end = strptime(signature->date, "%Y%m%dT%H%M%SZ", &parts);
    if (end == NULL || *end != '\0')
        return false;
    signature->date_s = timegm(&parts);
    *out_why = "the credential's day is not the day of the date";
    return memcmp(signature->scope.day.bytes, signature->date, AWS_DAY_LENGTH) == 0;
}

/* Lower-case names, joined by ';'. */
static bool names_are_valid(struct zt_text names)
{
    unsigned count = 0;

    while (names.length > 0) {
        const struct zt_text name = take_until(&names, ';');

        if (name.length == 0 || ++count > NAMES_MAX)
            return false;
        for (size_t i = 0; i < name.length; i++)
            if (!is_token_char(name.bytes[i]) || (name.bytes[i] >= 'A' && name.bytes[i] <= 'Z'))
                return false;
    }
    return count > 0;
}

static bool has_name(struct zt_text names, const char *name)
{
    while (names.length > 0)
        if (zt_text_is(take_until(&names, ';'), name))
            return true;
    return false;
}

static bool read_names(struct zt_text text, struct sigv4 *signature, const char **out_why)
{
    *out_why = "SignedHeaders must be names in lower case, joined by ';', among them host";
    signature->signed_names = text;
    return names_are_valid(text) && has_name(text, "host");
}

static bool read_signature(struct zt_text text, struct sigv4 *signature, const char **out_why)
{
    *out_why = "Signature must be 64 hexadecimal digits in lower case";
    return zt_hex_read_lower(text, signature->signature, sizeof(signature->signature));
}

/* --- in the Authorization field --- */

/* The parts after the scheme, in any order, each once. */
enum part { PART_CREDENTIAL, PART_NAMES, PART_SIGNATURE, PARTS };

static bool split_parts(struct zt_text text, struct zt_text out_parts[PARTS])
{
    static const char *const names[PARTS] = {"Credential", "SignedHeaders", "Signature"};
    unsigned found = 0;

    while (text.length > 0) {
        struct zt_text value = text_trimmed(take_until(&text, ','));
        const struct zt_text name = take_until(&value, '=');
        unsigned part = 0;

        while (part < PARTS && !zt_text_is(name, names[part]))
            part++;
        if (part == PARTS || (found >> part & 1) != 0)
            return false;
        out_parts[part] = value;
        found |= 1U << part;
    }
    return found == (1U << PARTS) - 1;
}

static bool read_header(const struct sigv4_request *request, struct zt_text parameters,
                        struct sigv4 *signature, const char **out_why)
{
    struct zt_text parts[PARTS];
    struct zt_text date;

    *out_why = "Authorization must have Credential, SignedHeaders and Signature, joined by commas";
    if (!split_parts(parameters, parts))
        return false;
    *out_why = "the request must have one field " DATE_FIELD ", which is signed";
    if (find_field(request, DATE_FIELD, &date) != 1)
        return false;
    if (!read_credential(parts[PART_CREDENTIAL], signature, out_why) ||
        !read_names(parts[PART_NAMES], signature, out_why) ||
        !read_signature(parts[PART_SIGNATURE], signature, out_why) ||
        !read_date(date, signature, out_why))
        return false;
    /* curl of Debian 12 leaves it out: then the body must be empty. */
    signature->payload = zt_text_from(AWS_EMPTY_SHA256);
    *out_why = "the request must have only one field " PAYLOAD_FIELD;
    return find_field(request, PAYLOAD_FIELD, &signature->payload) <= 1;
}

/* --- in the query --- */

/* The next free bytes of signature->decoded. */
struct decoder {
    struct sigv4 *signature;
    const char *target;
    size_t used;
};

/* Decodes the only parameter of a name. */
static bool take_parameter(struct decoder *decoder, const char *name, struct zt_text *out_value)
{
    char *to = decoder->signature->decoded + decoder->used;
    struct zt_text raw;
    struct zt_text more;
    size_t length;

    assert(decoder->used <= sizeof(decoder->signature->decoded));
    if (!query_find(decoder->target, name, 0, &raw) ||
        query_find(decoder->target, name, 1, &more) ||
        raw.length > sizeof(decoder->signature->decoded) - decoder->used ||
        !percent_decode(raw, to, &length))
        return false;
    *out_value = (struct zt_text){to, length};
    decoder->used += length;
    return true;
}

static bool read_expires(struct zt_text text, struct sigv4 *signature)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < text.length; i++) {
        if (!is_digit(text.bytes[i]) || seconds > SIGV4_EXPIRES_MAX)
            return false;
        seconds = 10 * seconds + (text.bytes[i] - '0');
    }
    signature->expires_s = seconds;
    return seconds >= 1 && seconds <= SIGV4_EXPIRES_MAX;
}

/* Finds the text for the body: in the field, or else in the parameter. Presigned addresses may have
 * neither. */
static bool read_payload(struct decoder *decoder, const struct sigv4_request *request)
{
    struct zt_text *payload = &decoder->signature->payload;
    struct zt_text raw;

    switch (find_field(request, PAYLOAD_FIELD, payload)) {
    case 0:
        *payload = zt_text_from(UNSIGNED);
        return !query_find(decoder->target, "X-Amz-Content-Sha256", 0, &raw) ||
               take_parameter(decoder, "X-Amz-Content-Sha256", payload);
    case 1:
        return true;
    default:
        return false;
    }
}

static bool read_query(const struct sigv4_request *request, struct sigv4 *signature,
                       const char **out_why)
{
    struct decoder decoder = {signature, request->target, 0};
    struct zt_text algorithm;
    struct zt_text parts[PARTS];
    struct zt_text date;
    struct zt_text expires;

    *out_why = "a presigned address must have X-Amz-Algorithm, X-Amz-Credential, X-Amz-Date, "
               "X-Amz-Expires, X-Amz-SignedHeaders and X-Amz-Signature, each once";
    if (!take_parameter(&decoder, "X-Amz-Algorithm", &algorithm) ||
        !take_parameter(&decoder, "X-Amz-Credential", &parts[PART_CREDENTIAL]) ||
        !take_parameter(&decoder, "X-Amz-Date", &date) ||
        !take_parameter(&decoder, "X-Amz-Expires", &expires) ||
        !take_parameter(&decoder, "X-Amz-SignedHeaders", &parts[PART_NAMES]) ||
        !take_parameter(&decoder, "X-Amz-Signature", &parts[PART_SIGNATURE]) ||
        !read_payload(&decoder, request))
        return false;
    *out_why = "X-Amz-Algorithm must be " AWS_ALGORITHM;
    if (!zt_text_is(algorithm, AWS_ALGORITHM) ||
        !read_credential(parts[PART_CREDENTIAL], signature, out_why) ||
        !read_names(parts[PART_NAMES], signature, out_why) ||
        !read_signature(parts[PART_SIGNATURE], signature, out_why) ||
        !read_date(date, signature, out_why))
        return false;
    *out_why = "X-Amz-Expires must be 1 to 604800 seconds";
    return read_expires(expires, signature);
}

/* --- either --- */

static bool is_presigned(const char *target)
{
    struct zt_text raw;

    return query_find(target, "X-Amz-Signature", 0, &raw) ||
           query_find(target, "X-Amz-Algorithm", 0, &raw);
}

/* Returns true if the scheme is ours, with what follows it. */
static bool take_scheme(struct zt_text value, struct zt_text *out_parameters)
{
    const size_t length = sizeof(AWS_ALGORITHM) - 1;

    if (value.length <= length || strncasecmp(value.bytes, AWS_ALGORITHM, length) != 0 ||
        !is_blank(value.bytes[length]))
        return false;
    *out_parameters = text_trimmed((struct zt_text){value.bytes + length, value.length - length});
    return true;
}

static enum sigv4_form read_either(const struct sigv4_request *request, struct sigv4 *signature,
                                   const char **out_why)
{
    struct zt_text value = {"", 0};
    struct zt_text parameters;
    const unsigned count = find_field(request, "Authorization", &value);
    const bool is_in_query = is_presigned(request->target);

    if (count > 0 && is_in_query) {
        *out_why = "the request must have only one kind of credentials: Authorization, or the "
                   "parameters of a presigned address";
        return SIGV4_MALFORMED;
    }
    if (is_in_query)
        return read_query(request, signature, out_why) ? SIGV4_QUERY : SIGV4_MALFORMED;
    if (!take_scheme(value, &parameters))
        return SIGV4_ABSENT;
    *out_why = "the request must have one field Authorization";
    return count == 1 && read_header(request, parameters, signature, out_why) ? SIGV4_HEADER
                                                                              : SIGV4_MALFORMED;
}

enum sigv4_form sigv4_read(const struct sigv4_request *request, struct sigv4 *out_signature,
                           const char **out_why)
{
    const char *why = NULL;

    out_signature->form = read_either(request, out_signature, &why);
    assert(out_signature->form != SIGV4_MALFORMED || why != NULL);
    *out_why = out_signature->form == SIGV4_MALFORMED ? why : NULL;
    return out_signature->form;
}

const struct header_field *sigv4_unsigned_field(const struct sigv4 *signature,
                                                const struct sigv4_request *request)
{
    static const char prefix[] = "x-amz-";

    assert(signature->signed_names.length > 0);
    for (unsigned i = 0; i < request->field_count; i++) {
        const struct header_field *field = &request->fields[i];
        struct zt_text names = signature->signed_names;
        bool is_signed = strncasecmp(field->name, prefix, sizeof(prefix) - 1) != 0;

        while (!is_signed && names.length > 0)
            is_signed = is_named(field, take_until(&names, ';'));
        if (!is_signed)
            return field;
    }
    return NULL;
}

enum sigv4_time sigv4_check_time(const struct sigv4 *signature, int64_t now_s)
{
    const int64_t age_s = now_s - signature->date_s;

    if (signature->form == SIGV4_HEADER)
        return age_s > SIGV4_SKEW_S || age_s < -SIGV4_SKEW_S ? SIGV4_SKEWED : SIGV4_TIMELY;
    assert(signature->form == SIGV4_QUERY);
    if (age_s < -SIGV4_SKEW_S)
        return SIGV4_EARLY;
    return age_s > signature->expires_s ? SIGV4_EXPIRED : SIGV4_TIMELY;
}

/* --- the signature --- */

static void add_field(struct canonical_request *canonical, const struct sigv4_request *request,
                      struct zt_text name)
{
    bool is_first = true;

    assert(name.length > 0);
    canonical_request_field(canonical, name);
    for (unsigned i = 0; i < request->field_count; i++) {
        const struct header_field *field = &request->fields[i];

        if (!is_named(field, name))
            continue;
        canonical_request_value(canonical, (struct zt_text){field->value, field->value_length},
                                is_first);
        is_first = false;
    }
    canonical_request_field_end(canonical);
}

static bool hash_request(const struct sigv4 *signature, const struct sigv4_request *request,
                         char out_hex[AWS_HEX_SIZE])
{
    const char *query = query_begin(request->target);
    struct zt_text names = signature->signed_names;
    struct canonical_request canonical;
    struct zt_text path;
    bool hashed;

    if (target_path(request->target, &path) != TARGET_PATH ||
        !canonical_request_begin(&canonical, request->method))
        return false;
    canonical_request_path(&canonical, path);
    hashed = canonical_request_query(&canonical, zt_text_from(query != NULL ? query + 1 : ""),
                                     signature->form == SIGV4_QUERY ? "X-Amz-Signature" : NULL);
    while (names.length > 0)
        add_field(&canonical, request, take_until(&names, ';'));
    canonical_request_end(&canonical, signature->signed_names, signature->payload, out_hex);
    return hashed;
}

bool sigv4_verify(const struct sigv4 *signature, const struct sigv4_request *request,
                  const uint8_t key[AWS_KEY_BYTES])
{
    char scope[AWS_SCOPE_SIZE];
    const struct aws_head head = {AWS_ALGORITHM, signature->date, scope};
    char request_hex[AWS_HEX_SIZE];
    uint8_t expected[AWS_KEY_BYTES];

    assert(signature->form == SIGV4_HEADER || signature->form == SIGV4_QUERY);
    aws_scope_write(&signature->scope, scope);
    return hash_request(signature, request, request_hex) &&
           aws_sign(key, &head, request_hex, expected) &&
           secret_equal(expected, signature->signature, sizeof(expected));
}

/* --- the body --- */

void sigv4_payload_read(struct zt_text text, struct sigv4_body *out_body)
{
    static const struct {
        const char *text;
        enum sigv4_payload payload;
    } words[] = {
        {"", SIGV4_PAYLOAD_UNSTATED},
        {UNSIGNED, SIGV4_PAYLOAD_UNSIGNED},
        {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", SIGV4_PAYLOAD_UNSIGNED_TRAILER},
        {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", SIGV4_PAYLOAD_CHUNKS},
        {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", SIGV4_PAYLOAD_CHUNKS_TRAILER},
    };

    *out_body = (struct sigv4_body){.payload = SIGV4_PAYLOAD_UNKNOWN};
    if (zt_hex_read(text, out_body->sha256, sizeof(out_body->sha256))) {
        out_body->payload = SIGV4_PAYLOAD_SHA256;
        return;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (zt_text_is(text, words[i].text))
            out_body->payload = words[i].payload;
}

void sigv4_body_seed(const struct sigv4 *signature, const uint8_t key[AWS_KEY_BYTES],
                     struct sigv4_body *body)
{
    assert(!body->is_verified);
    memcpy(body->key, key, sizeof(body->key));
    zt_hex_write(body->seed, signature->signature, sizeof(signature->signature));
    memcpy(body->date, signature->date, sizeof(body->date));
    aws_scope_write(&signature->scope, body->scope);
    body->is_verified = true;
}

/* between: what a chunk has between the two hashes. */
static bool sign_next(const struct sigv4_body *body, const char *algorithm, const char *between,
                      const char previous[AWS_HEX_SIZE], const uint8_t sha256[32],
                      char out_hex[AWS_HEX_SIZE])
{
    const struct aws_head head = {algorithm, body->date, body->scope};
    char hex[AWS_HEX_SIZE];
    char rest[AWS_REST_MAX];
    uint8_t code[AWS_KEY_BYTES];

    assert(body->is_verified && strlen(previous) == AWS_HEX_SIZE - 1);
    zt_hex_write(hex, sha256, 32);
    snprintf(rest, sizeof(rest), "%s\n%s%s", previous, between, hex);
    if (!aws_sign(body->key, &head, rest, code))
        return false;
    zt_hex_write(out_hex, code, sizeof(code));
    return true;
}

bool sigv4_sign_chunk(const struct sigv4_body *body, const char previous[AWS_HEX_SIZE],
                      const uint8_t sha256[32], char out_hex[AWS_HEX_SIZE])
{
    return sign_next(body, AWS_ALGORITHM "-PAYLOAD", AWS_EMPTY_SHA256 "\n", previous, sha256,
                     out_hex);
}

bool sigv4_sign_trailer(const struct sigv4_body *body, const char previous[AWS_HEX_SIZE],
                        const uint8_t sha256[32], char out_hex[AWS_HEX_SIZE])
{
    return sign_next(body, AWS_ALGORITHM "-TRAILER", "", previous, sha256, out_hex);
}

bool sigv4_is_signature(struct zt_text stated, const char expected[AWS_HEX_SIZE])
{
    return stated.length == AWS_HEX_SIZE - 1 && secret_equal(stated.bytes, expected, stated.length);
}
