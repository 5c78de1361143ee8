/* The configuration of a run: defaults, then --config's file, then the environment, then the
 * arguments. */
#ifndef COMMANDS_SETTINGS_H
#define COMMANDS_SETTINGS_H

#include "config/config.h"

/* Reads all of it, from argv[1] on. False with one line in message; the arguments are judged before
 * any file is read. */
bool settings_load(int argc, char **argv, struct config *out_config,
                   struct config_message *message);

/* What is in force with this file and the environment, without arguments. */
bool settings_load_file(const char *path, struct config *out_config,
                        struct config_message *message);

#endif
