/* The configuration of the program: defaults, then the file of --config, then the environment, then
 * the arguments. */
#ifndef COMMANDS_SETTINGS_H
#define COMMANDS_SETTINGS_H

#include "config/config.h"

/* Reads all sources; arguments begin at argv[1] and are checked before any file is read. On failure
 * returns false with one line in message. */
bool settings_load(int argc, char **argv, struct config *out_config,
                   struct config_message *message);

/* The file of --config, borrowed from the arguments; NULL if there is none. */
const char *settings_file(int argc, char **argv);

/* Defaults, the file (NULL: none) and the environment, without checking the rules between keys: for
 * finding the settings of a server that may also have arguments. */
bool settings_load_base(const char *path, struct config *out_config,
                        struct config_message *message);

/* The same as settings_load, without arguments. */
bool settings_load_file(const char *path, struct config *out_config,
                        struct config_message *message);

#endif
