/* The overview, the help of a command, and its manual page. */
#ifndef COMMANDS_HELP_H
#define COMMANDS_HELP_H

#include <stddef.h>

#include "commands/command_table.h"

/* Prints on standard output: all commands, one line each. */
void help_print_overview(void);
/* The description of the command, its options, and examples. */
void help_print_command(const struct command *command);
/* The same as a page of the manual in the language of man(7). */
void help_print_manual(const struct command *command);

/* "--verify lazy|eager|off", "--to FORMAT", "--zstd[=LEVEL]", "-q, --quiet" */
void help_format_option(const struct command_option *option, char *out_text, size_t size);

#endif
