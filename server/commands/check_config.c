/* ztserve check-config: prints the configuration that results from a file and the environment, and
 * checks the files that it names as serve would. Those that are not here may well be on the machine
 * that the configuration is for: they are only a warning. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "access/access.h"
#include "access/jwks.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/option_reader.h"
#include "commands/settings.h"
#include "config/bucket.h"
#include "http/tls/tls.h"
#include "serve/upstream_files.h"
#include "store/store.h"

/* Empties the value of a key if it names what is not here. */
static bool keep_if_here(const char *key, char *path)
{
    if (path[0] == '\0' || access(path, F_OK) == 0 || errno != ENOENT)
        return true;
    command_complain("%s: %s: %s; it is not checked", key, path, strerrordesc_np(ENOENT));
    path[0] = '\0';
    return false;
}

static bool leave_out_absent(struct config *config)
{
    const struct {
        const char *key;
        char *path;
    } paths[] = {
        {"root", config->root},           {"auth.tokens", config->auth.tokens},
        {"auth.jwks", config->auth.jwks}, {"tls.cert", config->tls.cert},
        {"tls.key", config->tls.key},     {"tls.client_ca", config->tls.client_ca},
        {"s3.ca", config->s3.ca},         {"s3.keys", config->s3.keys},
    };
    bool all = true;

    for (unsigned i = 0; i < config->upstream_count; i++) {
        struct config_upstream *upstream = &config->upstreams[i];

        all = keep_if_here("upstreams: token_file", upstream->token_file) && all;
        all = keep_if_here("upstreams: ca", upstream->ca) && all;
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (!config_root_is_bucket(paths[i].path))
            all = keep_if_here(paths[i].key, paths[i].path) && all;
    return all;
}

/* The files can be checked against each other only if none is missing. */
static bool check_access(const struct config *config, bool is_whole, struct config_message *message)
{
    struct access *access = access_load(config, message->text, sizeof(message->text));
    struct jwks *keys = NULL;
    bool is_right = access != NULL;

    if (is_right && config->auth.tokens[0] == '\0' && config->auth.jwks[0] != '\0') {
        keys = jwks_load(config->auth.jwks, message->text, sizeof(message->text));
        is_right = keys != NULL;
    }
    if (is_right && is_whole)
        access_warn(access, NULL, config);
    jwks_free(keys);
    access_release(access);
    return is_right;
}

static bool check_root(const struct config *config, struct config_message *message)
{
    struct zt_error error;

    if (config->root[0] == '\0' || config_root_is_bucket(config->root) ||
        store_local_check(config->root, &error) == ZT_OK)
        return true;
    snprintf(message->text, sizeof(message->text), "%s", error.message);
    return false;
}

static bool check_upstreams(const struct config *config, struct config_message *message)
{
    struct upstream_tokens tokens;

    if (!upstream_tokens_load(config, &tokens, message->text, sizeof(message->text)))
        return false;
    upstream_tokens_free(&tokens);
    upstream_tokens_warn(config);
    return true;
}

static bool check_files(const struct config *config, struct config_message *message)
{
    struct config here = *config;
    const bool is_whole = leave_out_absent(&here);

    return check_access(&here, is_whole, message) &&
           tls_check(&here, message->text, sizeof(message->text)) &&
           check_upstreams(&here, message) && check_root(&here, message);
}

int command_check_config(int argc, char **argv)
{
    struct arguments arguments = {.argc = argc, .argv = argv};
    bool is_option;
    bool more_is_option;
    const char *path = arguments_next(&arguments, &is_option);
    struct config config;
    struct config_message message;

    if (path != NULL && is_option)
        return option_unknown(command_find("check-config"), path);
    if (path == NULL || arguments_next(&arguments, &more_is_option) != NULL)
        return command_usage("check-config takes one configuration file");
    if (!settings_load_file(path, &config, &message) || !check_files(&config, &message)) {
        command_complain("%s", message.text);
        return EXIT_USAGE;
    }
    if (!config_print(&config, stdout))
        return command_finish(EXIT_BAD);
    return command_finish(EXIT_DONE);
}
