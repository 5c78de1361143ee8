/* Choices that are a key's come from the table of keys (config/schema.h). */
#include "commands/command_options.h"

#include <assert.h>
#include <stddef.h>

#include "config/schema.h"
#include "terminal/progress_line.h"

/* --- words --- */

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

static const char *const *dtype_words(void)
{
    static const char *const words[] = {"f32", NULL};

    return words;
}

static const char *const *export_words(void)
{
    static const char *const words[] = {"zt", "zt2", "safetensors", "npz", NULL};

    return words;
}

static const char *const *progress_words(void)
{
    return progress_mode_words;
}

const char *const *shell_words(void)
{
    static const char *const words[] = {"bash", "zsh", "fish", NULL};

    return words;
}

/* --- options of several commands --- */

#define OPTION_QUIET                                                       \
    {                                                                      \
        "--quiet", VALUE_NONE, false, NULL, NULL, "print errors only", 'q' \
    }
#define OPTION_JSON(meaning)                                \
    {                                                       \
        "--json", VALUE_NONE, false, NULL, NULL, meaning, 0 \
    }
#define OPTION_PROGRESS                                                                         \
    {                                                                                           \
        "--progress", VALUE_WORD, false, NULL, progress_words,                                  \
            "progress on standard error: a line on a terminal (auto), lines, JSON objects, or " \
            "none",                                                                             \
            0                                                                                   \
    }

#define OPTIONS_SERVER                                                            \
    {"--token-file",                                                              \
     VALUE_FILE,                                                                  \
     false,                                                                       \
     "FILE",                                                                      \
     NULL,                                                                        \
     "for URLs: file with the token; default: the variable ZTSERVE_TOKEN",        \
     0},                                                                          \
    {                                                                             \
        "--ca", VALUE_FILE, false, "FILE", NULL,                                  \
            "for URLs: trust these certificates (PEM) instead of the system's", 0 \
    }
#define OPTIONS_SHARE                                                                            \
    {"--match", VALUE_OTHER, false,                                                              \
     "GLOB",    NULL,        "only objects whose names match; if repeated, any of the globs",    \
     0},                                                                                         \
        {"--shard", VALUE_OTHER, false,                                                          \
         "R/N",     NULL,        "part R (from 0) of N equal parts of each object",              \
         0},                                                                                     \
    {                                                                                            \
        "--axis", VALUE_OTHER, false, "[GLOB:]AXIS|@SET", NULL,                                  \
            "with --shard: the axis to divide, none, or a set such as @llama; if repeated, the " \
            "first match counts",                                                                \
            0                                                                                    \
    }
#define OPTION_TIMEOUT                                                                \
    {                                                                                 \
        "--timeout", VALUE_OTHER, false, "SECONDS", NULL,                             \
            "give up a connection that receives no byte for this long; default 30", 0 \
    }

/* --- options of each --- */

const struct command_option no_options[] = {{.name = NULL}};

const struct command_option serve_options[] = {
    {"--root", VALUE_FOLDER, false, "DIR", NULL,
     "folder of the models to serve, or s3://bucket/prefix", 0},
    {"--cache-dir", VALUE_FOLDER, false, "DIR", NULL,
     "a bucket's block cache, on a local disk; default cache in the state folder", 0},
    {"--upstream", VALUE_OTHER, false, "URL", NULL,
     "mirror the repositories of this server, such as https://huggingface.co; can be repeated", 0},
    {"--listen", VALUE_OTHER, false, "ADDRESS:PORT", NULL,
     "default 127.0.0.1:8080; port 0 picks a free one", 0},
    {"--writable", VALUE_NONE, false, NULL, NULL,
     "accept uploads; with --tokens, or on loopback addresses only", 0},
    {"--shared", VALUE_NONE, false, NULL, NULL,
     "let other writable servers with --shared use the same folder, for a restart without downtime",
     0},
    {"--keep-versions", VALUE_OTHER, false, "N", NULL,
     "keep the files of this many commits of each repository; default 0, none", 0},
    {"--config", VALUE_FILE, false, "FILE", NULL,
     "JSON file; the environment and arguments override it", 0},
    {"--tokens", VALUE_FILE, false, "FILE", NULL,
     "clients' tokens and rights; without it, every client has all rights", 0},
    {"--tls-cert", VALUE_FILE, false, "FILE", NULL, "certificate and its chain; serves https", 0},
    {"--tls-key", VALUE_FILE, false, "FILE", NULL, "private key of the certificate", 0},
    {"--tls-client-ca", VALUE_FILE, false, "FILE", NULL,
     "authorities whose certificates clients may present instead of a token", 0},
    {"--verify", VALUE_WORD, false, NULL, verify_words,
     "check digests before a component is first sent (lazy), when a model is loaded (eager), or "
     "never",
     0},
    {"--threads", VALUE_OTHER, false, "N", NULL,
     "event loops; 0, the default, starts one per processor", 0},
    {"--log-format", VALUE_WORD, false, NULL, format_words, "default text", 0},
    {"--log-level", VALUE_WORD, false, NULL, level_words, "default info", 0},
    {.name = NULL},
};

const struct command_option ls_options[] = {
    OPTION_JSON("print JSON: a file's manifest; an array for several files or a folder"),
    {"--quiet", VALUE_NONE, false, NULL, NULL,
     "print only names: of a file's objects, of a folder's models", 'q'},
    OPTIONS_SERVER,
    OPTION_PROGRESS,
    {.name = NULL},
};

const struct command_option stats_options[] = {
    OPTION_JSON("print each tensor's statistics as the server returns them, by name; an array for "
                "several files or a folder"),
    OPTIONS_SERVER,
    OPTION_PROGRESS,
    {"--quiet", VALUE_NONE, false, NULL, NULL, "show no progress", 'q'},
    {.name = NULL},
};

