/* The canonical request is hashed while it is written, so it has no limit. The signed fields are
 * host, range, the conditions and all of x-amz-; proxies may change the others, which is
 * harmless. */
#include "remote/sign.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/hex.h"
#include "base/log.h"
#include "input/date.h"
#include "input/ticket.h"
#include "zt/digest.h"

#define SHA256_BYTES 32
#define HEX_SIZE     65
#define REGION_SIZE  64
#define SERVICE_SIZE 32
#define DAY_LENGTH   8
/* host, range, and the signature's three fields, in addition to the exchange's. */
#define SIGNED_MAX (REMOTE_FIELDS + 5)
#define NAMES_SIZE 512
/* For a longer body the caller must provide the digest: the thread would be busy for too long. */
#define HASHED_HERE_MAX 1048576
#define QUERY_PARTS_MAX 32
/* Services take requests that are 15 minutes off; a smaller difference is not what was wrong. */
#define SKEW_S 300

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct signer {
    struct credentials *credentials;
    char region[REGION_SIZE];
    char service[SERVICE_SIZE];
    _Atomic(int64_t) offset_s; /* the service's clock less ours */
    atomic_bool has_reported;  /* that there is such an offset */
};

struct signer *signer_new(struct credentials *credentials, const char *region, const char *service)
{
    struct signer *signer = calloc(1, sizeof(*signer));

    if (signer == NULL)
        return NULL;
    signer->credentials = credentials;
    snprintf(signer->region, sizeof(signer->region), "%s", region);
    snprintf(signer->service, sizeof(signer->service), "%s", service);
    return signer;
}

void signer_free(struct signer *signer)
{
    free(signer);
}

/* --- what is signed --- */

struct signed_list {
    struct remote_field fields[SIGNED_MAX];
    size_t count;
    char range[64];
    char names[NAMES_SIZE]; /* joined by ';' */
};

/* Keeps the list in the order of the names. */
static void add(struct signed_list *list, const char *name, const char *value)
{
    size_t at = list->count;

    assert(list->count < SIGNED_MAX);
    for (; at > 0 && strcmp(list->fields[at - 1].name, name) > 0; at--)
        list->fields[at] = list->fields[at - 1];
    list->fields[at] = (struct remote_field){name, value};
    list->count++;
}

static bool is_signed(const char *name)
{
    return strncmp(name, "x-amz-", 6) == 0 || strncmp(name, "if-", 3) == 0;
}

static bool join_names(struct signed_list *list)
{
    size_t length = 0;

    for (size_t i = 0; i < list->count; i++) {
        const size_t left = sizeof(list->names) - length;
        const int written =
            snprintf(list->names + length, left, "%s%s", i > 0 ? ";" : "", list->fields[i].name);

        if (written < 0 || (size_t)written >= left)
            return false;
        length += (size_t)written;
    }
    return true;
}

static bool list_fields(struct signed_list *list, const struct remote_exchange *exchange,
                        const char *host, const struct signed_fields *fields)
{
    list->count = 0;
    add(list, "host", host);
    for (unsigned i = 0; i < exchange->field_count; i++)
        if (is_signed(exchange->fields[i].name))
            add(list, exchange->fields[i].name, exchange->fields[i].value);
    if (exchange->has_range) {
        snprintf(list->range, sizeof(list->range), "bytes=%llu-%llu",
                 (unsigned long long)exchange->range_first,
                 (unsigned long long)exchange->range_last);
        add(list, "range", list->range);
    }
    add(list, "x-amz-date", fields->date);
    if (fields->content_sha256[0] != '\0')
        add(list, "x-amz-content-sha256", fields->content_sha256);
    if (fields->token[0] != '\0')
        add(list, "x-amz-security-token", fields->token);
    return join_names(list);
}

/* --- the canonical request --- */

static void put(struct zt_hasher *hash, const char *bytes, size_t length)
{
    zt_hasher_update(hash, bytes, length);
}

static void put_text(struct zt_hasher *hash, const char *text)
{
    put(hash, text, strlen(text));
}

/* Without blanks around it, and with one where there are several. */
static void put_value(struct zt_hasher *hash, const char *value)
{
    const char *at = value + strspn(value, " \t");

    while (*at != '\0') {
        const size_t length = strcspn(at, " \t");

        put(hash, at, length);
        at += length;
        at += strspn(at, " \t");
        if (*at != '\0')
            put(hash, " ", 1);
    }
}

