/* The options of the commands, in the order of their help. Each list ends with a name of NULL. */
#ifndef COMMANDS_COMMAND_OPTIONS_H
#define COMMANDS_COMMAND_OPTIONS_H

#include "commands/command_table.h"

extern const struct command_option no_options[];
extern const struct command_option serve_options[];
extern const struct command_option ls_options[];
extern const struct command_option verify_options[];
extern const struct command_option stats_options[];
extern const struct command_option diff_options[];
extern const struct command_option convert_options[];
extern const struct command_option pull_options[];
extern const struct command_option push_options[];
extern const struct command_option healthcheck_options[];
extern const struct command_option prefetch_options[];
extern const struct command_option token_options[];
extern const struct command_option help_options[];

/* Words of operands. */
const char *const *shell_words(void);
const char *const *command_words(void);

#endif
