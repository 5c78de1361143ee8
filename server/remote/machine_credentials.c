/* Credentials that the machine's keeper hands out: to a container (ECS, EKS), or to an instance
 * (IMDSv2). */
#include "remote/credential_sources.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "input/text_file.h"
#include "remote/credential_text.h"

#define CONTAINER_TIME_MS 5000
/* Where there is no such service, requests to its address mostly vanish. */
#define INSTANCE_FIRST_TIME_MS 1000
#define INSTANCE_TIME_MS       3000
#define TOKEN_SIZE             ((size_t)16 << 10)

/* --- container --- */

static enum zt_status ask_container(const struct credential_settings *settings,
                                    struct credential_calls *calls, const char *token,
                                    struct credential *out_credential, struct zt_error *error)
{
    static const char where[] = "AWS_CONTAINER_CREDENTIALS";
    const struct credential_request request = {.what = "the container's credential service",
                                               .method = "GET",
                                               .address = &settings->container,
                                               .fields = {{"authorization", token}},
                                               .field_count = token[0] == '\0' ? 0 : 1,
                                               .time_ms = CONTAINER_TIME_MS,
                                               .tries = 3};
    struct credential_answer answer;
    enum zt_status status = credential_call(calls, &request, &answer, error);

    if (status != ZT_OK)
        return status;
    if (answer.status == 200)
        status = credential_from_json(where, (struct zt_text){answer.text, answer.length},
                                      out_credential, error);
    else
        status = credential_answer_refused(where, &request, &answer, error);
    credential_answer_free(&answer);
    return status;
}

/* A token may have a blank in it ("Basic …"). */
static bool is_field_value(struct zt_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] < ' ' || text.bytes[i] > '~')
            return false;
    return text.length < TOKEN_SIZE;
}

/* The file comes first, because it is renewed. */
static enum zt_status read_container_token(const struct credential_settings *settings,
                                           char out_token[TOKEN_SIZE], struct zt_error *error)
{
    static const char variable[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
    static const char file_variable[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
    const bool is_file = settings->container_token_file != NULL;
    struct text_file file = {.text = NULL};
    struct zt_text token = {"", 0};
    char message[sizeof(error->message)];
    bool fits;

    if (is_file && !text_file_read(file_variable, settings->container_token_file, &file, message,
                                   sizeof(message)))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    if (is_file)
        token = (struct zt_text){file.text, file.length};
    else if (settings->container_token != NULL)
        token = zt_text_from(settings->container_token);
    token = credential_text_trim(token);
    fits = is_field_value(token);
    if (fits) {
        memcpy(out_token, token.bytes, token.length);
        out_token[token.length] = '\0';
    }
    text_file_free(&file);
    return fits ? ZT_OK
                : zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s: has no token",
                          is_file ? file_variable : variable);
}

enum zt_status credential_from_container(const struct credential_settings *settings,
                                         struct credential_calls *calls,
                                         struct credential *out_credential, struct zt_error *error)
{
    char token[TOKEN_SIZE];
    enum zt_status status;

    if (settings->container.origin[0] == '\0')
        return ZT_NOT_FOUND;
    status = read_container_token(settings, token, error);
    if (status == ZT_OK)
        status = ask_container(settings, calls, token, out_credential, error);
    explicit_bzero(token, sizeof(token));
    return status;
}

/* --- instance --- */

static const char instance[] = "the instance's metadata service";

/* Appends to the path of the service's address. */
static bool instance_path(const struct credential_settings *settings, const char *path,
                          const char *name, struct service_address *out_address)
{
    const char *before = settings->instance.path;
    size_t length = strlen(before);

    assert(length > 0 && before[0] == '/');
    *out_address = settings->instance;
    if (before[length - 1] == '/')
        length--;
    return (size_t)snprintf(out_address->path, SERVICE_TEXT_SIZE, "%.*s%s%s", (int)length, before,
                            path, name) < SERVICE_TEXT_SIZE;
}

/* The first line of an answer, if it can be sent again. */
static bool take_line(const struct credential_answer *answer, char *out_line, size_t size)
{
    const char *end = answer->length == 0 ? NULL : memchr(answer->text, '\n', answer->length);
    const struct zt_text line = credential_text_trim((struct zt_text){
        answer->text, end == NULL ? answer->length : (size_t)(end - answer->text)});

    if (line.length >= size || !credential_text_is_visible(line))
        return false;
    memcpy(out_line, line.bytes, line.length);
    out_line[line.length] = '\0';
    return true;
}

/* ZT_NOT_FOUND: this is no such instance. */
static enum zt_status get_instance_token(const struct credential_settings *settings,
                                         struct credential_calls *calls, char out_token[TOKEN_SIZE],
                                         struct zt_error *error)
{
    struct service_address address;
    const struct credential_request request = {
        .what = instance,
        .method = "PUT",
        .address = &address,
        .fields = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}},
        .field_count = 1,
        .time_ms = INSTANCE_FIRST_TIME_MS,
        .tries = 1};
    struct credential_answer answer;
    enum zt_status status;

    if (!instance_path(settings, "/latest/api/token", "", &address))
        return ZT_NOT_FOUND;
    if (credential_call(calls, &request, &answer, error) != ZT_OK)
        return ZT_NOT_FOUND;
    status =
        answer.status == 200 && take_line(&answer, out_token, TOKEN_SIZE) ? ZT_OK : ZT_NOT_FOUND;
    credential_answer_free(&answer);
    return status;
}

