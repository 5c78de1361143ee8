/* Rules between the keys of the S3 API. */
#include "config/s3_face.h"

#include <string.h>

#include "config/base_path.h"
#include "config/bucket.h"
#include "config/value.h"

static bool is_below(const char *path, const char *base_path)
{
    const size_t length = strlen(base_path);

    return length > 0 && strncmp(path, base_path, length) == 0 &&
           (path[length] == '\0' || path[length] == '/');
}

/* base_path is removed from a request's path first, so no request would reach a path below it. */
static bool validate_path(const struct config *config, struct config_message *message)
{
    const char *fault = config->s3.path[0] != '\0' ? config_fault_of_path(config->s3.path) : NULL;

    if (fault != NULL)
        return config_fail(message, "s3.path: \"%.300s\" %s", config->s3.path, fault);
    return !is_below(config->s3.path, config->base_path) ||
           config_fail(message,
                       "s3.path: \"%.300s\" must not be equal to base_path or below it: choose "
                       "another path, or false to turn the S3 API off",
                       config->s3.path);
}

static bool validate_bucket(const struct config *config, struct config_message *message)
{
    const char *fault = config_fault_of_bucket(config->s3.bucket, strlen(config->s3.bucket));

    return fault == NULL ||
           config_fail(message, "s3.bucket: \"%.200s\": %s", config->s3.bucket, fault);
}

static bool validate_listen(const struct config *config, struct config_message *message)
{
    const bool knows_clients = config->auth.tokens[0] != '\0' || config->s3.keys[0] != '\0';
    struct config_listen listen;
    struct config_message reason;

    if (config->s3.listen[0] == '\0')
        return true;
    if (!config_listen_parse(config->s3.listen, &listen, &reason))
        return config_fail(message, "s3.listen: %s", reason.text);
    if (config->writable && !knows_clients && !config_listen_is_loopback(&listen))
        return config_fail(message,
                           "writable is refused with s3.listen %.300s, without tokens and access "
                           "keys: it is not a loopback address, so any client could write",
                           config->s3.listen);
    return true;
}

bool config_validate_s3_face(const struct config *config, struct config_message *message)
{
    return validate_path(config, message) && validate_bucket(config, message) &&
           validate_listen(config, message);
}
