/* Reads the arguments of a command by its table of options: "--name value", "--name=value",
 * "--name", and "-q" where the option has a letter, in any order with the operands. */
#ifndef COMMANDS_OPTION_READER_H
#define COMMANDS_OPTION_READER_H

#include "client/client.h"
#include "commands/arguments.h"
#include "commands/command_table.h"
#include "terminal/progress_line.h"

enum option_found {
    OPTION_END,     /* no argument is left */
    OPTION_OPERAND, /* value is the operand */
    OPTION_NAMED,   /* name is the long name; value is NULL if there is none */
    OPTION_WRONG    /* the usage is wrong, and a line about it has been printed */
};

struct option_reader {
    const struct command *command;
    struct arguments arguments;
    const char *name;
    char *value;
};

/* argv[0] is the name of a command of the table. */
struct option_reader option_reader_of(int argc, char **argv);
/* Values of VALUE_WORD are among the words. */
enum option_found option_reader_next(struct option_reader *reader);
/* Whether the option that was found has this name. */
bool option_reader_is(const struct option_reader *reader, const char *name);

/* The line that says what is wrong, with the nearest option's name; returns EXIT_USAGE. */
int option_unknown(const struct command *command, const char *argument);

/* What a command says while it works. */
struct reporting {
    enum progress_mode progress;
    bool is_quiet; /* errors only */
};

/* Takes --progress and --quiet; false: the option is another one. */
bool reporting_take(struct reporting *reporting, const struct option_reader *reader);
/* The progress to show: none if the command is quiet. */
enum progress_mode reporting_progress(const struct reporting *reporting);

/* Takes --token-file and --ca; false: the option is another one. */
bool server_option_take(struct client_options *options, const struct option_reader *reader);
/* EXIT_DONE; or EXIT_USAGE with a line about the option whose file cannot be read. */
int server_options_check(const struct client_options *options);
/* The same for operands: URLs that can name neither a model nor a file, and missing files that look
 * like URLs without a scheme. */
int operand_check(const char *path);
int operands_check(char **paths, int count);
/* The line about an operand that must be a URL and is none; returns EXIT_USAGE. */
int url_refuse(const char *text);

#endif
