/* The commands of the program. Each receives its own arguments, argv[0] being its name, and returns
 * the exit status. */
#ifndef COMMANDS_COMMANDS_H
#define COMMANDS_COMMANDS_H

#include "zt/status.h"

enum exit_status {
    EXIT_DONE,  /* 0 */
    EXIT_BAD,   /* 1: a file is bad, or an operation failed */
    EXIT_USAGE, /* 2: wrong usage or configuration */
};

/* Runs the command named by the program's arguments. */
int commands_run(int argc, char **argv);

int command_serve(int argc, char **argv);
int command_ls(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_stats(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_pull(int argc, char **argv);
int command_push(int argc, char **argv);
int command_prefetch(int argc, char **argv);
int command_token(int argc, char **argv);
int command_check_config(int argc, char **argv);
int command_healthcheck(int argc, char **argv);
int command_completion(int argc, char **argv);
int command_help(int argc, char **argv);

/* Prints a line "ztserve: …" on standard error. Escapes control characters, since file names may
 * contain them. */
void command_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for wrong usage, with a hint at the help of the command that runs; returns
 * EXIT_USAGE. */
int command_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that there is no such command, and which one was probably meant; returns EXIT_USAGE. */
int command_unknown(const char *name);

/* Writes "ztserve: path: …" and the failure on a line of standard error; returns EXIT_BAD. */
int failure_complain(const char *path, const struct zt_error *error);

/* Says that objects are cut along axis 0 though a set of axis rules ("@llama") fits the model. */
void command_suggest_axes(const char *set);

/* Flushes standard output and returns status, or EXIT_BAD if it could not be written (a full
 * disk). */
int command_finish(int status);

#endif
