/* The arguments of a command that takes files: options begin with '-', and "--" ends them. */
#ifndef COMMANDS_ARGUMENTS_H
#define COMMANDS_ARGUMENTS_H

#include <stdbool.h>

/* Zero but for argc and argv, as the command got them. */
struct arguments {
    int argc;
    char **argv;
    int taken;
    bool options_ended;
};

/* The next argument, or NULL behind the last. *out_is_option: it begins with '-' and is more than
 * that, and no "--" came before it. The "--" itself is not told. */
char *arguments_next(struct arguments *arguments, bool *out_is_option);

#endif
