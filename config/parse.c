/* Applies defaults, environment and arguments, and checks the rules between keys. file.c reads the
 * file. */
#include "config/config.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "config/base_path.h"
#include "config/browsers.h"
#include "config/bucket.h"
#include "config/network.h"
#include "config/s3_face.h"
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

/* Finds the variable that was probably meant. Returns false for a known one, which has no value. */
static bool suggest_variable(const char *name, char out_nearest[VARIABLE_SIZE])
{
    const size_t prefix = strlen("ZTSERVE_");
    const struct config_key *key;
    char wanted[VARIABLE_SIZE];
    size_t length = 0;

    assert(strncmp(name, "ZTSERVE_", prefix) == 0 && strlen(name) < VARIABLE_SIZE);
    for (const char *at = name + prefix; *at != '\0'; at++)
        wanted[length++] = (char)tolower((unsigned char)*at);
    wanted[length] = '\0';
    key = config_key_suggest(wanted);
    /* Typing errors are rare in the first letter. */
    if (key == NULL || key->name[0] != wanted[0])
        return false;
    snprintf(out_nearest, VARIABLE_SIZE, "ZTSERVE_%s", key->name);
    for (char *at = out_nearest; *at != '\0'; at++)
        *at = *at == '.' ? '_' : (char)toupper((unsigned char)*at);
    return strcmp(out_nearest, name) != 0;
}

static void warn_unknown(void (*warn)(const char *line), const char *name)
{
    struct config_message line;
    char nearest[VARIABLE_SIZE];

    if (warn == NULL)
        return;
    if (suggest_variable(name, nearest))
        config_say(&line, "%s: unknown variable, ignored; did you mean %s?", name, nearest);
    else
        config_say(&line, "%s: unknown variable, ignored", name);
    warn(line.text);
}

/* Variables of the client commands, which may also be in the environment of a server. */
static bool is_of_clients(const char *name)
{
    return strcmp(name, "ZTSERVE_TOKEN") == 0;
}

static bool load_variable(struct config *config, const char *entry, void (*warn)(const char *line),
                          struct config_message *message)
{
    size_t length = strcspn(entry, "=");
    const struct config_key *key = config_key_find_variable(entry, length);
    char name[VARIABLE_SIZE];

    snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1),
             entry);
    if (key == NULL || entry[length] != '=') {
        if (!is_of_clients(name))
            warn_unknown(warn, name);
        return true;
    }
    return config_value_read(config, key, entry + length + 1, name, message);
}

/* Platforms that choose a container's port set the variable PORT. */
static bool take_port(struct config *config, char *const *environment,
                      struct config_message *message)
{
    static const char name[] = "PORT=";
    const size_t kept = strcspn(config->listen, "$");
    struct config_listen listen;
    struct config_message reason;

    if (!config_listen_wants_port(config->listen))
        return true;
    while (*environment != NULL && strncmp(*environment, name, strlen(name)) != 0)
        environment++;
    if (*environment == NULL)
        return config_fail(message, "listen: %.300s: the variable PORT is not set", config->listen);
    snprintf(config->listen + kept, sizeof(config->listen) - kept, "%s",
             *environment + strlen(name));
    return config_listen_parse(config->listen, &listen, &reason) ||
           config_fail(message, "listen, with the variable PORT: %s", reason.text);
}

bool config_load_environment(struct config *config, char *const *environment,
                             void (*warn)(const char *line), struct config_message *message)
{
    struct config loaded = *config;

    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], "ZTSERVE_", strlen("ZTSERVE_")) != 0)
            continue;
        if (!load_variable(&loaded, environment[i], warn, message))
            return false;
    }
    if (!take_port(&loaded, environment, message))
        return false;
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

static bool allows_any_origin(const struct config *config)
{
    const char *position = config->cors.origins;
    const char *word;
    size_t length;

    while ((word = config_list_next(&position, &length)) != NULL)
        if (length == 1 && word[0] == '*')
            return true;
    return false;
}

/* Pages of any site may read public data, but not protected data, and may not write. */
static bool validate_any_origin(const struct config *config, struct config_message *message)
{
    const char *together = config->auth.tokens[0] != '\0'     ? "auth.tokens"
                           : config->tls.client_ca[0] != '\0' ? "tls.client_ca"
                           : config->writable                 ? "writable"
                                                              : NULL;

    if (together == NULL || !allows_any_origin(config))
        return true;
    return config_fail(message,
                       "cors.origins: * is refused together with %s; list the origins of the "
                       "pages that may use the API",
                       together);
}

/* Rules for writing, and keys that require another key. */
static bool validate_access(const struct config *config, const struct config_listen *listen,
                            struct config_message *message)
{
    const bool has_tokens = config->auth.tokens[0] != '\0';

    if (config->writable && !has_tokens && !config_listen_is_loopback(listen))
        return config_fail(message,
                           "writable is refused on %.300s without tokens: it is not a loopback "
                           "address, so any client could write; give --tokens FILE, or listen on "
                           "127.0.0.1 behind a proxy that authenticates",
                           config->listen);
    if (!validate_any_origin(config, message))
        return false;
    if (config->auth.jwks[0] != '\0' &&
        (!has_tokens || config->auth.issuer[0] == '\0' || config->auth.audience[0] == '\0'))
        return config_fail(message, "auth.jwks needs auth.tokens, auth.issuer and auth.audience");
    return true;
}

static bool validate_proxies(const struct config *config, struct config_message *message)
{
    const char *position = config->trusted_proxies;
    const char *word;
    struct network network;
    size_t length;

    while ((word = config_list_next(&position, &length)) != NULL)
        if (!network_parse(word, length, &network))
            return config_fail(
                message,
                "trusted_proxies: \"%.*s\" is neither an address (192.0.2.1, fd00::1) "
                "nor a network (10.0.0.0/8)",
                (int)(length < 100 ? length : 100), word);
    return true;
}

static bool validate_tls(const struct config *config, struct config_message *message)
{
    const bool has_cert = config->tls.cert[0] != '\0';

    if (has_cert != (config->tls.key[0] != '\0'))
        return config_fail(message, "%s is set without %s", has_cert ? "tls.cert" : "tls.key",
                           has_cert ? "tls.key" : "tls.cert");
    if (config->tls.client_ca[0] != '\0' && !has_cert)
        return config_fail(message, "tls.client_ca needs tls.cert and tls.key");
    return true;
}

/* The servers of a bucket claim what they change. A folder with versions has one writer. */
static bool validate_versions(const struct config *config, struct config_message *message)
{
    if (config->versions.keep == 0)
        return true;
    if (config->shared)
        return config_fail(message, "versions.keep cannot be used with shared: only one server "
                                    "may write to a folder with versions");
    return true;
}

bool config_validate(const struct config *config, struct config_message *message)
{
    struct config_listen listen;

    if (!config_listen_parse(config->listen, &listen, message) ||
        !validate_access(config, &listen, message) || !validate_tls(config, message) ||
        !validate_proxies(config, message) || !config_validate_base_path(config, message) ||
        !config_validate_browsers(config, message) || !config_validate_bucket(config, message) ||
        !config_validate_s3_face(config, message) || !validate_versions(config, message))
        return false;
    /* The digests of smaller pieces take more memory than the reading they save is worth. */
    if (config->limits.digest_piece_bytes != 0 &&
        config->limits.digest_piece_bytes < CONFIG_DIGEST_PIECE_MIN)
        return config_fail(message, "limits.digest_piece_bytes must be 0 or at least %d",
                           CONFIG_DIGEST_PIECE_MIN);
    return true;
}
