/* The rows of the table, in the order of the help. Options are in command_options.c. */
#include "commands/command_table.h"

#include <stddef.h>
#include <string.h>

#include "base/nearest.h"
#include "commands/command_options.h"
#include "commands/commands.h"

#define SEVERAL_FILES                                                                              \
    "The index of a model in several files (*.safetensors.index.json, *.bin.index.json), or the "  \
    "first part of a split GGUF (*-00001-of-0000N.gguf), stands for the model that all parts are " \
    "together. Every other part is a model of its own."

#define URLS_TOO                                                                                  \
    "A URL is that of a model (http://host/v1/models/NAME, or http://host/NAME), or of any file " \
    "whose server gives ranges; no more of it is read than is needed, and none is kept."

const struct command command_table[] = {
    {.name = "serve",
     .run = command_serve,
     .operands = "--root DIR [options]",
     .meaning = "serve every model below DIR",
     .options = serve_options,
     .details =
         "Serves every model below the folder that --root or the configuration names, until "
         "SIGTERM or SIGINT. It prints the address once it answers, and logs to standard error. "
         "SIGHUP reads the configuration again and looks for new models at once.\n"
         "Every other setting is a key of the configuration file or an environment variable: "
         "ZTSERVE_UPLOAD_MAX_BYTES is upload.max_bytes.",
     .examples = {{"ztserve serve --root models", "on http://127.0.0.1:8080"},
                  {"ztserve serve --root /srv/models --listen 0.0.0.0:9000 --verify eager",
                   "to the whole network, once every digest has been checked"}}},
    {.name = "ls",
     .run = command_ls,
     .operands = "FILE|FOLDER|URL... [options]",
     .kind = VALUE_FILE,
     .meaning = "show a file's manifest: a table, or JSON",
     .options = ls_options,
     .details =
         "Shows what is in a file: its objects and attributes as a table, or the manifest that "
         "a server would send. Of a folder it shows the models below it, as a server would "
         "list them: name, format, objects, size, and why one cannot be read, which makes "
         "the exit status 1. Parts of a model whose index is there are left out.\n" URLS_TOO
         "\n" SEVERAL_FILES,
     .examples = {{"ztserve ls model.gguf", "the tensors of a model"},
                  {"ztserve ls --json models | jq -r '.[] | select(.error) | .path'",
                   "the files below a folder that cannot be read"}}},
    {.name = "verify",
     .run = command_verify,
     .operands = "FILE|FOLDER|URL... [options]",
     .kind = VALUE_FILE,
     .meaning = "check every rule and digest of files, or of all below folders",
     .options = verify_options,
     .details =
         "Checks every rule of the format and every digest, and prints one line per file. What "
         "cannot be judged, such as a digest of an unknown algorithm, is shown as unsupported and "
         "does not make the file bad; nor do digests that are missing, of which it says so. Of a "
         "folder it checks the models that a server would list, and data shards.\n" URLS_TOO
         "\n" SEVERAL_FILES,
     .examples = {{"ztserve verify model.zt", "one file"},
                  {"ztserve verify --quiet /srv/models",
                   "all below a folder; only what is bad is printed"}}},
    {.name = "stats",
     .run = command_stats,
     .operands = "FILE|FOLDER|URL... [options]",
     .kind = VALUE_FILE,
     .meaning = "show extremes, mean, deviation and histogram of every tensor",
     .options = stats_options,
     .details =
         "Shows the numbers of every dense tensor, and of every quantized one of GGUF as it is "
         "dequantized: extremes, mean, standard deviation and a histogram of the finite elements, "
         "and how many are zero or not finite. All processors share the work. Tensors of complex "
         "numbers, of floats of six bits and of other layouts have no statistics. Digests are not "
         "checked; that is what verify does. Of a folder it shows every model that a server would "
         "list. A file that cannot be read is null in the array.\n" URLS_TOO
         " Its elements are read twice: if it is large and far away, pull it "
         "first.\n" SEVERAL_FILES,
     .examples = {{"ztserve stats model.safetensors", "a table with small histograms"},
                  {"ztserve stats --json model.gguf | jq 'map_values(.nan)'",
                   "how many elements of each tensor are not a number"}}},
    {.name = "convert",
     .run = command_convert,
     .operands = "IN OUT [options]",
     .kind = VALUE_FILE,
     .meaning = "convert to another format, by OUT's extension unless --to is given",
     .options = convert_options,
     .details =
         "Writes a model in another format, that of OUT's extension unless --to is given. IN may "
         "be a URL, as for ls. Digests are checked on the way; if anything fails, there is no "
         "file. An OUT that exists is "
         "replaced in one step once the new file is whole, which the last line says; with "
         "--no-clobber it is left as it is.\n"
         "At the end a line on standard error says how much was converted: OUT: 291 objects, "
         "13476835328 bytes, 21.384 seconds. The bytes are those of the tensors, before any "
         "compression.\n"
         "--dtype f32 widens floats of 16 bits and fewer, and dequantizes the tensors of a GGUF "
         "file as ggml does; every other tensor stays as it is.\n"
         "--max-shard writes safetensors as several files, whose tensors have at most SIZE bytes "
         "each (a larger tensor has a file of its own), and their index: for OUT "
         "model.safetensors, model-00001-of-00003.safetensors and so on, and "
         "model.safetensors.index.json. SIZE is a whole number of bytes, or of KB, MB, GB, TB "
         "(powers of 1000), KiB, MiB, GiB or TiB (powers of 1024). What fits into one file is "
         "written as OUT.\n" SEVERAL_FILES,
     .examples = {{"ztserve convert model.safetensors model.zt", "to zTensor 1.2"},
                  {"ztserve convert --to zt2 --zstd=19 model.gguf model.zt",
                   "to zTensor 2, compressed as far as pays"}}},
    {.name = "pull",
     .run = command_pull,
     .operands = "URL [options]",
     .kind = VALUE_OTHER,
     .meaning = "bring a model from a server, whole and verified; resumes",
     .options = pull_options,
     .details =
         "Brings a model from a server by several requests at a time, checks its digests while it "
         "comes, and gives it its name when all of it is there and right; until then it is in "
         "PATH.part. The same command takes up what an interruption has left, unless the server "
         "has another version by then. If PATH has the server's bytes already, nothing is "
         "transferred. A server that is started again, busy or failing is waited for, for as long "
         "as "
         "it asks (Retry-After, at most 30 s a time) or some seconds in all.\n"
         "URL: a model (http://host/v1/models/NAME, or http://host/NAME), or any file of an HTTP "
         "server. What a request selects or converts (--format, --match, --shard, --axis, --dtype) "
         "is made by the server, of models only; so is a zTensor, safetensors or NPZ file if PATH "
         "has the extension of one and the model's own file another. A model in several files "
         "comes with all of them.\n"
         "A token goes to the server of the URL and to no other that it redirects to. The proxy is "
         "that of http_proxy, https_proxy and no_proxy.",
     .examples = {{"ztserve pull https://models.example/meta-llama/Llama-3-8B -o llama.safetensors",
                   "a whole model"},
                  {"ztserve pull http://host:8080/bert --match 'layer1.*' --format npz",
                   "some of its tensors, for NumPy"}}},
    {.name = "push",
     .run = command_push,
     .operands = "FILE... URL [options]",
     .kind = VALUE_FILE,
     .meaning = "send files to a server to be its models; resumes",
     .options = push_options,
     .details =
         "Sends files to a server, which checks each and publishes it as a model when all of it is "
         "there. The same command takes up what an interruption has left, of the network, of the "
         "server or of this program; where an upload is, is kept below $XDG_STATE_HOME "
         "(~/.local/state) for a week. If the server has the same bytes under that name, nothing "
         "is sent.\n"
         "URL: the model (http://host/v1/models/NAME, or http://host/NAME); if it ends in /, and "
         "always for several files, each is called as the file without its extension. Of a model "
         "in several files name all of them: the index is sent last. Once one file has "
         "failed, no other is begun, and no index is sent.",
     .examples = {{"ztserve push llama.safetensors https://models.example/meta-llama/Llama-3-8B",
                   "a model under another name"},
                  {"ztserve push *.gguf http://host:8080/team/", "several, under their own"}}},
    {.name = "check-config",
     .run = command_check_config,
     .operands = "FILE",
     .kind = VALUE_FILE,
     .meaning = "check a configuration and the files that it names; print the result",
     .options = no_options,
     .details = "Checks a configuration, and the files of tokens, keys and certificates that it "
                "names as serve would, and prints the settings that result from it and the "
                "environment. What does not exist on this machine is a warning.",
     .examples = {{"ztserve check-config /etc/ztserve/ztserve.json", "before a restart"},
                  {"ZTSERVE_LISTEN=0.0.0.0:80 ztserve check-config ztserve.json | jq .listen",
                   "what the environment makes of a key"}}},
    {.name = "healthcheck",
     .run = command_healthcheck,
     .operands = "[URL] [options]",
     .kind = VALUE_OTHER,
     .meaning = "ask a server, by default that of the configuration, whether it is alive",
     .options = healthcheck_options,
     .details = "Asks a server whether it is alive: that of the URL, or the one on this machine "
                "that has this configuration and environment. A URL without a path stands for "
                "/healthz. Over TLS the certificate of a server on a loopback address, or of the "
                "configured one, is not checked, unless --ca is given. Fails unless the answer is "
                "200, and comes "
                "within 5 seconds.",
     .examples = {{"ztserve healthcheck --ready", "in a container, without curl"},
                  {"ztserve healthcheck http://models.example:8080", "of another machine"}}},
    {.name = "completion",
     .run = command_completion,
     .operands = "bash|zsh|fish",
     .kind = VALUE_WORD,
     .words = shell_words,
     .meaning = "print what makes a shell complete commands and options",
     .options = no_options,
     .details = "Prints a script that makes the shell complete commands, options and their "
                "values. The packages install it where the shell looks for it.",
     .examples = {{"source <(ztserve completion bash)", "in this shell, or in ~/.bashrc"},
                  {"ztserve completion fish > ~/.config/fish/completions/ztserve.fish",
                   "in every fish from now on"}}},
    {.name = "help",
     .run = command_help,
     .operands = "[COMMAND]",
     .kind = VALUE_WORD,
     .words = command_words,
     .meaning = "print an overview, or all about a command",
     .options = help_options,
     .details = "Prints an overview of all commands, or what a command does, its options and "
                "examples, as COMMAND --help does.",
     .examples = {{"ztserve help convert", "all about convert"},
                  {"ztserve help --man convert | man -l -", "the same as a page of the manual"}}},
};

const unsigned command_table_count = sizeof(command_table) / sizeof(command_table[0]);

const char *const *command_words(void)
{
    static const char *words[sizeof(command_table) / sizeof(command_table[0]) + 1];

    for (unsigned i = 0; i < command_table_count; i++)
        words[i] = command_table[i].name;
    return words;
}

const struct command *command_find(const char *name)
{
    for (unsigned i = 0; i < command_table_count; i++)
        if (strcmp(command_table[i].name, name) == 0)
            return &command_table[i];
    return NULL;
}

const char *command_nearest(const char *name)
{
    struct nearest nearest;

    nearest_begin(&nearest, name);
    for (unsigned i = 0; i < command_table_count; i++)
        nearest_offer(&nearest, command_table[i].name);
    return nearest.word;
}

const char *command_nearest_option(const struct command *command, const char *name)
{
    struct nearest nearest;

    nearest_begin(&nearest, name);
    for (const struct command_option *option = command->options; option->name != NULL; option++)
        nearest_offer(&nearest, option->name);
    nearest_offer(&nearest, "--help");
    return nearest.word;
}
