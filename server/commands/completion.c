/* ztserve completion: scripts that make a shell complete commands, options and their values, from
 * the table of commands. */
#include <stdio.h>
#include <string.h>

#include "commands/arguments.h"
#include "commands/command_table.h"
#include "commands/commands.h"

static void print_words(const char *const *words, const char *between)
{
    for (unsigned i = 0; words[i] != NULL; i++)
        printf("%s%s", i > 0 ? between : "", words[i]);
}

/* Prints text with a backslash before each of the given characters. */
static void print_escaped(const char *text, const char *characters)
{
    for (; *text != '\0'; text++) {
        if (strchr(characters, *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

/* --- bash --- */

/* What completes the current word, if the value is of this kind. */
static void print_bash_value(enum value_kind kind, const char *const *(*words)(void))
{
    if (kind == VALUE_FILE) {
        printf("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
    } else if (kind == VALUE_FOLDER) {
        printf("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")");
    } else if (kind == VALUE_WORD) {
        printf("mapfile -t COMPREPLY < <(compgen -W '");
        print_words(words(), " ");
        printf("' -- \"$cur\")");
    } else {
        printf(":");
    }
}

static void print_bash_command(const struct command *command)
{
    const struct command_option *option;

    for (option = command->options; option->name != NULL; option++) {
        if (option->kind == VALUE_NONE)
            continue;
        printf("    %s:%s%s) ", command->name, option->name, option->value_is_optional ? "=" : "");
        print_bash_value(option->kind, option->words);
        printf("; return ;;\n");
    }
    printf("    %s:*) options='", command->name);
    for (option = command->options; option->name != NULL; option++)
        printf("%s ", option->name);
    printf("--help'");
    if (command->kind == VALUE_FILE || command->kind == VALUE_WORD) {
        printf("\n        [[ $cur == -* ]] || { ");
        print_bash_value(command->kind, command->words);
        printf("; return; }");
    }
    printf(" ;;\n");
}

static void print_bash(void)
{
    printf("# Completion of ztserve for bash, printed by `ztserve completion bash`.\n"
           "_ztserve()\n"
           "{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options=\n"
           "    COMPREPLY=()\n"
           "    # bash makes a word of the = between an option and its value.\n"
           "    if [[ $cur == = ]]; then\n"
           "        cur=\n"
           "        before+='='\n"
           "    elif [[ $before == = ]]; then\n"
           "        before=${COMP_WORDS[COMP_CWORD - 2]}=\n"
           "    fi\n"
           "    if [[ $COMP_CWORD == 1 ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '");
    for (unsigned i = 0; i < command_table_count; i++)
        printf("%s ", command_table[i].name);
    printf("--help --version' -- \"$cur\")\n"
           "        return\n"
           "    fi\n"
           "    [[ $before == --zstd* ]] || before=${before%%=}\n"
           "    case ${COMP_WORDS[1]}:$before in\n");
    for (unsigned i = 0; i < command_table_count; i++)
        print_bash_command(&command_table[i]);
    printf("    esac\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
           "}\n"
           "complete -F _ztserve ztserve\n");
}

/* --- zsh --- */

/* The end of a specification of _arguments: ":what:how". */
static void print_zsh_value(enum value_kind kind, const char *const *(*words)(void),
                            const char *shown)
{
    printf(":");
    print_escaped(shown, ":\\'");
    printf(":");
    if (kind == VALUE_FILE) {
        printf("_files");
    } else if (kind == VALUE_FOLDER) {
        printf("_files -/");
    } else if (kind == VALUE_WORD) {
        printf("(");
        print_words(words(), " ");
        printf(")");
    }
}

/* A quote inside quotes would need three characters; no meaning has one but as an apostrophe. */
static void print_zsh_meaning(const char *meaning)
{
    for (; *meaning != '\0'; meaning++)
        if (*meaning == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *meaning) != NULL)
            printf("\\%c", *meaning);
        else
            putchar(*meaning);
}

static void print_zsh_command(const struct command *command)
{
    printf("        %s)\n            _arguments", command->name);
    for (const struct command_option *option = command->options; option->name != NULL; option++) {
        const char *equals = option->value_is_optional ? "=-" : "=";

        printf(" \\\n                '%s%s[", option->name,
               option->kind != VALUE_NONE ? equals : "");
        print_zsh_meaning(option->meaning);
        printf("]%s", option->value_is_optional ? ":" : "");
        if (option->kind != VALUE_NONE)
            print_zsh_value(option->kind, option->words,
                            option->value != NULL ? option->value : "word");
        printf("'");
    }
    printf(" \\\n                '--help[print help]'");
    if (command->kind != VALUE_NONE) {
        printf(" \\\n                '*");
        print_zsh_value(command->kind, command->words, "operand");
        printf("'");
    }
    printf("\n            ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef ztserve\n"
           "# Completion of ztserve for zsh, printed by `ztserve completion zsh`.\n"
           "_ztserve()\n"
           "{\n"
           "    local context state state_descr line\n"
           "    local -a commands\n"
           "    typeset -A opt_args\n"
           "    commands=(\n");
    for (unsigned i = 0; i < command_table_count; i++) {
        printf("        '%s:", command_table[i].name);
        print_zsh_meaning(command_table[i].meaning);
        printf("'\n");
    }
    printf("    )\n"
           "    _arguments -C '(- *)--help[print help]' '(- *)--version[print the version]' \\\n"
           "        '1:command:->command' '*::argument:->argument'\n"
           "    case $state in\n"
           "    command) _describe command commands ;;\n"
           "    argument)\n"
           "        case $line[1] in\n");
    for (unsigned i = 0; i < command_table_count; i++)
        print_zsh_command(&command_table[i]);
    printf("        esac\n"
           "        ;;\n"
           "    esac\n"
           "}\n"
           "if [ \"$funcstack[1]\" = _ztserve ]; then\n"
           "    _ztserve \"$@\"\n"
           "else\n"
           "    compdef _ztserve ztserve\n"
           "fi\n");
}

/* --- fish --- */

static void print_fish_meaning(const char *meaning)
{
    printf(" -d '");
    print_escaped(meaning, "'\\");
    printf("'\n");
}

/* -r: a value is required; -x: and files are not offered; -F: files are offered after all. */
static void print_fish_value(enum value_kind kind, const char *const *(*words)(void))
{
    if (kind == VALUE_FILE) {
        printf(" -r -F");
    } else if (kind == VALUE_FOLDER) {
        printf(" -x -a '(__fish_complete_directories)'");
    } else if (kind == VALUE_WORD) {
        printf(" -x -a '");
        print_words(words(), " ");
        printf("'");
    } else if (kind == VALUE_OTHER) {
        printf(" -x");
    }
}

static void print_fish_command(const struct command *command)
{
    printf("complete -c ztserve -n __fish_use_subcommand -a %s", command->name);
    print_fish_meaning(command->meaning);
    for (const struct command_option *option = command->options; option->name != NULL; option++) {
        printf("complete -c ztserve -n '__fish_seen_subcommand_from %s' -l %s", command->name,
               option->name + strlen("--"));
        if (option->letter != 0)
            printf(" -s %c", option->letter);
        if (!option->value_is_optional)
            print_fish_value(option->kind, option->words);
        print_fish_meaning(option->meaning);
    }
    if (command->kind == VALUE_FILE)
        printf("complete -c ztserve -n '__fish_seen_subcommand_from %s' -F\n", command->name);
    if (command->kind == VALUE_WORD) {
        printf("complete -c ztserve -n '__fish_seen_subcommand_from %s' -a '", command->name);
        print_words(command->words(), " ");
        printf("'\n");
    }
}

static void print_fish(void)
{
    printf("# Completion of ztserve for fish, printed by `ztserve completion fish`.\n"
           "complete -c ztserve -f\n"
           "complete -c ztserve -l help -d 'print help'\n"
           "complete -c ztserve -n __fish_use_subcommand -l version -d 'print the version'\n");
    for (unsigned i = 0; i < command_table_count; i++)
        print_fish_command(&command_table[i]);
}

int command_completion(int argc, char **argv)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } scripts[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    struct arguments arguments = {.argc = argc, .argv = argv};
    bool is_option;
    const char *shell = arguments_next(&arguments, &is_option);

    if (shell == NULL || is_option || arguments_next(&arguments, &is_option) != NULL)
        return command_usage("completion takes one shell: bash, zsh or fish");
    for (unsigned i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (strcmp(scripts[i].shell, shell) == 0) {
            scripts[i].print();
            return command_finish(EXIT_DONE);
        }
    }
    return command_usage("there is no completion for \"%s\", only for bash, zsh and fish", shell);
}
