/* Iterates over the arguments of a command: options begin with '-', and "--" ends them. */
#ifndef COMMANDS_ARGUMENTS_H
#define COMMANDS_ARGUMENTS_H

#include <stdbool.h>

/* argc and argv are those of the command; all other members start at 0. */
struct arguments {
    int argc;
    char **argv;
    int taken;
    bool options_ended;
};

/* The next argument, or NULL after the last. *out_is_option: it begins with '-', is not "-" alone,
 * and no "--" came before it. The "--" itself is skipped. */
char *arguments_next(struct arguments *arguments, bool *out_is_option);

#endif