/* Compares by name, then by value; '=' separates them and is in neither. */
static int compare_parts(const void *a, const void *b)
{
    const struct zt_text *one = a;
    const struct zt_text *other = b;
    const char *end = memchr(one->bytes, '=', one->length);
    const char *other_end = memchr(other->bytes, '=', other->length);
    const struct zt_text name = {one->bytes,
                                 end != NULL ? (size_t)(end - one->bytes) : one->length};
    const struct zt_text other_name = {
        other->bytes, other_end != NULL ? (size_t)(other_end - other->bytes) : other->length};
    const int order = zt_text_compare(name, other_name);

    return order != 0 ? order : zt_text_compare(*one, *other);
}

/* Sorted, and with '=' after each name. False: too many. */
static bool put_query(struct zt_hasher *hash, const char *query)
{
    struct zt_text parts[QUERY_PARTS_MAX];
    size_t count = 0;

    while (query != NULL && *query != '\0') {
        const size_t length = strcspn(query, "&");

        if (count == QUERY_PARTS_MAX)
            return false;
        if (length > 0)
            parts[count++] = (struct zt_text){query, length};
        query += length;
        query += *query == '&';
    }
    if (count > 1)
        qsort(parts, count, sizeof(parts[0]), compare_parts);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            put(hash, "&", 1);
        put(hash, parts[i].bytes, parts[i].length);
        if (memchr(parts[i].bytes, '=', parts[i].length) == NULL)
            put(hash, "=", 1);
    }
    return true;
}

/* Frees the hasher. */
static void finish(struct zt_hasher *hash, char out_hex[HEX_SIZE])
{
    struct zt_digest digest;

    zt_hasher_finish(hash, &digest);
    zt_hasher_free(hash);
    assert(2 * (size_t)digest.length_bytes + 1 == HEX_SIZE);
    zt_hex_write(out_hex, digest.bytes, digest.length_bytes);
}

static bool hash_request(const struct remote_exchange *exchange, const struct signed_list *list,
                         const char *body_sha256, char out_hex[HEX_SIZE])
{
    struct zt_hasher *hash;
    bool hashed;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hash) != ZT_OK)
        return false;
    put_text(hash, exchange->method);
    put(hash, "\n", 1);
    put_text(hash, exchange->path);
    put(hash, "\n", 1);
    hashed = put_query(hash, exchange->query);
    put(hash, "\n", 1);
    for (size_t i = 0; i < list->count; i++) {
        put_text(hash, list->fields[i].name);
        put(hash, ":", 1);
        put_value(hash, list->fields[i].value);
        put(hash, "\n", 1);
    }
    put(hash, "\n", 1);
    put_text(hash, list->names);
    put(hash, "\n", 1);
    put_text(hash, body_sha256);
    finish(hash, out_hex);
    return hashed;
}

/* --- the signature --- */

static bool derive_key(const struct signer *signer, const char *secret, const char *day,
                       uint8_t out_key[SHA256_BYTES])
{
    char start[CREDENTIALS_SECRET_SIZE + 4];
    uint8_t key[SHA256_BYTES];
    uint8_t other[SHA256_BYTES];

    snprintf(start, sizeof(start), "AWS4%s", secret);
    return hmac_sha256(start, strlen(start), zt_text_from(day), key) &&
           hmac_sha256(key, sizeof(key), zt_text_from(signer->region), other) &&
           hmac_sha256(other, sizeof(other), zt_text_from(signer->service), key) &&
           hmac_sha256(key, sizeof(key), zt_text_from("aws4_request"), out_key);
}

/* The last step: signs the hash of the request and its time. */
static bool write_authorization(const struct signer *signer, const struct credential *credential,
                                const struct signed_list *list, const char *request_hex,
                                struct signed_fields *fields)
{
    uint8_t key[SHA256_BYTES];
    uint8_t code[SHA256_BYTES];
    char day[DAY_LENGTH + 1];
    char scope[DAY_LENGTH + REGION_SIZE + SERVICE_SIZE + 16];
    char text[sizeof(scope) + HEX_SIZE + SIGN_DATE_SIZE + 24];
    char signature[HEX_SIZE];
    int length;

