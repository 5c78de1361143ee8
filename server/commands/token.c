/* ztserve token: makes a token, prints it once, and appends a client's line with its hash to the
 * tokens file. The file is replaced as a whole, so that a server never reads part of a line: a line
 * without its globs would grant access to all models. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "access/grants.h"
#include "base/glob.h"
#include "base/hex.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/option_reader.h"
#include "commands/settings.h"
#include "conversion/output_file.h"
#include "input/text_file.h"

#define KEY "auth.tokens"
/* 256 bits cannot be guessed, not even from their hash. */
#define TOKEN_BYTES 32
#define TOKEN_SIZE  (2 * TOKEN_BYTES + 1)
#define NEW_MODE    0600
#define LINE_SIZE   1024
/* The access control list of a file, of which the mode shows only a part. */
#define ACL_NAME "system.posix_acl_access"
#define ACL_SIZE 4096

struct request {
    const char *name;
    const char *scope;
    const char *globs[GLOB_SET_MAX];
    unsigned glob_count;
    const char *tokens; /* --tokens; NULL: the configuration names the file */
    const char *config;
    bool is_quiet;
};

/* The tokens file as it was. */
struct earlier {
    bool exists;
    struct stat info;
    struct text_file file;
};

/* --- the token --- */

static bool make_token(char out_token[TOKEN_SIZE], struct token_hash *out_hash)
{
    uint8_t bytes[TOKEN_BYTES];

    while (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        if (errno != EINTR)
            return false;
    *zt_hex_write(out_token, bytes, sizeof(bytes)) = '\0';
    explicit_bzero(bytes, sizeof(bytes));
    return token_hash_make(zt_text_from(out_token), out_hash);
}

static void append(struct zt_buffer *text, const char *string)
{
    zt_buffer_append(text, string, strlen(string));
}

static void append_line(struct zt_buffer *text, const struct request *request,
                        const struct token_hash *hash)
{
    char hex[2 * sizeof(*hash) + 1];

    assert(request->name != NULL && request->scope != NULL);
    *zt_hex_write(hex, hash, sizeof(*hash)) = '\0';
    if (text->length > 0 && text->bytes[text->length - 1] != '\n')
        append(text, "\n");
    append(text, request->name);
    append(text, "  ");
    append(text, request->scope);
    append(text, "  ");
    append(text, hex);
    for (unsigned i = 0; i < request->glob_count; i++) {
        append(text, "  ");
        append(text, request->globs[i]);
    }
    append(text, "\n");
}

/* --- the file --- */

/* Reads the file if it exists. */
static bool read_earlier(const char *path, struct earlier *earlier, char *error, size_t error_size)
{
    earlier->exists = stat(path, &earlier->info) == 0;
    if (!earlier->exists && errno == ENOENT)
        return true;
    if (!earlier->exists) {
        snprintf(error, error_size, "%.700s: %s", path, strerrordesc_np(errno));
        return false;
    }
    if (!text_file_read(KEY, path, &earlier->file, error, error_size))
        return false;
    if (!earlier->file.is_public)
        return true;
    snprintf(error, error_size,
             "%.700s: every user of this machine can read it, so no token was added: chmod o= it "
             "first",
             path);
    return false;
}

/* Whether the file is right, and has no client of this name yet. */
static bool check_name(const struct request *request, const char *path,
                       const struct earlier *earlier, char *error, size_t error_size)
{
    const struct zt_text text = {earlier->file.text, earlier->file.length};
    struct grants *grants = grants_parse(text, path, error, error_size);
    const struct grant *namesake;

    if (grants == NULL)
        return false;
    namesake = grants_of_name(grants, request->name);
    if (namesake != NULL)
        snprintf(error, error_size,
                 "%.700s, line %u: there already is a client named %.80s: choose another name, or "
                 "remove that line first",
                 path, namesake->line, request->name);
    grants_free(grants);
    return namesake == NULL;
}

/* Checks the new text as the server will. */
static bool check_text(const struct request *request, const char *path,
                       const struct zt_buffer *text, char *error, size_t error_size)
{
    const struct zt_text whole = {(const char *)text->bytes, text->length};
    struct grants *grants;
    bool is_there;

    if (text->failed || text->length > TEXT_FILE_MAX) {
        snprintf(error, error_size, "%.700s: %s", path,
                 text->failed ? "out of memory" : "it would be larger than 1 MiB");
        return false;
    }
    grants = grants_parse(whole, path, error, error_size);
    if (grants == NULL)
        return false;
    is_there = grants_of_name(grants, request->name) != NULL;
    assert(is_there);
    grants_free(grants);
    return is_there;
}

/* Gives the new file the owner and the rights of the old one. */
static bool keep_rights(int descriptor, const char *path, const struct earlier *earlier)
{
    struct stat info;
    char list[ACL_SIZE];
    ssize_t length;

    if (!earlier->exists)
        return fchmod(descriptor, NEW_MODE) == 0;
    if (fstat(descriptor, &info) != 0)
        return false;
    if ((info.st_uid != earlier->info.st_uid || info.st_gid != earlier->info.st_gid) &&
        fchown(descriptor, earlier->info.st_uid, earlier->info.st_gid) != 0)
        return false;
    if (fchmod(descriptor, earlier->info.st_mode & 07777) != 0)
        return false;
    length = getxattr(path, ACL_NAME, list, sizeof(list));
    if (length < 0)
        return errno == ENODATA || errno == EOPNOTSUPP;
    return fsetxattr(descriptor, ACL_NAME, list, (size_t)length, 0) == 0;
}

static int write_file(struct output_file *output, const struct earlier *earlier,
                      const struct zt_buffer *text, const char *path)
{
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    if (!keep_rights(output->descriptor, output->target, earlier)) {
        command_complain("%s: its owner and rights cannot be kept: %s", path,
                         strerrordesc_np(errno));
        output_file_discard(output);
        return EXIT_BAD;
    }
    status = output_file_write(output, text->bytes, text->length, &error);
    if (status == ZT_OK)
        return output_file_publish(output, &error) == ZT_OK ? EXIT_DONE
                                                            : failure_complain(path, &error);
    output_file_discard(output);
    return failure_complain(path, &error);
}

/* Takes over the output. */
static int append_to(struct output_file *output, const struct request *request, const char *path,
                     const struct token_hash *hash)
{
    struct earlier earlier = {.exists = false};
    struct zt_buffer text = {0};
    char error[LINE_SIZE];
    bool is_right = read_earlier(output->target, &earlier, error, sizeof(error)) &&
                    check_name(request, path, &earlier, error, sizeof(error));
    int status = EXIT_BAD;

    if (is_right) {
        zt_buffer_append(&text, earlier.file.text, earlier.file.length);
        append_line(&text, request, hash);
        is_right = check_text(request, path, &text, error, sizeof(error));
    }
    if (is_right) {
        status = write_file(output, &earlier, &text, path);
    } else {
        command_complain("%s", error);
        output_file_discard(output);
    }
    zt_buffer_free(&text);
    text_file_free(&earlier.file);
    return status;
}

/* Only one of several commands at a time changes a file of the folder: each reads what the others
 * have written. */
static int add_to_file(const struct request *request, const char *path,
                       const struct token_hash *hash)
{
    struct output_file output;
    struct zt_error error;
    int folder;
    int status;

    zt_error_clear(&error);
    if (output_file_open(path, &output, &error) != ZT_OK)
        return failure_complain(path, &error);
    folder = open(output.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        (void)flock(folder, LOCK_EX);
    status = append_to(&output, request, path, hash);
    if (folder >= 0)
        close(folder);
    return status;
}

/* --- arguments --- */

/* A blank would begin the next field, and # a comment. */
static bool is_field(const char *text)
{
    return text[0] != '\0' && text[0] != '#' && strpbrk(text, " \t\r\n") == NULL;
}

static int take_operand(struct request *request, const char *text)
{
    if (request->name == NULL)
        request->name = text;
    else if (request->scope == NULL)
        request->scope = text;
    else if (request->glob_count < GLOB_SET_MAX)
        request->globs[request->glob_count++] = text;
    else
        return command_usage("token takes at most %d globs", GLOB_SET_MAX);
    return EXIT_DONE;
}

static int check_request(const struct request *request)
{
    if (request->name == NULL || request->scope == NULL)
        return command_usage("token needs a name and a scope: read, write or admin");
    if (strcmp(request->scope, "read") != 0 && strcmp(request->scope, "write") != 0 &&
        strcmp(request->scope, "admin") != 0)
        return command_usage("%s: the scope must be read, write or admin", request->scope);
    if (!is_field(request->name) || strlen(request->name) > GRANT_NAME_MAX)
        return command_usage(
            "\"%.80s\": a name has 1 to %d bytes without blanks, and does not begin "
            "with #",
            request->name, GRANT_NAME_MAX);
    for (unsigned i = 0; i < request->glob_count; i++)
        if (!is_field(request->globs[i]) || !glob_is_valid(zt_text_from(request->globs[i])))
            return command_usage(
                "\"%.80s\": a glob has no blanks (write ? for one), does not begin "
                "with #, and closes every [",
                request->globs[i]);
    return EXIT_DONE;
}

static int read_arguments(int argc, char **argv, struct request *request)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;
    int status = EXIT_DONE;

    while (status == EXIT_DONE && (found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (option_reader_is(&reader, "--tokens"))
            request->tokens = reader.value;
        else if (option_reader_is(&reader, "--config"))
            request->config = reader.value;
        else if (option_reader_is(&reader, "--quiet"))
            request->is_quiet = true;
        else
            status = take_operand(request, reader.value);
    return status == EXIT_DONE ? check_request(request) : status;
}

/* The path of the tokens file in config->auth.tokens. */
static int find_file(const struct request *request, struct config *config)
{
    struct config_message message;

    if (!settings_load_base(request->config, config, &message)) {
        command_complain("%s", message.text);
        return EXIT_USAGE;
    }
    if (request->tokens != NULL &&
        (size_t)snprintf(config->auth.tokens, sizeof(config->auth.tokens), "%s", request->tokens) >=
            sizeof(config->auth.tokens))
        return command_usage("--tokens: the path is too long");
    if (config->auth.tokens[0] == '\0')
        return command_usage(
            "the tokens file is not known: give --tokens FILE, or --config with the "
            "settings of a server that has one");
    return EXIT_DONE;
}

int command_token(int argc, char **argv)
{
    struct request request = {.name = NULL};
    struct config config;
    char token[TOKEN_SIZE];
    struct token_hash hash;
    int status = read_arguments(argc, argv, &request);

    if (status == EXIT_DONE)
        status = find_file(&request, &config);
    if (status != EXIT_DONE)
        return status;
    if (!make_token(token, &hash)) {
        command_complain("the kernel gives no random bytes");
        return EXIT_BAD;
    }
    status = add_to_file(&request, config.auth.tokens, &hash);
    if (status == EXIT_DONE) {
        printf("%s\n", token);
        status = command_finish(EXIT_DONE);
    }
    if (status == EXIT_DONE && !request.is_quiet)
        command_complain(
            "keep this token: the file %s has only its hash. A running server accepts it after "
            "SIGHUP (systemctl reload ztserve)",
            config.auth.tokens);
    explicit_bzero(token, sizeof(token));
    return status;
}
