/* The rows of the table, in the order of the help. Options are in command_options.c. */
#include "commands/command_table.h"

#include <stddef.h>
#include <string.h>

#include "base/nearest.h"
#include "commands/command_options.h"
#include "commands/commands.h"

#define SEVERAL_FILES                                                                             \
    "For a sharded model, give its index (*.safetensors.index.json, *.bin.index.json, also with " \
    "a variant: *.safetensors.index.fp16.json) or the first part of a split GGUF "                \
    "(*-00001-of-0000N.gguf). Every other part is a separate model."

#define URLS_TOO                                                                               \
    "A URL names a model (http://host/v1/models/NAME, or http://host/NAME), or any file on a " \
    "server that supports ranges. Only the necessary bytes are read, and none are kept."

const struct command command_table[] = {
    {.name = "serve",
     .run = command_serve,
     .operands = "DIR [options]",
     .kind = VALUE_FOLDER,
     .meaning = "serve every model below DIR",
     .options = serve_options,
     .details =
         "Serves every model below DIR, or below the folder that --root or the configuration "
         "names, until SIGTERM or SIGINT. It prints its address once it accepts requests, and logs "
         "to standard error. SIGHUP reloads the configuration and looks for new models at "
         "once.\nEvery other setting is a key of the configuration file or an environment "
         "variable: ZTSERVE_UPLOAD_MAX_BYTES is upload.max_bytes.",
     .examples = {{"ztserve serve models", "on http://127.0.0.1:8080"},
                  {"ztserve serve --root /srv/models --listen 0.0.0.0:9000 --verify eager",
                   "for the whole network, after checking every digest"}}},
    {.name = "ls",
     .run = command_ls,
     .operands = "FILE|FOLDER|URL... [options]",
     .kind = VALUE_FILE,
     .meaning = "list a folder's or server's models, or a file's tensors",
     .options = ls_options,
     .details =
         "Shows a file's objects and attributes as a table that ends with the number of its "
         "parameters, or the manifest that a server would return. For a folder it lists the models "
         "below it as a server would: name, format, objects, parameters, size, and the error of "
         "each model that cannot be read (exit status 1). Parts of a model with an index are "
         "omitted. A URL that ends in / lists the models of a server (http://host/) or of a folder "
         "on it (http://host/team/).\n" URLS_TOO "\n" SEVERAL_FILES,
     .examples = {{"ztserve ls model.gguf", "the tensors of a model"},
                  {"ztserve ls https://models.example/", "the models of a server"}}},
    {.name = "verify",
     .run = command_verify,
     .operands = "FILE|FOLDER|URL... [options]",
     .kind = VALUE_FILE,
     .meaning = "check every rule and digest of files, or of all files in folders",
     .options = verify_options,
     .details = "Checks every rule of the format and every digest, and prints one line per file. "
                "Checks that are not possible, such as a digest of an unknown algorithm, are "
                "reported as unsupported. Missing digests are reported too. Neither makes a file "
                "bad. A model is bad if one of its files is missing: a part, a shard or external "
                "data. For a folder it checks the models that a server would "
                "list, and data shards.\n" URLS_TOO "\n" SEVERAL_FILES,
     .examples = {{"ztserve verify model.zt", "one file"},
                  {"ztserve verify --quiet /srv/models",
                   "all files below a folder; prints only the bad ones"}}},
    {.name = "stats",
     .run = command_stats,
     .operands = "FILE|FOLDER|URL... [options]",
     .kind = VALUE_FILE,
     .meaning = "show statistics and a histogram of every tensor",
     .options = stats_options,
     .details =
         "Shows statistics of every dense tensor and, dequantized, of every quantized GGUF tensor: "
         "minimum, maximum, mean, standard deviation and a histogram of the finite elements, and "
         "how many are zero or not finite. All processors share the work. Tensors of complex "
         "numbers, of six-bit floats and of other layouts have no statistics. Digests are not "
         "checked; use verify for that. For a folder it shows every model that a server would "
         "list. With --json, a file that cannot be read is null in the array.\n" URLS_TOO
         " A model server computes the statistics of its models, and no tensor is fetched. From "
         "other servers, and for the URL of a file, the elements are read twice: pull a large "
         "model first.\n" SEVERAL_FILES,
     .examples = {{"ztserve stats model.safetensors", "a table with small histograms"},
                  {"ztserve stats --json model.gguf | jq 'map_values(.nan)'",
                   "how many elements of each tensor are not a number"}}},
    {.name = "diff",
     .run = command_diff,
     .operands = "A B [options]",
     .kind = VALUE_FILE,
     .meaning = "show which tensors of two models differ, and by how much",
     .options = diff_options,
     .details =
         "Compares the tensors of two models by name, in any formats: which are new in B, gone "
         "from A, reshaped, retyped (another dtype or layout) or changed. For changed tensors it "
         "shows the share of elements that differ, and the maximum and mean of the absolute "
         "differences of all elements, in double precision. Quantized GGUF tensors are compared "
         "dequantized; of complex and sparse tensors, only whether they differ. Elements whose "
         "bits differ count as changed, also 0 and -0; those that are not finite in A or B are "
         "counted, not measured.\nTensors with equal digests are not read. Attributes are not "
         "compared, nor are the digests checked; use verify for that.\nThe exit status is 0 if all "
         "tensors are equal, 1 if some differ, and 2 if a model or a tensor cannot be "
         "read.\n" URLS_TOO " A model server states digests, so that equal tensors are not "
         "fetched.\n" SEVERAL_FILES,
     .examples = {{"ztserve diff base.safetensors tuned.safetensors", "a table of differences"},
                  {"ztserve diff --json https://models.example/acme/m new.gguf | jq .changed",
                   "how many tensors a new version changes"}}},
    {.name = "convert",
     .run = command_convert,
     .operands = "IN OUT [options]",
     .kind = VALUE_FILE,
     .meaning = "convert to another format, by OUT's extension unless --to is given",
     .options = convert_options,
     .details =
         "Writes a model in another format, given by OUT's extension or --to. IN may be a URL, as "
         "for ls. Digests are checked during the conversion; if it fails, no file is written. An "
         "existing OUT is replaced atomically once the new file is complete, and the last line "
         "says so; --no-clobber leaves it unchanged.\nThe last line, on standard error, reports "
         "the amount: OUT: 291 objects, 13476835328 bytes, 21.384 seconds. It counts the tensors' "
         "bytes, before any compression.\n--dtype f32 widens floats of 16 bits and fewer, and "
         "dequantizes the tensors of a GGUF file as ggml does; other tensors are "
         "unchanged.\n--max-shard writes safetensors as several files, whose tensors have at most "
         "SIZE bytes each (a larger tensor gets a separate file), and their index: for OUT "
         "model.safetensors, model-00001-of-00003.safetensors and so on, and "
         "model.safetensors.index.json. SIZE is a whole number of bytes, or of KB, MB, GB, TB "
         "(powers of 1000), KiB, MiB, GiB or TiB (powers of 1024). The last lines name the files. "
         "A model that fits into one file is written as OUT.\n--match, --shard and --axis write "
         "some objects, or one rank's part of each, as pull does. A glob or a rule that matches no "
         "object is an error, because it may be mistyped. Sets of rules (@llama, @mixtral, "
         "@qwen-moe, @gpt-oss) contain the tensor names of these architectures and reject all "
         "others.\n" SEVERAL_FILES,
     .examples = {{"ztserve convert model.safetensors model.zt", "to zTensor 1.2"},
                  {"ztserve convert --to zt2 --zstd=19 model.gguf model.zt",
                   "to zTensor 2, compressed where that saves space"}}},
    {.name = "pull",
     .run = command_pull,
     .operands = "URL [options]",
     .kind = VALUE_OTHER,
     .meaning = "download and verify a model; resumes if interrupted",
     .options = pull_options,
     .details =
         "Downloads a model with several simultaneous requests and checks its digests on the way. "
         "The file is PATH.part until it is complete and verified, and then gets its final name. "
         "Run the same command again to resume after an interruption, unless the server's version "
         "has changed. If PATH already has the server's bytes, they are not downloaded again. If a "
         "server is restarting, busy or failing, pull retries: after the time that the server "
         "states (Retry-After, at most 30 s each), otherwise for some seconds in total.\nURL: a "
         "model (http://host/v1/models/NAME, or http://host/NAME), a repository, a file below "
         "/files/, or a tensor file of any HTTP server. For models, the server makes selections "
         "and conversions (--format, --match, --shard, --axis, --dtype). It also converts if PATH "
         "has the extension of zTensor, safetensors or NPZ and the model's file has another one; "
         "GGUF, ONNX and PyTorch files are not written. A sharded model is downloaded with all its "
         "files.\n--have names files or folders with an earlier version or a related model, in any "
         "format: tensors and whole files with the same digests are copied from there (or share "
         "blocks, on XFS and btrfs), and only the rest is fetched. If a ztserve server still has "
         "the local version of a changed tensor, it sends only the difference. The result is "
         "verified as always; if a local file is not what its digests promise, all is fetched. It "
         "needs digests: those in zTensor files, or those that a ztserve server computes for its "
         "files.\nA repository is a folder with a model's configuration, tokenizer and weights. "
         "Its URL is http://host/OWNER/NAME, with a / at the end if a model has the same name. "
         "PATH is then a folder, by default NAME. http://host/OWNER/ downloads all repositories of "
         "an owner. All files are compared with the server's "
         "SHA-256; hidden files are skipped, and so are NAME.part and NAME.part.json beside a file "
         "NAME. A folder that does not exist is created, also for a "
         "model if PATH ends in /.\nNames that the server chooses for a model must have the "
         "extension of a tensor file, and only tensor files are replaced, so that a server cannot "
         "destroy other files; --force lifts both limits.\nThe token is sent only to the server of "
         "the URL, not to servers that it redirects to. The proxy is taken from http_proxy, "
         "https_proxy and no_proxy.",
     .examples = {{"ztserve pull https://models.example/meta-llama/Llama-3-8B/model -o llama.zt",
                   "a whole model"},
                  {"ztserve pull https://models.example/acme/tiny -o tiny/ --have tiny/",
                   "a repository, for from_pretrained; copies what has not changed"}}},
    {.name = "push",
     .run = command_push,
     .operands = "FILE...|FOLDER URL [options]",
     .kind = VALUE_FILE,
     .meaning = "upload files as models, or a folder as a repository; resumes if interrupted",
     .options = push_options,
     .details =
         "Uploads files to a server, which checks each one and publishes it as a model once it is "
         "complete. Run the same command again to resume after an interruption of the network, the "
         "server or this program; the address of an upload is kept below $XDG_STATE_HOME "
         "(~/.local/state) for a week. If the server already has the same bytes under that name, "
         "they are not sent again.\nURL: the model (http://host/v1/models/NAME, or "
         "http://host/NAME). If it ends in /, which is required for several files, each model is "
         "named after its file without the extension. An existing model is replaced unless "
         "--if-absent is given, even if it has another format. For a sharded model, name all its "
         "files: the "
         "index is sent last. If a file fails, push sends no further files and no index.\nFOLDER: "
         "all its files become the repository of the URL (http://host/OWNER/NAME), the folder's "
         "name being added if the URL ends in /. The server compares the SHA-256 of each file "
         "before it publishes it. Hidden files and folders, and NAME.part and NAME.part.json "
         "beside "
         "a file NAME, are not sent. Files that are only on the server are kept.",
     .examples = {{"ztserve push llama.gguf https://models.example/meta-llama/Llama-3-8B/model",
                   "a model under another name"},
                  {"ztserve push tiny/ http://host:8080/acme/tiny",
                   "a folder that save_pretrained wrote"}}},
    {.name = "prefetch",
     .run = command_prefetch,
     .operands = "ORG/MODEL [options]",
     .kind = VALUE_OTHER,
     .meaning = "let a server download a whole repository of an upstream",
     .options = prefetch_options,
     .details = "Lets a running server download all files of a repository from one of its "
                "upstreams and check them, so that clients get them later without the upstream. "
                "Shows the progress, and ends when all files are there. Run the same command again "
                "to resume, or to get the latest commit. If you interrupt it, the server "
                "continues.\nIf the server requires "
                "tokens, the token needs the right to write.",
     .examples = {{"ztserve prefetch Qwen/Qwen3-0.6B", "to the server on this machine"},
                  {"ztserve prefetch acme/tiny --server https://models.example --revision v2",
                   "another server, and a tag"}}},
    {.name = "token",
     .run = command_token,
     .operands = "NAME read|write|admin [GLOB...] [options]",
     .kind = VALUE_OTHER,
     .meaning = "make a token for a client and add it to the tokens file",
     .options = token_options,
     .details = "Makes a random token, prints it once, and appends a line for the client NAME with "
                "its hash and its rights to the tokens file. A new file is readable by its owner "
                "only; an existing one keeps its owner and rights. Nothing changes if every user "
                "can read the file, or if it already has a client of this name. A running server "
                "accepts the token after SIGHUP.\nWith --s3, NAME becomes an access key for S3 "
                "clients, whose secret is printed and appended to the keys file.\nread lets the "
                "client download, write also upload "
                "and delete, admin also see all uploads. GLOB limits the client to models whose "
                "names match it, or one of several.",
     .examples = {{"ztserve token grafana read --tokens tokens", "for --tokens tokens of serve"},
                  {"ztserve token --s3 trainer write 'acme/*' --config /etc/ztserve/ztserve.json",
                   "an access key, in the file that s3.keys names"}}},
    {.name = "check-config",
     .run = command_check_config,
     .operands = "FILE",
     .kind = VALUE_FILE,
     .meaning = "check a configuration and the files that it names; print the result",
     .options = no_options,
     .details = "Checks a configuration, and the files of tokens, keys and certificates that it "
                "names as serve would, and prints the settings that result from it and the "
                "environment. Files that do not exist on this machine cause only a warning.",
     .examples = {{"ztserve check-config /etc/ztserve/ztserve.json", "before a restart"},
                  {"ZTSERVE_LISTEN=0.0.0.0:80 ztserve check-config ztserve.json | jq .listen",
                   "a key as the environment sets it"}}},
    {.name = "healthcheck",
     .run = command_healthcheck,
     .operands = "[URL] [options]",
     .kind = VALUE_OTHER,
     .meaning = "check that a server, by default the configured one, is alive",
     .options = healthcheck_options,
     .details =
         "Checks that a server is alive: the server of the URL, or the one on this machine with "
         "this configuration and environment. A URL without a path means /healthz. Over TLS, the "
         "certificate of the configured server, or of a server on a loopback address, is checked "
         "only with --ca. Fails unless the server returns 200 within 5 seconds.",
     .examples = {{"ztserve healthcheck --ready", "in a container, without curl"},
                  {"ztserve healthcheck http://models.example:8080", "on another machine"}}},
    {.name = "completion",
     .run = command_completion,
     .operands = "bash|zsh|fish",
     .kind = VALUE_WORD,
     .words = shell_words,
     .meaning = "print a shell completion script",
     .options = no_options,
     .details = "Prints a script that makes the shell complete commands, options and their values. "
                "The packages install it where the shell finds it.",
     .examples = {{"source <(ztserve completion bash)", "in this shell, or in ~/.bashrc"},
                  {"ztserve completion fish > ~/.config/fish/completions/ztserve.fish",
                   "in every new fish shell"}}},
    {.name = "help",
     .run = command_help,
     .operands = "[COMMAND]",
     .kind = VALUE_WORD,
     .words = command_words,
     .meaning = "print an overview, or a command's options and examples",
     .options = help_options,
     .details = "Prints an overview of all commands, or what a command does, its options and "
                "examples, as COMMAND --help does.",
     .examples = {{"ztserve help convert", "the options of convert"},
                  {"ztserve help --man convert | man -l -", "the same as a manual page"}}},
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