    assert(strlen(fields->date) > DAY_LENGTH);
    memcpy(day, fields->date, DAY_LENGTH);
    day[DAY_LENGTH] = '\0';
    snprintf(scope, sizeof(scope), "%s/%s/%s/aws4_request", day, signer->region, signer->service);
    snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s\n%s", fields->date, scope, request_hex);
    if (!derive_key(signer, credential->secret, day, key) ||
        !hmac_sha256(key, sizeof(key), zt_text_from(text), code))
        return false;
    zt_hex_write(signature, code, sizeof(code));
    length = snprintf(fields->authorization, sizeof(fields->authorization),
                      "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                      credential->key, scope, list->names, signature);
    return length > 0 && (size_t)length < sizeof(fields->authorization);
}

/* --- for one request --- */

/* FNV-1a, of data that is not secret. */
static uint64_t number_of(const struct credential *credential)
{
    uint64_t number = UINT64_C(14695981039346656037);

    for (const char *at = credential->key; *at != '\0'; at++)
        number = (number ^ (unsigned char)*at) * UINT64_C(1099511628211);
    for (const char *at = credential->token; *at != '\0'; at++)
        number = (number ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return number;
}

static bool is_read(const struct remote_exchange *exchange)
{
    return strcmp(exchange->method, "GET") == 0 || strcmp(exchange->method, "HEAD") == 0;
}

/* The digest in the canonical request; the field that repeats it is S3's alone. */
static bool write_body_sha256(const struct signer *signer, const struct remote_exchange *exchange,
                              char out_text[HEX_SIZE + 16])
{
    const bool is_s3 = strcmp(signer->service, "s3") == 0;

    if (exchange->body_sha256 != NULL)
        snprintf(out_text, HEX_SIZE + 16, "%s", exchange->body_sha256);
    else if (exchange->body == REMOTE_BODY_NONE && !(is_s3 && is_read(exchange)))
        strcpy(out_text, EMPTY_SHA256);
    else if (exchange->body == REMOTE_BODY_MEMORY && exchange->body_length <= HASHED_HERE_MAX) {
        struct zt_hasher *hash;

        if (zt_hasher_new(ZT_DIGEST_SHA256, &hash) != ZT_OK)
            return false;
        zt_hasher_update(hash, exchange->body_bytes, exchange->body_length);
        finish(hash, out_text);
    } else
        strcpy(out_text, "UNSIGNED-PAYLOAD");
    return true;
}

bool signer_sign(struct signer *signer, const struct remote_exchange *exchange, const char *host,
                 int64_t now_s, struct signed_fields *out_fields)
{
    const time_t then = (time_t)(now_s + atomic_load(&signer->offset_s));
    char body_sha256[sizeof(out_fields->content_sha256)];
    struct credential credential;
    struct signed_list list;
    char request_hex[HEX_SIZE];
    struct tm parts;

    out_fields->authorization[0] = '\0';
    out_fields->date[0] = '\0';
    out_fields->credential = 0;
    if (!credentials_get(signer->credentials, &credential))
        return false;
    if (credential.key[0] == '\0')
        return true;
    if (gmtime_r(&then, &parts) == NULL ||
        strftime(out_fields->date, sizeof(out_fields->date), "%Y%m%dT%H%M%SZ", &parts) == 0 ||
        !write_body_sha256(signer, exchange, body_sha256))
        return false;
    strcpy(out_fields->token, credential.token);
    out_fields->credential = number_of(&credential);
    strcpy(out_fields->content_sha256, strcmp(signer->service, "s3") == 0 ? body_sha256 : "");
    return list_fields(&list, exchange, host, out_fields) &&
           hash_request(exchange, &list, body_sha256, request_hex) &&
           write_authorization(signer, &credential, &list, request_hex, out_fields);
}

/* --- what an answer says --- */

bool signer_adjust_clock(struct signer *signer, const char *date,
                         const char signed_date[SIGN_DATE_SIZE])
{
    struct tm parts = {0};
    time_t theirs_s;
    time_t ours_s;
    int64_t offset_s;

    if (!http_date_parse(date, &theirs_s) ||
        strptime(signed_date, "%Y%m%dT%H%M%SZ", &parts) == NULL)
        return false;
    ours_s = timegm(&parts);
    if (theirs_s - ours_s < SKEW_S && ours_s - theirs_s < SKEW_S)
        return false;
    offset_s = theirs_s - (int64_t)time(NULL);
    atomic_store(&signer->offset_s, offset_s);
    if (!atomic_exchange(&signer->has_reported, true))
        log_write(LOG_LEVEL_WARN,
                  "the clock of this machine is %" PRId64
                  " s %s the clock of the %s service; requests are signed with the service's time",
                  offset_s < 0 ? -offset_s : offset_s, offset_s < 0 ? "ahead of" : "behind",
                  signer->service);
    return true;
}

bool signer_note_refusal(struct signer *signer)
{
    return credentials_refused(signer->credentials);
}
