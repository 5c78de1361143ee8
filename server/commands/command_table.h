/* The table of commands and their options: what is read from the command line, what the help and
 * the manual say, and what the shells complete. */
#ifndef COMMANDS_COMMAND_TABLE_H
#define COMMANDS_COMMAND_TABLE_H

#include <stdbool.h>

/* What can stand for an operand, or for the value of an option, so that shells know what to
 * offer. */
enum value_kind { VALUE_NONE, VALUE_FILE, VALUE_FOLDER, VALUE_WORD, VALUE_OTHER };

struct command_option {
    const char *name; /* "--verify"; NULL ends a list */
    enum value_kind kind;
    bool value_is_optional;            /* --zstd[=LEVEL] */
    const char *value;                 /* "FILE"; NULL for words and without a value */
    const char *const *(*words)(void); /* of VALUE_WORD: terminated by NULL */
    const char *meaning;
    char letter; /* 'q' of -q; 0: none */
};

#define COMMAND_EXAMPLES 2

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *operands; /* as the help shows them: "IN OUT [options]" */
    enum value_kind kind; /* of the operands */
    const char *const *(*words)(void);
    const char *meaning;
    const struct command_option *options;
    const char *details; /* sentences; '\n' separates paragraphs */
    struct {
        const char *line;
        const char *meaning;
    } examples[COMMAND_EXAMPLES]; /* what the help shows at the end */
};

extern const struct command command_table[];
extern const unsigned command_table_count;

/* The command with this name, or NULL. */
const struct command *command_find(const char *name);
/* The command that was probably meant, or NULL. */
const char *command_nearest(const char *name);
/* The option that was probably meant, or NULL; "--" begins it. */
const char *command_nearest_option(const struct command *command, const char *name);

#endif
