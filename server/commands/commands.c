/* Chooses the command, and formats messages for all commands. */
#include "commands/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "commands/command_table.h"
#include "commands/help.h"
#include "files/opened_file.h"
#include "terminal/plain_text.h"

/* A path and a sentence. */
#define LINE_SIZE 8192
/* " (see ztserve check-config --help)" */
#define HINT_SIZE 64

/* The command that was chosen, or NULL; set once, before any thread is started. */
static const struct command *running;

__attribute__((format(printf, 1, 0))) static void print_line(const char *format, va_list arguments,
                                                             const char *end)
{
    char line[LINE_SIZE];

    vsnprintf(line, sizeof(line), format, arguments);
    fputs("ztserve: ", stderr);
    plain_text_write(stderr, line, strlen(line));
    fprintf(stderr, "%s\n", end);
}

void command_complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line(format, arguments, "");
    va_end(arguments);
}

int command_usage(const char *format, ...)
{
    char hint[HINT_SIZE];
    va_list arguments;

    snprintf(hint, sizeof(hint), " (see ztserve %s%s--help)", running != NULL ? running->name : "",
             running != NULL ? " " : "");
    va_start(arguments, format);
    print_line(format, arguments, hint);
    va_end(arguments);
    return EXIT_USAGE;
}

void command_suggest_axes(const char *set)
{
    command_complain(
        "without --axis, every object is divided along axis 0; --axis %s has the rules for "
        "this model's names",
        set);
}

int failure_complain(const char *path, const struct zt_error *error)
{
    fputs("ztserve: ", stderr);
    plain_text_write(stderr, path, strlen(path));
    fputs(": ", stderr);
    failure_write(stderr, error);
    fputc('\n', stderr);
    return EXIT_BAD;
}

int command_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    command_complain("cannot write to standard output: %s", strerrordesc_np(errno));
    return status == EXIT_DONE ? EXIT_BAD : status;
}

int command_unknown(const char *name)
{
    const char *nearest = command_nearest(name);

    if (nearest != NULL)
        return command_usage("there is no command \"%s\"; did you mean \"%s\"?", name, nearest);
    return command_usage("there is no command \"%s\"", name);
}

static int print_help(const struct command *command)
{
    if (command != NULL)
        help_print_command(command);
    else
        help_print_overview();
    return command_finish(EXIT_DONE);
}

static int print_version(void)
{
    printf("%s\n", ZTSERVE_VERSION);
    return command_finish(EXIT_DONE);
}

static int is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i]))
            return 1;
    return 0;
}

/* Whether an argument is one of the options that may also come before the command; *out_count: how
 * many arguments it takes. */
static int is_common(const char *argument, int *out_count)
{
    static const char *const with_value[] = {"--progress", "--token-file", "--ca"};

    *out_count = 1;
    if (strcmp(argument, "--quiet") == 0 || strcmp(argument, "-q") == 0)
        return 1;
    for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++) {
        const size_t length = strlen(with_value[i]);

        if (strncmp(argument, with_value[i], length) != 0)
            continue;
        *out_count = argument[length] == '=' ? 1 : 2;
        if (argument[length] == '=' || argument[length] == '\0')
            return 1;
    }
    return 0;
}

/* Moves the command before the options that precede it: they are its own from there on. */
static void put_command_first(int argc, char **argv)
{
    int at = 1;
    int count;
    char *command;

    while (at < argc && is_common(argv[at], &count))
        at += count;
    if (at == 1 || at >= argc)
        return;
    command = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
    argv[1] = command;
}

int commands_run(int argc, char **argv)
{
    const struct command *command;

    put_command_first(argc, argv);
    if (argc < 2)
        return command_usage("a command is missing");
    if (is_help(argv[1]))
        return print_help(NULL);
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    command = command_find(argv[1]);
    if (command == NULL)
        return command_unknown(argv[1]);
    running = command;
    return asks_for_help(argc - 1, argv + 1) ? print_help(command)
                                             : command->run(argc - 1, argv + 1);
}
