/* The program: everything it does is a command. */
#include <sys/prctl.h>

#include "commands/commands.h"

int main(int argc, char **argv)
{
    /* If the dynamic linker was called by its path, the process is named after it. */
    prctl(PR_SET_NAME, "ztserve");
    return commands_run(argc, argv);
}
