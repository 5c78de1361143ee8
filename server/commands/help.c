/* ztserve help: from the table of commands. */
#include "commands/help.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/option_reader.h"

/* Columns in which what is said of a command and an option begins. */
#define COMMAND_WIDTH 14
#define OPTION_WIDTH  24
/* Columns of a line. */
#define LINE_WIDTH 80
#define TEXT_SIZE  128

void help_format_option(const struct command_option *option, char *out_text, size_t size)
{
    size_t at = 0;

    if (option->letter != 0)
        at += (size_t)snprintf(out_text, size, "-%c, ", option->letter);
    at += (size_t)snprintf(out_text + at, size - at, "%s", option->name);
    if (option->value != NULL) {
        snprintf(out_text + at, size - at, option->value_is_optional ? "[=%s]" : " %s",
                 option->value);
    } else if (option->kind == VALUE_WORD) {
        const char *const *words = option->words();

        for (unsigned i = 0; words[i] != NULL; i++)
            at += (size_t)snprintf(out_text + at, size - at, "%c%s", i == 0 ? ' ' : '|', words[i]);
        assert(at < size);
    }
}

/* Prints text in lines; the first one begins at column at, the others at column indent. A newline
 * in it separates paragraphs. */
static void print_wrapped(const char *text, size_t indent, size_t at)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, " \n");

        if (at > indent && at + 1 + length > LINE_WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)length, text);
        at += length;
        text += length;
        if (*text == '\n') {
            printf("\n\n%*s", (int)indent, "");
            at = indent;
        }
        text += *text != '\0';
    }
    putchar('\n');
}

static void print_option(const char *text, const char *meaning)
{
    if (strlen(text) > OPTION_WIDTH)
        printf("  %s\n  %-*s  ", text, OPTION_WIDTH, "");
    else
        printf("  %-*s  ", OPTION_WIDTH, text);
    print_wrapped(meaning, OPTION_WIDTH + 4, OPTION_WIDTH + 4);
}

void help_print_command(const struct command *command)
{
    char text[TEXT_SIZE];

    printf("ztserve %s:", command->name);
    print_wrapped(command->meaning, 0, strlen("ztserve :") + strlen(command->name));
    printf("\nUsage: ztserve %s %s\n\n", command->name, command->operands);
    print_wrapped(command->details, 0, 0);
    printf("\nOptions:\n");
    for (const struct command_option *option = command->options; option->name != NULL; option++) {
        help_format_option(option, text, sizeof(text));
        print_option(text, option->meaning);
    }
    print_option("-h, --help", "print this help");
    printf("\nExamples:\n");
    for (unsigned i = 0; i < COMMAND_EXAMPLES; i++)
        printf("  %s\n      %s\n", command->examples[i].line, command->examples[i].meaning);
}

void help_print_overview(void)
{
    printf("ztserve " ZTSERVE_VERSION ": serves tensor container files over HTTP\n\n"
           "Usage: ztserve COMMAND [options]\n\nCommands:\n");
    for (unsigned i = 0; i < command_table_count; i++) {
        printf("  %-*s ", COMMAND_WIDTH, command_table[i].name);
        print_wrapped(command_table[i].meaning, COMMAND_WIDTH + 3, COMMAND_WIDTH + 3);
    }
    printf("\nztserve help COMMAND, or ztserve COMMAND --help, shows options and examples;\n"
           "ztserve --version prints the version. --quiet, --progress, --token-file and --ca\n"
           "may also come before COMMAND.\n\n"
           "Exit status: 0 success; 1 a file is bad or an operation failed; 2 wrong usage or\n"
           "configuration.\n");
}

int command_help(int argc, char **argv)
{
    struct option_reader reader = option_reader_of(argc, argv);
    const struct command *about = NULL;
    enum option_found found;
    bool as_page = false;

    while ((found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_NAMED)
            as_page = true;
        else if (about != NULL)
            return command_usage("help takes one command");
        else if ((about = command_find(reader.value)) == NULL)
            return command_unknown(reader.value);
    if (about == NULL && as_page)
        return command_usage("--man needs a command; the page of the program is ztserve(1)");
    if (about == NULL)
        help_print_overview();
    else if (as_page)
        help_print_manual(about);
    else
        help_print_command(about);
    return command_finish(EXIT_DONE);
}
