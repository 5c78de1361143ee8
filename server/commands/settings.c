/* Reading arguments ("--name value", "--name=value") and laying the sources of configuration over
 * each other. */
#include "commands/settings.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* Longer than any name of an argument. */
#define NAME_SIZE 64

/* Named in the documentation of the program, and not there yet. */
static const char *const later[] = {"--tokens", "--tls-cert", "--tls-key", "--tls-client-ca"};

/* Goes through the arguments one by one. */
struct walk {
    int argc;
    char **argv;
    int at;
};

struct argument {
    char name[NAME_SIZE];
    const char *value; /* NULL for a flag */
};

static bool is_later(const char *name)
{
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        if (strcmp(name, later[i]) == 0)
            return true;
    return false;
}

static bool refuse(struct config_message *message, const char *name, const char *reason)
{
    snprintf(message->text, sizeof(message->text), "%.200s: %s", name, reason);
    return false;
}

static enum config_argument kind_of(const char *name)
{
    return strcmp(name, "--config") == 0 ? CONFIG_ARGUMENT_VALUE : config_argument_kind(name);
}

/* Takes the next argument, with its value. */
static bool walk_take(struct walk *walk, struct argument *argument, struct config_message *message)
{
    char *text = walk->argv[walk->at++];
    size_t length = strcspn(text, "=");
    enum config_argument kind;

    if (strncmp(text, "--", 2) != 0 || length >= sizeof(argument->name))
        return refuse(message, text, "unknown argument");
    memcpy(argument->name, text, length);
    argument->name[length] = '\0';
    argument->value = text[length] == '=' ? text + length + 1 : NULL;
    if (is_later(argument->name))
        return refuse(message, argument->name, "not in this release");
    kind = kind_of(argument->name);
    if (kind == CONFIG_ARGUMENT_UNKNOWN)
        return refuse(message, argument->name, "unknown argument");
    if (kind == CONFIG_ARGUMENT_FLAG)
        return argument->value == NULL || refuse(message, argument->name, "takes no value");
    if (argument->value == NULL) {
        /* What looks like another argument is one; a value that begins so can be given behind "=".
         */
        if (walk->at == walk->argc || strncmp(walk->argv[walk->at], "--", 2) == 0)
            return refuse(message, argument->name, "needs a value");
        argument->value = walk->argv[walk->at++];
    }
    return true;
}

/* Applies all arguments to config and finds --config's file. */
static bool apply_arguments(int argc, char **argv, struct config *config, const char **out_file,
                            struct config_message *message)
{
    struct walk walk = {argc, argv, 1};

    while (walk.at < walk.argc) {
        struct argument argument;

        if (strcmp(walk.argv[walk.at], "--") == 0) {
            /* No file may follow. */
            walk.at++;
            return walk.at == walk.argc || refuse(message, walk.argv[walk.at], "unknown argument");
        }
        if (!walk_take(&walk, &argument, message))
            return false;
        if (strcmp(argument.name, "--config") == 0)
            *out_file = argument.value;
        else if (!config_set_argument(config, argument.name, argument.value, message))
            return false;
    }
    return true;
}

static void say_warning(void *context, const char *line)
{
    (void)context;
    log_write(LOG_LEVEL_WARN, "%s", line);
}

/* Everything but the arguments. file may be NULL. */
static bool load_base(const char *file, struct config *config, struct config_message *message)
{
    const struct config_warnings warnings = {say_warning, NULL};

    config_defaults(config);
    return (file == NULL || config_load_file(config, file, message)) &&
           config_load_environment(config, environ, &warnings, message);
}

bool settings_load(int argc, char **argv, struct config *out_config, struct config_message *message)
{
    struct config config;
    const char *file = NULL;

    config_defaults(&config);
    if (!apply_arguments(argc, argv, &config, &file, message) ||
        !load_base(file, &config, message) ||
        !apply_arguments(argc, argv, &config, &file, message) || !config_validate(&config, message))
        return false;
    *out_config = config;
    return true;
}

bool settings_load_file(const char *path, struct config *out_config, struct config_message *message)
{
    struct config config;

    if (!load_base(path, &config, message) || !config_validate(&config, message))
        return false;
    *out_config = config;
    return true;
}
