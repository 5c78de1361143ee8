#include "remote/credential_text.h"

#include <string.h>
#include <time.h>

#include "input/date.h"
#include "input/json_read.h"
#include "input/xml_read.h"

bool credential_text_is_visible(struct zt_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] <= ' ' || text.bytes[i] > '~')
            return false;
    return text.length > 0;
}

static bool is_space(char character)
{
    return character == ' ' || (character >= '\t' && character <= '\r');
}

struct zt_text credential_text_trim(struct zt_text text)
{
    while (text.length > 0 && is_space(text.bytes[0])) {
        text.bytes++;
        text.length--;
    }
    while (text.length > 0 && is_space(text.bytes[text.length - 1]))
        text.length--;
    return text;
}

/* --- texts --- */

static enum zt_status copy(const char *where, const char *what, struct zt_text text, char *out,
                           size_t size, struct zt_error *error)
{
    if (text.length == 0)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s: no %s", where, what);
    if (text.length >= size)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "%s: the %s is longer than %zu bytes", where, what, size - 1);
    if (!credential_text_is_visible(text))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "%s: the %s has spaces, control characters or non-ASCII letters", where,
                       what);
    memcpy(out, text.bytes, text.length);
    out[text.length] = '\0';
    return ZT_OK;
}

static enum zt_status fill(const char *where, const struct credential_texts *texts,
                           struct credential *credential, struct zt_error *error)
{
    char expiration[40];
    time_t expires;
    enum zt_status status =
        copy(where, "access key id", texts->key, credential->key, sizeof(credential->key), error);

    if (status == ZT_OK)
        status = copy(where, "secret access key", texts->secret, credential->secret,
                      sizeof(credential->secret), error);
    if (status == ZT_OK && texts->token.length > 0)
        status = copy(where, "session token", texts->token, credential->token,
                      sizeof(credential->token), error);
    if (status != ZT_OK || texts->expiration.length == 0)
        return status;
    status = copy(where, "expiration", texts->expiration, expiration, sizeof(expiration), error);
    if (status != ZT_OK)
        return status;
    if (!iso_date_parse(expiration, &expires) || expires <= 0)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "%s: the expiration is not a time such as 2026-01-31T23:59:59Z", where);
    credential->expires_s = (int64_t)expires;
    return ZT_OK;
}

enum zt_status credential_make(const char *where, const struct credential_texts *texts,
                               struct credential *out_credential, struct zt_error *error)
{
    struct credential credential = {.expires_s = 0};
    const enum zt_status status = fill(where, texts, &credential, error);

    if (status == ZT_OK)
        *out_credential = credential;
    explicit_bzero(&credential, sizeof(credential));
    return status;
}

/* --- answers --- */

static enum zt_status refuse_answer(const char *where, struct zt_error *error)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s: the response has no credentials",
                   where);
}

enum zt_status credential_from_json(const char *where, struct zt_text answer,
                                    struct credential *out_credential, struct zt_error *error)
{
    struct json_t *object = json_object_read(answer, NULL);
    struct credential_texts texts = {.key = {NULL, 0}};
    enum zt_status status;

    if (object == NULL)
        return refuse_answer(where, error);
    if (json_member_text(object, "AccessKeyId", &texts.key) == JSON_OTHER ||
        json_member_text(object, "SecretAccessKey", &texts.secret) == JSON_OTHER ||
        json_member_text(object, "Token", &texts.token) == JSON_OTHER ||
        json_member_text(object, "Expiration", &texts.expiration) == JSON_OTHER)
        status = refuse_answer(where, error);
    else
        status = credential_make(where, &texts, out_credential, error);
    json_object_free(object);
    return status;
}

/* The reader's text ends with its element. */
struct answered {
    struct credential credential;
    char expiration[40];
    bool fits;
};

static void keep(struct answered *answered, char *out, size_t size, struct zt_text text)
{
    if (text.length >= size) {
        answered->fits = false;
        return;
    }
    memcpy(out, text.bytes, text.length);
    out[text.length] = '\0';
}

static bool visit_answer(void *context, const char *path, struct zt_text text)
{
    static const char around[] =
        "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/";
    struct answered *answered = context;
    struct credential *credential = &answered->credential;

    if (text.bytes == NULL || strncmp(path, around, sizeof(around) - 1) != 0)
        return true;
    path += sizeof(around) - 1;
    text = credential_text_trim(text);
    if (strcmp(path, "AccessKeyId") == 0)
        keep(answered, credential->key, sizeof(credential->key), text);
    else if (strcmp(path, "SecretAccessKey") == 0)
        keep(answered, credential->secret, sizeof(credential->secret), text);
    else if (strcmp(path, "SessionToken") == 0)
        keep(answered, credential->token, sizeof(credential->token), text);
    else if (strcmp(path, "Expiration") == 0)
        keep(answered, answered->expiration, sizeof(answered->expiration), text);
    return answered->fits;
}

enum zt_status credential_from_xml(const char *where, struct zt_text answer,
                                   struct credential *out_credential, struct zt_error *error)
{
    struct answered answered = {.fits = true};
    struct credential_texts texts;
    enum zt_status status;

    if (xml_read(answer, visit_answer, &answered, NULL) != ZT_OK) {
        status = refuse_answer(where, error);
    } else {
        texts = (struct credential_texts){
            zt_text_from(answered.credential.key), zt_text_from(answered.credential.secret),
            zt_text_from(answered.credential.token), zt_text_from(answered.expiration)};
        status = credential_make(where, &texts, out_credential, error);
    }
    explicit_bzero(&answered, sizeof(answered));
    return status;
}

static bool visit_error(void *context, const char *path, struct zt_text text)
{
    char *code = context;

    if (text.bytes == NULL || text.length >= CREDENTIAL_CODE_SIZE)
        return true;
    if (strcmp(path, "ErrorResponse/Error/Code") != 0 && strcmp(path, "Error/Code") != 0)
        return true;
    for (size_t i = 0; i < text.length; i++)
        if ((text.bytes[i] | 32) < 'a' || (text.bytes[i] | 32) > 'z')
            return true;
    memcpy(code, text.bytes, text.length);
    code[text.length] = '\0';
    return true;
}

void credential_error_code(struct zt_text answer, char out_code[CREDENTIAL_CODE_SIZE])
{
    out_code[0] = '\0';
    (void)xml_read(answer, visit_error, out_code, NULL);
}
