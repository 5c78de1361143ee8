/* Chooses the command, prints the help, and formats messages for all commands. */
#include "commands/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "commands/plain_text.h"

/* A path and a sentence. */
#define LINE_SIZE 8192

static const char help[] =
    "ztserve " ZTSERVE_VERSION ": serves tensor container files over HTTP\n"
    "\n"
    "Usage:\n"
    "  ztserve serve --root DIR [options]     serve every model below DIR\n"
    "  ztserve ls FILE [--json]               show a file's manifest: a table, or JSON\n"
    "  ztserve verify FILE... [--canonical]   check every rule and digest; one line per file\n"
    "  ztserve convert IN OUT [options]       convert to another format, by OUT's extension unless "
    "--to is given\n"
    "  ztserve check-config FILE              check a configuration file and print the resulting "
    "configuration\n"
    "  ztserve --help | --version\n"
    "\n"
    "Options of serve:\n"
    "  --root DIR                  folder of the models to serve\n"
    "  --listen ADDRESS:PORT       default 127.0.0.1:8080; port 0 picks a free one\n"
    "  --writable                  accept uploads; only on loopback addresses\n"
    "  --config FILE               JSON file; the environment and arguments override it\n"
    "  --verify lazy|eager|off     check digests before a component is first sent (lazy), when a "
    "model is loaded (eager), or never\n"
    "  --threads N                 event loops; 0, the default, starts one per processor\n"
    "  --log-format text|json      default text\n"
    "  --log-level error|warn|info|debug\n"
    "                              default info\n"
    "\n"
    "Option of verify:\n"
    "  --canonical                 also require the canonical form of zTensor 2\n"
    "\n"
    "Options of convert:\n"
    "  --to FORMAT                 zt (zTensor 1.2), zt2 (zTensor 2, canonical), mag, safetensors, "
    "npz or npy\n"
    "  --zstd[=LEVEL]              compress; for zt and zt2 (then not canonical), level 1 to 22, "
    "default 3\n"
    "\n"
    "An environment variable can set any key of the configuration: ZTSERVE_LISTEN, "
    "ZTSERVE_UPLOAD_MAX_BYTES.\n"
    "Exit status: 0 success; 1 a file is bad or an operation failed; 2 wrong usage or "
    "configuration.\n";

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    {"serve", command_serve},
    {"ls", command_ls},
    {"verify", command_verify},
    {"convert", command_convert},
    {"check-config", command_check_config},
};

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
    va_list arguments;

    va_start(arguments, format);
    print_line(format, arguments, " (see ztserve --help)");
    va_end(arguments);
    return EXIT_USAGE;
}

int command_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    command_complain("cannot write to standard output: %s", strerrordesc_np(errno));
    return status == EXIT_DONE ? EXIT_BAD : status;
}

static int print(const char *text)
{
    fputs(text, stdout);
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

int commands_run(int argc, char **argv)
{
    if (argc < 2)
        return command_usage("a command is missing");
    if (is_help(argv[1]))
        return print(help);
    if (strcmp(argv[1], "--version") == 0)
        return print(ZTSERVE_VERSION "\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return asks_for_help(argc - 1, argv + 1) ? print(help)
                                                     : commands[i].run(argc - 1, argv + 1);
        }
    }
    return command_usage("there is no command \"%s\"", argv[1]);
}
