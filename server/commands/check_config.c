/* ztserve check-config: prints the configuration that results from a file and the environment. */
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/settings.h"

int command_check_config(int argc, char **argv)
{
    struct arguments arguments = {.argc = argc, .argv = argv};
    bool is_option;
    bool more_is_option;
    const char *path = arguments_next(&arguments, &is_option);
    struct config config;
    struct config_message message;

    if (path == NULL || is_option || arguments_next(&arguments, &more_is_option) != NULL)
        return command_usage("check-config takes one configuration file");
    if (!settings_load_file(path, &config, &message)) {
        command_complain("%s", message.text);
        return EXIT_USAGE;
    }
    if (!config_print(&config, stdout))
        return command_finish(EXIT_BAD);
    return command_finish(EXIT_DONE);
}
