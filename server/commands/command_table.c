/* Choices that are a key's come from the table of keys (config/schema.h). */
#include "commands/command_table.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "config/schema.h"

/* Columns in which what is said of a command and an option begins. */
#define COMMAND_WIDTH 38
#define OPTION_WIDTH  26

static const char *const *words_of(const char *argument)
{
    const struct config_key *key = config_key_find_argument(argument);

    assert(key != NULL && key->choices != NULL);
    return (const char *const *)key->choices;
}

static const char *const *verify_words(void)
{
    return words_of("--verify");
}

static const char *const *format_words(void)
{
    return words_of("--log-format");
}

static const char *const *level_words(void)
{
    return words_of("--log-level");
}

static const char *const *target_words(void)
{
    static const char *const words[] = {"zt", "zt2", "mag", "safetensors", "npz", "npy", NULL};

    return words;
}

static const char *const *shell_words(void)
{
    static const char *const words[] = {"bash", "zsh", "fish", NULL};

    return words;
}

static const struct command_option no_options[] = {{.name = NULL}};

static const struct command_option serve_options[] = {
    {"--root", VALUE_FOLDER, false, "DIR", NULL,
     "folder of the models to serve, or s3://bucket/prefix"},
    {"--cache-dir", VALUE_FOLDER, false, "DIR", NULL,
     "a bucket's block cache, on a local disk; default cache in the state folder"},
    {"--listen", VALUE_OTHER, false, "ADDRESS:PORT", NULL,
     "default 127.0.0.1:8080; port 0 picks a free one"},
    {"--writable", VALUE_NONE, false, NULL, NULL,
     "accept uploads; with --tokens, or on loopback addresses only"},
    {"--config", VALUE_FILE, false, "FILE", NULL,
     "JSON file; the environment and arguments override it"},
    {"--tokens", VALUE_FILE, false, "FILE", NULL, "who may do what; without it, everybody may"},
    {"--tls-cert", VALUE_FILE, false, "FILE", NULL, "certificate and its chain; serves https"},
    {"--tls-key", VALUE_FILE, false, "FILE", NULL, "private key of the certificate"},
    {"--tls-client-ca", VALUE_FILE, false, "FILE", NULL,
     "authorities whose certificates clients may show instead of a token"},
    {"--verify", VALUE_WORD, false, NULL, verify_words,
     "check digests before a component is first sent (lazy), when a model is loaded (eager), or "
     "never"},
    {"--threads", VALUE_OTHER, false, "N", NULL,
     "event loops; 0, the default, starts one per processor"},
    {"--log-format", VALUE_WORD, false, NULL, format_words, "default text"},
    {"--log-level", VALUE_WORD, false, NULL, level_words, "default info"},
    {.name = NULL},
};

static const struct command_option ls_options[] = {
    {"--json", VALUE_NONE, false, NULL, NULL, "print the manifest as JSON"},
    {.name = NULL},
};

static const struct command_option verify_options[] = {
    {"--canonical", VALUE_NONE, false, NULL, NULL, "also require the canonical form of zTensor 2"},
    {.name = NULL},
};

static const struct command_option convert_options[] = {
    {"--to", VALUE_WORD, false, "FORMAT", target_words,
     "zt (zTensor 1.2), zt2 (zTensor 2, canonical), mag, safetensors, npz or npy"},
    {"--zstd", VALUE_OTHER, true, "LEVEL", NULL,
     "compress; for zt and zt2 (then not canonical), level 1 to 22, default 3"},
    {"--max-shard", VALUE_OTHER, false, "SIZE", NULL,
     "write safetensors as several files of at most SIZE (5GB, 500MiB) and an index"},
    {.name = NULL},
};

static const struct command_option healthcheck_options[] = {
    {"--config", VALUE_FILE, false, "FILE", NULL,
     "of the server, for its address; the environment overrides it"},
    {"--ready", VALUE_NONE, false, NULL, NULL, "ask whether it is ready (/readyz), not only alive"},
    {.name = NULL},
};

const struct command command_table[] = {
    {"serve", command_serve, "--root DIR [options]", VALUE_NONE, NULL,
     "serve every model below DIR", serve_options},
    {"ls", command_ls, "FILE [--json]", VALUE_FILE, NULL,
     "show a file's manifest: a table, or JSON", ls_options},
    {"verify", command_verify, "FILE... [--canonical]", VALUE_FILE, NULL,
     "check every rule and digest; one line per file", verify_options},
    {"convert", command_convert, "IN OUT [options]", VALUE_FILE, NULL,
     "convert to another format, by OUT's extension unless --to is given", convert_options},
    {"check-config", command_check_config, "FILE", VALUE_FILE, NULL,
     "check a configuration and the files that it names; print the result", no_options},
    {"healthcheck", command_healthcheck, "[URL] [options]", VALUE_OTHER, NULL,
     "ask a server, by default that of the configuration, whether it is alive",
     healthcheck_options},
    {"completion", command_completion, "bash|zsh|fish", VALUE_WORD, shell_words,
     "print what makes a shell complete commands and options", no_options},
};

const unsigned command_table_count = sizeof(command_table) / sizeof(command_table[0]);

const struct command *command_find(const char *name)
{
    for (unsigned i = 0; i < command_table_count; i++)
        if (strcmp(command_table[i].name, name) == 0)
            return &command_table[i];
    return NULL;
}

/* "--verify lazy|eager|off", "--to FORMAT", "--zstd[=LEVEL]" */
static void format_option(const struct command_option *option, char *out_text, size_t size)
{
    size_t at = (size_t)snprintf(out_text, size, "%s", option->name);

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

static void print_options(const struct command *command)
{
    const struct command_option *option = command->options;
    char text[128];

    if (option->name == NULL)
        return;
    printf("\n%s of %s:\n", option[1].name == NULL ? "Option" : "Options", command->name);
    for (; option->name != NULL; option++) {
        format_option(option, text, sizeof(text));
        if (strlen(text) > OPTION_WIDTH)
            printf("  %s\n  %-*s  %s\n", text, OPTION_WIDTH, "", option->meaning);
        else
            printf("  %-*s  %s\n", OPTION_WIDTH, text, option->meaning);
    }
}

void command_print_help(void)
{
    char text[128];

    printf("ztserve " ZTSERVE_VERSION ": serves tensor container files over HTTP\n\nUsage:\n");
    for (unsigned i = 0; i < command_table_count; i++) {
        snprintf(text, sizeof(text), "ztserve %s %s", command_table[i].name,
                 command_table[i].operands);
        printf("  %-*s %s\n", COMMAND_WIDTH, text, command_table[i].meaning);
    }
    printf("  ztserve --help | --version\n");
    for (unsigned i = 0; i < command_table_count; i++)
        print_options(&command_table[i]);
    printf("\nAn environment variable can set any key of the configuration: ZTSERVE_LISTEN, "
           "ZTSERVE_UPLOAD_MAX_BYTES.\n"
           "Exit status: 0 success; 1 a file is bad or an operation failed; 2 wrong usage or "
           "configuration.\n");
}