/* Asks with the token. ZT_NOT_FOUND: 404. */
static enum zt_status ask_instance(const struct credential_settings *settings,
                                   struct credential_calls *calls, const char *token,
                                   const char *role, struct credential_answer *out_answer,
                                   struct zt_error *error)
{
    struct service_address address;
    const struct credential_request request = {.what = instance,
                                               .method = "GET",
                                               .address = &address,
                                               .fields = {{"x-aws-ec2-metadata-token", token}},
                                               .field_count = 1,
                                               .time_ms = INSTANCE_TIME_MS,
                                               .tries = 3};
    enum zt_status status;

    if (!instance_path(settings, "/latest/meta-data/iam/security-credentials/", role, &address))
        return ZT_NOT_FOUND;
    status = credential_call(calls, &request, out_answer, error);
    if (status != ZT_OK || out_answer->status == 200)
        return status;
    status = out_answer->status == 404
                 ? ZT_NOT_FOUND
                 : credential_answer_refused(instance, &request, out_answer, error);
    credential_answer_free(out_answer);
    return status;
}

static bool is_role_name(const char *name)
{
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+=,.@_-") ==
           strlen(name);
}

static enum zt_status ask_with_token(const struct credential_settings *settings,
                                     struct credential_calls *calls, const char *token,
                                     struct credential *out_credential, struct zt_error *error)
{
    struct credential_answer answer;
    char role[256];
    bool has_role;
    enum zt_status status = ask_instance(settings, calls, token, "", &answer, error);

    if (status != ZT_OK)
        return status;
    has_role = take_line(&answer, role, sizeof(role)) && is_role_name(role);
    credential_answer_free(&answer);
    if (!has_role)
        return ZT_NOT_FOUND;
    status = ask_instance(settings, calls, token, role, &answer, error);
    if (status == ZT_NOT_FOUND)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "%s has no credentials for its role %s", instance, role);
    if (status != ZT_OK)
        return status;
    status = credential_from_json(instance, (struct zt_text){answer.text, answer.length},
                                  out_credential, error);
    credential_answer_free(&answer);
    return status;
}

enum zt_status credential_from_instance(const struct credential_settings *settings,
                                        struct credential_calls *calls,
                                        struct credential *out_credential, struct zt_error *error)
{
    char token[TOKEN_SIZE];
    enum zt_status status;

    if (settings->instance.origin[0] == '\0')
        return ZT_NOT_FOUND;
    status = get_instance_token(settings, calls, token, error);
    if (status == ZT_OK)
        status = ask_with_token(settings, calls, token, out_credential, error);
    explicit_bzero(token, sizeof(token));
    return status;
}
