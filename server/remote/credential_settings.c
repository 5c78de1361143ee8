/* Credential settings of the environment, under the names that AWS's tools use. */
#include "remote/credential_sources.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "remote/credential_text.h"

#define INSTANCE_SERVICE  "http://169.254.169.254"
#define CONTAINER_SERVICE "http://169.254.170.2"

const char *credential_variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

static enum zt_status refuse(struct zt_error *error, const char *name, const char *why)
{
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s %s", name, why);
}

static enum zt_status no_address(struct zt_error *error, const char *name)
{
    return refuse(error, name, "is not an address such as https://host:port/path");
}

/* A copy of a variable, or NULL. False without memory. */
static bool copy_variable(const char *name, char **out_copy)
{
    const char *value = credential_variable(name);

    *out_copy = value == NULL ? NULL : strdup(value);
    return value == NULL || *out_copy != NULL;
}

/* --- profile --- */

bool credential_profile_path(char *out_path, size_t size, bool *out_is_named)
{
    const char *named = credential_variable("AWS_SHARED_CREDENTIALS_FILE");
    const char *home = credential_variable("HOME");
    int length;

    *out_is_named = named != NULL;
    if (named != NULL && strncmp(named, "~/", 2) != 0)
        length = snprintf(out_path, size, "%s", named);
    else if (home != NULL)
        length =
            snprintf(out_path, size, "%s/%s", home, named == NULL ? ".aws/credentials" : named + 2);
    else
        return false;
    return length > 0 && (size_t)length < size;
}

static enum zt_status read_profile(struct credential_settings *settings, struct zt_error *error)
{
    const char *profile = credential_variable("AWS_PROFILE");
    char path[PATH_MAX];

    settings->is_profile_named = profile != NULL && strcmp(profile, "default") != 0;
    settings->profile = strdup(profile == NULL ? "default" : profile);
    if (credential_profile_path(path, sizeof(path), &settings->is_file_named))
        settings->profile_file = strdup(path);
    else if (settings->is_file_named)
        return refuse(error, "AWS_SHARED_CREDENTIALS_FILE", "is too long, or HOME is not set");
    else
        return settings->profile == NULL ? zt_fail_memory(error, "credentials") : ZT_OK;
    if (settings->profile == NULL || settings->profile_file == NULL)
        return zt_fail_memory(error, "credentials");
    return ZT_OK;
}

/* --- web identity --- */

/* AWS's own, unless a variable names another. */
static enum zt_status read_token_service(const char *region, struct service_address *out_service,
                                         struct zt_error *error)
{
    const char *name = "AWS_ENDPOINT_URL_STS";
    const char *named = credential_variable(name);
    char address[256];

    if (named == NULL) {
        name = "AWS_ENDPOINT_URL";
        named = credential_variable(name);
    }
    if (named != NULL)
        return service_address_read(named, out_service) ? ZT_OK : no_address(error, name);
    if (region == NULL || region[0] == '\0')
        snprintf(address, sizeof(address), "https://sts.amazonaws.com");
    else
        snprintf(address, sizeof(address), "https://sts.%s.amazonaws.com%s", region,
                 strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
    return service_address_read(address, out_service)
               ? ZT_OK
               : refuse(error, "the region", "has no token service: set AWS_ENDPOINT_URL_STS");
}

static bool is_session_name(const char *name)
{
    const size_t length = strlen(name);

    return length >= 2 && length <= 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=,.@+-") ==
               length;
}

static enum zt_status read_web_identity(const char *region, struct credential_settings *settings,
                                        struct zt_error *error)
{
    if (!copy_variable("AWS_ROLE_ARN", &settings->role) ||
        !copy_variable("AWS_WEB_IDENTITY_TOKEN_FILE", &settings->token_file) ||
        !copy_variable("AWS_ROLE_SESSION_NAME", &settings->role_session))
        return zt_fail_memory(error, "credentials");
    if (settings->token_file == NULL)
        return ZT_OK;
    if (settings->role == NULL)
        return refuse(error, "AWS_WEB_IDENTITY_TOKEN_FILE", "is set, AWS_ROLE_ARN is not");
    if (!credential_text_is_visible(zt_text_from(settings->role)) || strlen(settings->role) > 2048)
        return refuse(error, "AWS_ROLE_ARN", "is not the name of a role");
    if (settings->role_session != NULL && !is_session_name(settings->role_session))
        return refuse(error, "AWS_ROLE_SESSION_NAME",
                      "does not have 2 to 64 characters of A-Z, a-z, 0-9 and _=,.@+-");
    return read_token_service(region, &settings->token_service, error);
}

/* --- container and instance --- */

static enum zt_status read_container(struct credential_settings *settings, struct zt_error *error)
{
    const char *relative = credential_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = credential_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    char address[2 * SERVICE_TEXT_SIZE];

    if (!copy_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN", &settings->container_token) ||
        !copy_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &settings->container_token_file))
        return zt_fail_memory(error, "credentials");
    if (relative != NULL) {
        const int length = snprintf(address, sizeof(address), "%s%s", CONTAINER_SERVICE, relative);

        if (relative[0] != '/' || (size_t)length >= sizeof(address) ||
            !service_address_read(address, &settings->container))
            return refuse(error, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                          "is not a path that begins with /");
        return ZT_OK;
    }
    if (full == NULL)
        return ZT_OK;
    if (!service_address_read(full, &settings->container))
        return no_address(error, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (!service_address_is_safe(&settings->container))
        return refuse(
            error, "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "must begin with https://, or name this machine, 169.254.170.2 or 169.254.170.23");
    return ZT_OK;
}

static enum zt_status read_instance(struct credential_settings *settings, struct zt_error *error)
{
    static const char name[] = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    const char *disabled = credential_variable("AWS_EC2_METADATA_DISABLED");
    const char *named = credential_variable(name);

    if (disabled != NULL && strcasecmp(disabled, "true") == 0)
        return ZT_OK;
    if (service_address_read(named == NULL ? INSTANCE_SERVICE : named, &settings->instance))
        return ZT_OK;
    return no_address(error, name);
}

/* --- all --- */

static enum zt_status read_all(const char *region, struct credential_settings *settings,
                               struct zt_error *error)
{
    enum zt_status status = read_profile(settings, error);

    if (status == ZT_OK)
        status = read_web_identity(region, settings, error);
    if (status == ZT_OK)
        status = read_container(settings, error);
    if (status == ZT_OK)
        status = read_instance(settings, error);
    return status;
}

enum zt_status credential_settings_read(const char *region, struct credential_settings *out,
                                        struct zt_error *error)
{
    struct credential_settings settings = {.profile = NULL};
    const enum zt_status status = read_all(region, &settings, error);

    if (status == ZT_OK)
        *out = settings;
    else
        credential_settings_free(&settings);
    return status;
}

void credential_settings_free(struct credential_settings *settings)
{
    if (settings->container_token != NULL)
        explicit_bzero(settings->container_token, strlen(settings->container_token));
    free(settings->profile_file);
    free(settings->profile);
    free(settings->role);
    free(settings->role_session);
    free(settings->token_file);
    free(settings->container_token);
    free(settings->container_token_file);
    *settings = (struct credential_settings){.profile = NULL};
}
