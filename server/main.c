/* The program: everything it does is a command. */
#include "commands/commands.h"

int main(int argc, char **argv)
{
    return commands_run(argc, argv);
}
