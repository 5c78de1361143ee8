/* Reads the arguments ("--name value", "--name=value", and a folder in place of --root) and merges
 * the sources of the configuration. */
#include "commands/settings.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "commands/command_table.h"
#include "config/value.h"

/* Longer than the name of any argument. */
#define NAME_SIZE 64

/* Iterates over the arguments. */
struct walk {
    int argc;
    char **argv;
    int at;
    const char *operand; /* a folder without --root before it; NULL: none yet */
    bool has_root;       /* --root was given */
};

struct argument {
    char name[NAME_SIZE];
    const char *value; /* NULL for a flag */
};

static bool fail(struct config_message *message, const char *name, const char *reason)
{
    return config_fail(message, "%.200s: %s", name, reason);
}

/* Names the option that was probably meant. */
static bool fail_unknown(struct config_message *message, const char *name)
{
    const char *nearest = strcmp(name, "--port") == 0
                              ? "--listen"
                              : command_nearest_option(command_find("serve"), name);

    if (nearest != NULL)
        return config_fail(message, "%.200s: unknown argument; did you mean %s?", name, nearest);
    return fail(message, name, "unknown argument");
}

static enum config_argument kind_of(const char *name)
{
    return strcmp(name, "--config") == 0 ? CONFIG_ARGUMENT_VALUE : config_argument_kind(name);
}

/* A folder is the value of --root. Two folders would be a mistake, such as an unquoted blank. */
static bool take_folder(struct walk *walk, const char *folder, struct argument *argument,
                        struct config_message *message)
{
    if (walk->operand != NULL)
        return config_fail(message, "%.200s: serve takes one folder, and %.200s is another", folder,
                           walk->operand);
    if (folder[0] == '\0')
        return config_fail(message, "the folder to serve has no name");
    walk->operand = folder;
    strcpy(argument->name, "--root");
    argument->value = folder;
    return true;
}

/* Reads the next argument and its value. */
static bool walk_take(struct walk *walk, struct argument *argument, struct config_message *message)
{
    char *text = walk->argv[walk->at++];
    size_t length = strcspn(text, "=");
    enum config_argument kind;

    assert(walk->at <= walk->argc);
    if (text[0] != '-')
        return take_folder(walk, text, argument, message);
    if (strncmp(text, "--", 2) != 0 || length >= sizeof(argument->name))
        return fail_unknown(message, text);
    memcpy(argument->name, text, length);
    argument->name[length] = '\0';
    argument->value = text[length] == '=' ? text + length + 1 : NULL;
    kind = kind_of(argument->name);
    if (kind == CONFIG_ARGUMENT_UNKNOWN)
        return fail_unknown(message, argument->name);
    if (kind == CONFIG_ARGUMENT_FLAG)
        return argument->value == NULL || fail(message, argument->name, "takes no value");
    if (argument->value == NULL) {
        /* A value that looks like another argument must follow "=". */
        if (walk->at == walk->argc || strncmp(walk->argv[walk->at], "--", 2) == 0)
            return fail(message, argument->name, "needs a value");
        argument->value = walk->argv[walk->at++];
    }
    walk->has_root = walk->has_root || strcmp(argument->name, "--root") == 0;
    return true;
}

/* Applies all arguments to config, and finds the file of --config. */
static bool apply_arguments(int argc, char **argv, struct config *config, const char **out_file,
                            struct config_message *message)
{
    struct walk walk = {.argc = argc, .argv = argv, .at = 1};
    bool options_ended = false;

    while (walk.at < walk.argc) {
        struct argument argument;

        if (!options_ended && strcmp(walk.argv[walk.at], "--") == 0) {
            options_ended = true;
            walk.at++;
            continue;
        }
        if (!(options_ended ? take_folder(&walk, walk.argv[walk.at++], &argument, message)
                            : walk_take(&walk, &argument, message)))
            return false;
        if (strcmp(argument.name, "--config") == 0)
            *out_file = argument.value;
        else if (!config_set_argument(config, argument.name, argument.value, message))
            return false;
    }
    if (walk.operand != NULL && walk.has_root)
        return config_fail(message, "%.200s: --root already names a folder", walk.operand);
    return true;
}

static void say_warning(const char *line)
{
    log_write(LOG_LEVEL_WARN, "%s", line);
}

/* Defaults, file and environment; file may be NULL. */
static bool load_base(const char *file, struct config *config, struct config_message *message)
{
    config_defaults(config);
    return (file == NULL || config_load_file(config, file, message)) &&
           config_load_environment(config, environ, say_warning, message);
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

const char *settings_file(int argc, char **argv)
{
    struct config config;
    struct config_message message;
    const char *file = NULL;

    config_defaults(&config);
    return apply_arguments(argc, argv, &config, &file, &message) ? file : NULL;
}

bool settings_load_base(const char *path, struct config *out_config, struct config_message *message)
{
    struct config config;

    if (!load_base(path, &config, message))
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
