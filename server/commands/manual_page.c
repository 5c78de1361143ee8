/* The manual page of a command, from the table of commands, in the language of man(7). */
#include <stdio.h>
#include <string.h>

#include "commands/help.h"

#define TEXT_SIZE 128

/* A backslash, a hyphen that is typed, and a line that begins with a dot mean something else to
 * the formatter; a newline in the text begins a paragraph. */
static void print_text(const char *text)
{
    printf("\\&");
    for (; *text != '\0'; text++)
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else if (*text == '\n')
            printf("\n.PP\n\\&");
        else if (*text == '\'' || *text == '~' || *text == '^' || *text == '`')
            printf(*text == '\''  ? "\\(cq"
                   : *text == '~' ? "\\(ti"
                   : *text == '^' ? "\\(ha"
                                  : "\\(ga");
        else
            putchar(*text);
    putchar('\n');
}

static void print_options(const struct command *command)
{
    char text[TEXT_SIZE];

    printf(".SH OPTIONS\n");
    for (const struct command_option *option = command->options; option->name != NULL; option++) {
        help_format_option(option, text, sizeof(text));
        printf(".TP\n.B ");
        print_text(text);
        print_text(option->meaning);
    }
    printf(".TP\n.B \\&\\-h, \\-\\-help\nPrint the help of this command.\n");
}

static void print_examples(const struct command *command)
{
    printf(".SH EXAMPLES\n");
    for (unsigned i = 0; i < COMMAND_EXAMPLES; i++) {
        printf(".TP\n.B ");
        print_text(command->examples[i].line);
        print_text(command->examples[i].meaning);
    }
}

void help_print_manual(const struct command *command)
{
    printf(".TH \"ZTSERVE\\-");
    for (const char *letter = command->name; *letter != '\0'; letter++)
        if (*letter == '-')
            printf("\\-");
        else
            putchar(*letter >= 'a' && *letter <= 'z' ? *letter - 'a' + 'A' : *letter);
    printf("\" 1 \"\" \"ztserve " ZTSERVE_VERSION "\" \"User Commands\"\n.SH NAME\n");
    printf("ztserve\\-");
    for (const char *letter = command->name; *letter != '\0'; letter++)
        printf(*letter == '-' ? "\\-" : "%c", *letter);
    printf(" \\- ");
    print_text(command->meaning);
    printf(".SH SYNOPSIS\n.B ztserve ");
    print_text(command->name);
    print_text(command->operands);
    printf(".SH DESCRIPTION\n");
    print_text(command->details);
    print_options(command);
    printf(".SH EXIT STATUS\n0 success; 1 a file is bad or an operation failed; 2 wrong usage or "
           "configuration.\n");
    print_examples(command);
    printf(".SH SEE ALSO\n\\fBztserve\\fR(1), \\fBztserve.json\\fR(5)\n");
}
