/* The program's commands (http-api, section 9). Each takes its own arguments, argv[0] being the
 * command's name, and returns the program's exit status. */
#ifndef COMMANDS_COMMANDS_H
#define COMMANDS_COMMANDS_H

enum exit_status {
    EXIT_DONE,  /* 0 */
    EXIT_BAD,   /* 1: a file is bad, or an operation failed */
    EXIT_USAGE, /* 2: wrong usage or configuration */
};

/* Runs the command that the program's arguments name. */
int commands_run(int argc, char **argv);

int command_serve(int argc, char **argv);
int command_ls(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_check_config(int argc, char **argv);

/* One line "ztserve: …" on standard error. Control characters in it are escaped: names of files may
 * hold any. */
void command_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for wrong usage, with a hint where to read; returns EXIT_USAGE. */
int command_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes standard output; when it could not be written (a full disk) complains and returns
 * EXIT_BAD, else status. */
int command_finish(int status);

#endif