const struct command_option diff_options[] = {
    OPTION_JSON("print JSON: every tensor that differs, by name, and counts"),
    OPTIONS_SERVER,
    OPTION_PROGRESS,
    {"--quiet", VALUE_NONE, false, NULL, NULL, "print nothing; only the exit status tells", 'q'},
    {.name = NULL},
};

const struct command_option verify_options[] = {
    {"--canonical", VALUE_NONE, false, NULL, NULL, "also require the canonical form of zTensor 2",
     0},
    {"--allow-missing", VALUE_NONE, false, NULL, NULL,
     "report missing shards and external data as unsupported, not as bad", 0},
    OPTION_JSON("print JSON: an object for a file; an array for several, or a folder"),
    OPTIONS_SERVER,
    OPTION_PROGRESS,
    OPTION_QUIET,
    {.name = NULL},
};

const struct command_option convert_options[] = {
    {"--to", VALUE_WORD, false, "FORMAT", target_words,
     "zt (zTensor 1.2), zt2 (zTensor 2, canonical), mag, safetensors, npz or npy", 0},
    {"--dtype", VALUE_WORD, false, "f32", dtype_words,
     "widen floats of at most 16 bits and quantized GGUF tensors to f32, exactly", 0},
    {"--zstd", VALUE_OTHER, true, "LEVEL", NULL,
     "compress zt or zt2 (then not canonical); level 1 to 22, default 3", 0},
    {"--max-shard", VALUE_OTHER, false, "SIZE", NULL,
     "write safetensors as several files of at most SIZE (5GB, 500MiB) and an index", 0},
    OPTIONS_SHARE,
    {"--no-clobber", VALUE_NONE, false, NULL, NULL,
     "fail with exit status 1 if OUT exists; by default it is replaced atomically", 0},
    {"--jobs", VALUE_OTHER, false, "N", NULL,
     "number of processors to use, at most 8; the file is always the same; default: all", 0},
    OPTIONS_SERVER,
    OPTION_PROGRESS,
    OPTION_QUIET,
    {.name = NULL},
};

const struct command_option pull_options[] = {
    {"--output", VALUE_FILE, false, "PATH", NULL,
     "target folder or file; default: the file's name, in the current folder", 'o'},
    {"--format", VALUE_WORD, false, "FORMAT", export_words,
     "let the server convert it: zt, zt2, safetensors or npz", 0},
    OPTIONS_SHARE,
    {"--dtype", VALUE_WORD, false, NULL, dtype_words, "widen small floats and quantized tensors",
     0},
    {"--have", VALUE_FILE, false, "FILE|FOLDER", NULL,
     "copy tensors that these local files have, and fetch only the rest; can be repeated", 0},
    {"--force", VALUE_NONE, false, NULL, NULL,
     "replace a file even if it is not a tensor file; accept any file name from the server", 0},
    {"--jobs", VALUE_OTHER, false, "N", NULL, "simultaneous requests; default 4", 0},
    OPTIONS_SERVER,
    OPTION_TIMEOUT,
    OPTION_PROGRESS,
    OPTION_QUIET,
    {.name = NULL},
};

const struct command_option push_options[] = {
    {"--if-absent", VALUE_NONE, false, NULL, NULL, "only if the server has no model of that name",
     0},
    {"--jobs", VALUE_OTHER, false, "N", NULL, "files to send in parallel; default 4", 0},
    OPTIONS_SERVER,
    OPTION_TIMEOUT,
    OPTION_PROGRESS,
    OPTION_QUIET,
    {.name = NULL},
};

const struct command_option prefetch_options[] = {
    {"--server", VALUE_OTHER, false, "URL", NULL, "the server; default http://127.0.0.1:8080", 0},
    {"--upstream", VALUE_OTHER, false, "NAME", NULL,
     "the upstream; default: the first that can have the repository", 0},
    {"--revision", VALUE_OTHER, false, "REVISION", NULL, "branch, tag or commit; default main", 0},
    OPTIONS_SERVER,
    OPTION_TIMEOUT,
    OPTION_PROGRESS,
    OPTION_QUIET,
    {.name = NULL},
};

const struct command_option token_options[] = {
    {"--tokens", VALUE_FILE, false, "FILE", NULL,
     "the tokens file; default: auth.tokens of the configuration", 0},
    {"--s3", VALUE_NONE, false, NULL, NULL, "make an access key for S3 clients instead", 0},
    {"--keys", VALUE_FILE, false, "FILE", NULL,
     "with --s3: the keys file; default: s3.keys of the configuration", 0},
    {"--config", VALUE_FILE, false, "FILE", NULL,
     "the server's configuration; the environment overrides it", 0},
    {"--quiet", VALUE_NONE, false, NULL, NULL, "print only the token or the key", 'q'},
    {.name = NULL},
};

const struct command_option help_options[] = {
    {"--man", VALUE_NONE, false, NULL, NULL, "print the manual page, as input for man", 0},
    {.name = NULL},
};

const struct command_option healthcheck_options[] = {
    {"--config", VALUE_FILE, false, "FILE", NULL,
     "the server's configuration, for its address; the environment overrides it", 0},
    {"--ready", VALUE_NONE, false, NULL, NULL, "check that it is ready (/readyz), not only alive",
     0},
    {"--token-file", VALUE_FILE, false, "FILE", NULL, "send the token in this file", 0},
    {"--ca", VALUE_FILE, false, "FILE", NULL,
     "always check the certificate, with these authorities (PEM)", 0},
    OPTION_PROGRESS,
    {"--quiet", VALUE_NONE, false, NULL, NULL, "accepted as in other commands; no effect", 'q'},
    {.name = NULL},
};
