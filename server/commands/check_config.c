/* ztserve check-config: what a configuration file, with the environment over it, comes to. */
#include "commands/commands.h"
#include "commands/settings.h"

int command_check_config(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') {
        return command_refuse("check-config takes one configuration file");
    }
    struct config config;
    struct config_message message;
    if (!settings_load_file(argv[1], &config, &message)) {
        command_complain("%s", message.text);
        return EXIT_USAGE;
    }
    if (!config_print(&config, stdout)) {
        return command_finish(EXIT_BAD);
    }
    return command_finish(EXIT_DONE);
}
