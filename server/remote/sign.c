/* The signed fields are host, range, the conditions and all of x-amz-; proxies may change the
 * others, which is harmless. */
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
#include "input/aws_signature.h"
#include "input/date.h"
#include "zt/digest.h"

#define REGION_SIZE  64
#define SERVICE_SIZE 32
/* host, range, and the signature's three fields, in addition to the exchange's. */
#define SIGNED_MAX (REMOTE_FIELDS + 5)
#define NAMES_SIZE 512
/* For a longer body the caller must provide the digest: the thread would be busy for too long. */
#define HASHED_HERE_MAX 1048576
/* Services take requests that are 15 minutes off; a smaller difference is not what was wrong. */
#define SKEW_S 300

static_assert(CREDENTIALS_SECRET_SIZE - 1 <= AWS_SECRET_MAX, "every secret can sign");

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
                 (unsigned long long)remote_range_first(exchange),
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

/* --- the signature --- */

static bool hash_request(const struct remote_exchange *exchange, const struct signed_list *list,
                         const char *body_sha256, char out_hex[AWS_HEX_SIZE])
{
    struct canonical_request request;
    bool hashed;

    if (!canonical_request_begin(&request, exchange->method))
        return false;
    canonical_request_path(&request, zt_text_from(exchange->path));
    hashed = canonical_request_query(
        &request, zt_text_from(exchange->query != NULL ? exchange->query : ""), NULL);
    for (size_t i = 0; i < list->count; i++) {
        canonical_request_field(&request, zt_text_from(list->fields[i].name));
        canonical_request_value(&request, zt_text_from(list->fields[i].value), true);
        canonical_request_field_end(&request);
    }
    canonical_request_end(&request, zt_text_from(list->names), zt_text_from(body_sha256), out_hex);
    return hashed;
}

/* The last step: signs the hash of the request and its time. */
static bool write_authorization(const struct signer *signer, const struct credential *credential,
                                const struct signed_list *list, const char *request_hex,
                                struct signed_fields *fields)
{
    const struct aws_scope scope = {.day = {fields->date, AWS_DAY_LENGTH},
                                    .region = zt_text_from(signer->region),
                                    .service = zt_text_from(signer->service)};
    char scope_text[AWS_SCOPE_SIZE];
    const struct aws_head head = {AWS_ALGORITHM, fields->date, scope_text};
    uint8_t key[AWS_KEY_BYTES];
    uint8_t code[AWS_KEY_BYTES];
    char signature[AWS_HEX_SIZE];
    int length;

    assert(strlen(fields->date) > AWS_DAY_LENGTH);
    aws_scope_write(&scope, scope_text);
    if (!aws_key_derive(zt_text_from(credential->secret), &scope, key) ||
        !aws_sign(key, &head, request_hex, code))
        return false;
    zt_hex_write(signature, code, sizeof(code));
    length = snprintf(fields->authorization, sizeof(fields->authorization),
                      AWS_ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                      credential->key, scope_text, list->names, signature);
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
                              char out_text[AWS_HEX_SIZE + 16])
{
    const bool is_s3 = strcmp(signer->service, "s3") == 0;

    if (exchange->body_sha256 != NULL)
        snprintf(out_text, AWS_HEX_SIZE + 16, "%s", exchange->body_sha256);
    else if (exchange->body == REMOTE_BODY_NONE && !(is_s3 && is_read(exchange)))
        strcpy(out_text, AWS_EMPTY_SHA256);
    else if (exchange->body == REMOTE_BODY_MEMORY && exchange->body_length <= HASHED_HERE_MAX) {
        struct zt_digest digest;

        if (zt_digest_of(ZT_DIGEST_SHA256, exchange->body_bytes, exchange->body_length, &digest) !=
            ZT_OK)
            return false;
        zt_hex_write(out_text, digest.bytes, digest.length_bytes);
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
    char request_hex[AWS_HEX_SIZE];
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
