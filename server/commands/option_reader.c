/* Reads options by the table, so that the help and the completions cannot differ from it. */
#include "commands/option_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/model_address.h"
#include "commands/commands.h"
#include "conversion/read_only_format.h"

/* All words of an option, and commas. */
#define WORDS_SIZE 160

struct option_reader option_reader_of(int argc, char **argv)
{
    const struct option_reader reader = {.command = command_find(argv[0]),
                                         .arguments = {.argc = argc, .argv = argv}};

    assert(reader.command != NULL);
    return reader;
}

int option_unknown(const struct command *command, const char *argument)
{
    const size_t length = strcspn(argument, "=");
    char name[64];
    const char *nearest = NULL;

    if (length < sizeof(name)) {
        memcpy(name, argument, length);
        name[length] = '\0';
        nearest = command_nearest_option(command, name);
    }
    if (nearest != NULL)
        return command_usage("%s: unknown argument; did you mean %s?", argument, nearest);
    return command_usage("%s: unknown argument", argument);
}

/* The option of "--name", "--name=…" or "-q", or NULL. */
static const struct command_option *find(const struct command *command, const char *argument)
{
    const size_t length = strcspn(argument, "=");

    for (const struct command_option *option = command->options; option->name != NULL; option++) {
        if (strlen(option->name) == length && memcmp(option->name, argument, length) == 0)
            return option;
        if (option->letter != 0 && argument[1] == option->letter && argument[2] == '\0')
            return option;
    }
    return NULL;
}

static enum option_found refuse_word(const struct command_option *option, const char *value)
{
    /* A format that only some options could take. */
    const char *read_only = read_only_format(value);
    char text[WORDS_SIZE] = "";
    size_t at = 0;

    for (const char *const *word = option->words(); *word != NULL && at < sizeof(text); word++) {
        const char *before = word[1] == NULL ? " or " : ", ";

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", at == 0 ? "" : before, *word);
    }
    assert(at < sizeof(text));
    if (read_only != NULL)
        command_usage("%s %s: %s is read, not written; it must be %s", option->name, value,
                      read_only, text);
    else
        command_usage("%s %s: it must be %s", option->name, value, text);
    return OPTION_WRONG;
}

static bool is_word(const struct command_option *option, const char *value)
{
    for (const char *const *word = option->words(); *word != NULL; word++)
        if (strcmp(*word, value) == 0)
            return true;
    return false;
}

/* The value after "=", or the next argument unless it looks like an option. */
static bool take_value(struct option_reader *reader, const struct command_option *option,
                       char *equals)
{
    struct arguments *arguments = &reader->arguments;

    assert(arguments->taken < arguments->argc);
    if (equals != NULL) {
        reader->value = equals + 1;
    } else if (!option->value_is_optional) {
        if (arguments->taken + 1 == arguments->argc ||
            strncmp(arguments->argv[arguments->taken + 1], "--", 2) == 0)
            return false;
        reader->value = arguments->argv[++arguments->taken];
    }
    return true;
}

static enum option_found take_option(struct option_reader *reader, char *argument)
{
    const struct command_option *option = find(reader->command, argument);
    char *equals = strchr(argument, '=');

    if (option == NULL) {
        option_unknown(reader->command, argument);
        return OPTION_WRONG;
    }
    reader->name = option->name;
    if (option->kind == VALUE_NONE) {
        if (equals == NULL)
            return OPTION_NAMED;
        command_usage("%s: takes no value", option->name);
        return OPTION_WRONG;
    }
    if (!take_value(reader, option, equals)) {
        command_usage("%s: needs a value", option->name);
        return OPTION_WRONG;
    }
    if (option->kind == VALUE_WORD && reader->value != NULL && !is_word(option, reader->value))
        return refuse_word(option, reader->value);
    return OPTION_NAMED;
}

enum option_found option_reader_next(struct option_reader *reader)
{
    bool is_option;
    char *argument = arguments_next(&reader->arguments, &is_option);

    reader->name = NULL;
    reader->value = NULL;
    if (argument == NULL)
        return OPTION_END;
    if (is_option)
        return take_option(reader, argument);
    reader->value = argument;
    return OPTION_OPERAND;
}

bool option_reader_is(const struct option_reader *reader, const char *name)
{
    return reader->name != NULL && strcmp(reader->name, name) == 0;
}

enum progress_mode reporting_progress(const struct reporting *reporting)
{
    return reporting->is_quiet ? PROGRESS_NONE : reporting->progress;
}

bool reporting_take(struct reporting *reporting, const struct option_reader *reader)
{
    if (option_reader_is(reader, "--quiet"))
        reporting->is_quiet = true;
    else if (option_reader_is(reader, "--progress"))
        progress_mode_read(reader->value, &reporting->progress);
    else
        return false;
    return true;
}

bool server_option_take(struct client_options *options, const struct option_reader *reader)
{
    if (option_reader_is(reader, "--token-file"))
        options->token_file = reader->value;
    else if (option_reader_is(reader, "--ca"))
        options->ca_file = reader->value;
    else
        return false;
    return true;
}

/* A pipe is not opened, which could be done once only. */
static int check_file(const char *option, const char *path)
{
    struct stat info;
    int number = 0;

    if (path == NULL)
        return EXIT_DONE;
    if (access(path, R_OK) != 0 || stat(path, &info) != 0)
        number = errno;
    else if (S_ISDIR(info.st_mode))
        number = EISDIR;
    return number == 0 ? EXIT_DONE
                       : command_usage("%s %s: %s", option, path, strerrordesc_np(number));
}

int server_options_check(const struct client_options *options)
{
    const int status = check_file("--token-file", options->token_file);

    return status == EXIT_DONE ? check_file("--ca", options->ca_file) : status;
}

int url_refuse(const char *text)
{
    if (web_address_lacks_scheme(text))
        return command_usage("%s: this is not an http or https URL; did you mean http://%s?", text,
                             text);
    return command_usage("%s: this is not an http or https URL", text);
}

int operand_check(const char *path)
{
    struct zt_error error;

    if (web_address_is_meant(path) && model_address_check(path, &error) != ZT_OK)
        return command_usage("%s: %s", path, error.message);
    if (web_address_lacks_scheme(path) && access(path, F_OK) != 0)
        return command_usage("%s: there is no such file; did you mean http://%s?", path, path);
    return EXIT_DONE;
}

int operands_check(char **paths, int count)
{
    int status = EXIT_DONE;

    for (int i = 0; i < count && status == EXIT_DONE; i++)
        status = operand_check(paths[i]);
    return status;
}
