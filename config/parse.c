/* Applies defaults, environment and arguments, and checks the rules between keys. file.c reads the
 * file. */
#include "config/config.h"

#include <string.h>

#include "config/schema.h"
#include "config/value.h"

/* Several times the length of "ZTSERVE_" and the longest key; in messages, longer names are cut. */
#define VARIABLE_SIZE 128

void config_defaults(struct config *out_config)
{
    memset(out_config, 0, sizeof(*out_config));
    for (size_t i = 0; i < config_keys_count; i++)
        config_value_reset(out_config, &config_keys[i]);
}

static void warn_unknown(const struct config_warnings *warnings, const char *name)
{
    struct config_message line;

    if (warnings == NULL || warnings->say == NULL)
        return;
    config_say(&line, "%s: unknown variable, ignored", name);
    warnings->say(warnings->context, line.text);
}

static bool load_variable(struct config *config, const char *entry,
                          const struct config_warnings *warnings, struct config_message *message)
{
    size_t length = strcspn(entry, "=");
    const struct config_key *key = config_key_find_variable(entry, length);
    char name[VARIABLE_SIZE];

    snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1),
             entry);
    if (key == NULL || entry[length] != '=') {
        warn_unknown(warnings, name);
        return true;
    }
    return config_value_read(config, key, entry + length + 1, name, message);
}

bool config_load_environment(struct config *config, char *const *environment,
                             const struct config_warnings *warnings, struct config_message *message)
{
    struct config loaded = *config;

    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], "ZTSERVE_", strlen("ZTSERVE_")) != 0)
            continue;
        if (!load_variable(&loaded, environment[i], warnings, message))
            return false;
    }
    *config = loaded;
    return true;
}

enum config_argument config_argument_kind(const char *name)
{
    const struct config_key *key = config_key_find_argument(name);

    if (key == NULL)
        return CONFIG_ARGUMENT_UNKNOWN;
    return key->type == CONFIG_TYPE_BOOL ? CONFIG_ARGUMENT_FLAG : CONFIG_ARGUMENT_VALUE;
}

bool config_set_argument(struct config *config, const char *name, const char *value,
                         struct config_message *message)
{
    const struct config_key *key = config_key_find_argument(name);

    if (key == NULL)
        return config_fail(message, "%s: unknown argument", name);
    if (key->type == CONFIG_TYPE_BOOL) {
        if (value != NULL)
            return config_fail(message, "%s: takes no value", name);
        return config_value_set_bool(config, key, true);
    }
    if (value == NULL)
        return config_fail(message, "%s: needs a value", name);
    return config_value_read(config, key, value, name, message);
}

bool config_validate(const struct config *config, struct config_message *message)
{
    struct config_listen listen;

    if (!config_listen_parse(config->listen, &listen, message))
        return false;
    /* Clients are not authenticated: anybody who can reach the port could write. */
    if (config->writable && !config_listen_is_loopback(&listen))
        return config_fail(
            message,
            "writable is refused on %.300s: it is not a loopback address, so anybody "
            "could write",
            config->listen);
    /* The digests of smaller pieces take more memory than the reading they save is worth. */
    if (config->limits.digest_piece_bytes != 0 &&
        config->limits.digest_piece_bytes < CONFIG_DIGEST_PIECE_MIN)
        return config_fail(message, "limits.digest_piece_bytes must be 0 or at least %d",
                           CONFIG_DIGEST_PIECE_MIN);
    return true;
}
