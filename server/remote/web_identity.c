/* A role of AWS's Security Token Service, or of one like it, for a token that another program keeps
 * fresh in a file (Kubernetes service accounts). */
#include "base/percent.h"
#include "remote/credential_sources.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "input/text_file.h"
#include "remote/credential_text.h"

static const char session_name[] = "ztserve";
static const char token_file_variable[] = "AWS_WEB_IDENTITY_TOKEN_FILE";

/* For all tries together. */
#define TIME_MS 10000
/* A JSON Web Token has a few KiB. */
#define TOKEN_MAX ((size_t)32 << 10)

/* --- the form --- */

struct form {
    char *text;
    size_t length;
};

/* Appends a text, encoded as forms are. There is room: each byte becomes at most three. */
static void append_encoded(struct form *form, struct zt_text text)
{
    form->length = (size_t)(zt_percent_write(form->text + form->length, text, false) - form->text);
}

static void append(struct form *form, const char *text)
{
    const size_t length = strlen(text);

    memcpy(form->text + form->length, text, length);
    form->length += length;
}

static bool form_make(const struct credential_settings *settings, struct zt_text token,
                      struct form *out_form)
{
    static const char beginning[] = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=";
    static const char session_field[] = "&RoleSessionName=";
    static const char token_field[] = "&WebIdentityToken=";
    const struct zt_text session =
        zt_text_from(settings->role_session == NULL ? session_name : settings->role_session);
    struct form form = {0};
    struct zt_text role;

    assert(settings->role != NULL);
    role = zt_text_from(settings->role);
    form.text = malloc(sizeof(beginning) + sizeof(session_field) + sizeof(token_field) +
                       3 * (role.length + session.length + token.length));
    if (form.text == NULL)
        return false;
    append(&form, beginning);
    append_encoded(&form, role);
    append(&form, session_field);
    append_encoded(&form, session);
    append(&form, token_field);
    append_encoded(&form, token);
    *out_form = form;
    return true;
}

static void form_free(struct form *form)
{
    explicit_bzero(form->text, form->length);
    free(form->text);
}

/* --- the exchange --- */

static enum zt_status exchange_form(const struct credential_settings *settings,
                                    struct credential_calls *calls, const struct form *form,
                                    struct credential *out_credential, struct zt_error *error)
{
    static const char where[] = "AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE";
    const struct credential_request request = {
        .what = "the token service",
        .method = "POST",
        .address = &settings->token_service,
        .fields = {{"content-type", "application/x-www-form-urlencoded"}},
        .field_count = 1,
        .body = {form->text, form->length},
        .time_ms = TIME_MS,
        .tries = 3};
    struct credential_answer answer;
    enum zt_status status = credential_call(calls, &request, &answer, error);

    if (status != ZT_OK)
        return status;
    if (answer.status == 200)
        status = credential_from_xml(where, (struct zt_text){answer.text, answer.length},
                                     out_credential, error);
    else
        status = credential_answer_refused(where, &request, &answer, error);
    credential_answer_free(&answer);
    return status;
}

enum zt_status credential_from_web_identity(const struct credential_settings *settings,
                                            struct credential_calls *calls,
                                            struct credential *out_credential,
                                            struct zt_error *error)
{
    char message[sizeof(error->message)];
    struct text_file file;
    struct zt_text token;
    struct form form;
    enum zt_status status;

    if (settings->token_file == NULL)
        return ZT_NOT_FOUND;
    if (!text_file_read(token_file_variable, settings->token_file, &file, message, sizeof(message)))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    token = credential_text_trim((struct zt_text){file.text, file.length});
    if (!credential_text_is_visible(token) || token.length > TOKEN_MAX) {
        status = zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s: %.160s: has no token",
                         token_file_variable, settings->token_file);
    } else if (!form_make(settings, token, &form)) {
        status = zt_fail_memory(error, "credentials");
    } else {
        status = exchange_form(settings, calls, &form, out_credential, error);
        form_free(&form);
    }
    text_file_free(&file);
    return status;
}
