/* Static credentials: in the environment, and in a file of profiles. */
#include "remote/credential_sources.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "input/text_file.h"
#include "remote/credential_text.h"
#include "remote/profile_file.h"

enum zt_status credential_from_environment(const struct credential_settings *settings,
                                           struct credential_calls *calls,
                                           struct credential *out_credential,
                                           struct zt_error *error)
{
    const char *key = credential_variable("AWS_ACCESS_KEY_ID");
    const char *secret = credential_variable("AWS_SECRET_ACCESS_KEY");
    const char *token = credential_variable("AWS_SESSION_TOKEN");
    struct credential_texts texts = {.key = {NULL, 0}};

    (void)settings;
    (void)calls;
    if (key == NULL && secret == NULL)
        return ZT_NOT_FOUND;
    if (key == NULL || secret == NULL)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s is set, %s is not",
                       key == NULL ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                       key == NULL ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY");
    texts.key = zt_text_from(key);
    texts.secret = zt_text_from(secret);
    if (token != NULL)
        texts.token = zt_text_from(token);
    return credential_make("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", &texts,
                           out_credential, error);
}

/* The file of the home folder need not exist. If it exists but cannot be read, that is an error,
 * but does not stop the program. */
static enum zt_status read_file(const struct credential_settings *settings,
                                struct text_file *out_file, struct zt_error *error)
{
    const char *path = settings->profile_file;
    char message[sizeof(error->message)];

    if (path == NULL)
        return ZT_NOT_FOUND;
    if (text_file_read(settings->is_file_named ? "AWS_SHARED_CREDENTIALS_FILE" : "credentials",
                       path, out_file, message, sizeof(message)))
        return ZT_OK;
    if (settings->is_file_named)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    if (access(path, F_OK) == 0)
        log_write(LOG_LEVEL_WARN, "%s", message);
    return ZT_NOT_FOUND;
}

enum zt_status credential_from_profile(const struct credential_settings *settings,
                                       struct credential_calls *calls,
                                       struct credential *out_credential, struct zt_error *error)
{
    struct text_file file;
    enum zt_status status = read_file(settings, &file, error);

    (void)calls;
    if (status == ZT_OK) {
        status = profile_read(settings->profile_file, (struct zt_text){file.text, file.length},
                              settings->profile, out_credential, error);
        text_file_free(&file);
    }
    if (status == ZT_NOT_FOUND && (settings->is_profile_named || settings->is_file_named))
        return zt_fail(
            error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s: no keys in section [%.64s] of %.128s",
            settings->is_profile_named ? "AWS_PROFILE" : "AWS_SHARED_CREDENTIALS_FILE",
            settings->profile,
            settings->profile_file == NULL ? "~/.aws/credentials" : settings->profile_file);
    return status;
}
