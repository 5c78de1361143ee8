/* ztserve token: makes a token, prints it once, and appends a client's line with its hash to the
 * tokens file; with --s3, a secret, which it appends to the keys file. The file is replaced as a
 * whole, so that a server never reads part of a line: a line without its globs would grant access
 * to all models. */
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
#include "access/s3_keys.h"
#include "base/glob.h"
#include "base/hex.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/option_reader.h"
#include "commands/settings.h"
#include "conversion/output_file.h"
#include "input/text_file.h"

/* 256 bits cannot be guessed, not even from their hash. */
#define TOKEN_BYTES 32
#define TOKEN_SIZE  (2 * TOKEN_BYTES + 1)
#define NEW_MODE    0600
#define LINE_SIZE   1024
/* The access control list of a file, of which the mode shows only a part. */
#define ACL_NAME "system.posix_acl_access"
#define ACL_SIZE 4096

struct request {
    bool is_s3; /* --s3: name is an access key */
    const char *name;
    const char *scope;
    const char *globs[GLOB_SET_MAX];
    unsigned glob_count;
    const char *tokens; /* --tokens */
    const char *keys;   /* --keys; NULL: the configuration names the file */
    const char *config;
    bool is_quiet;
};

/* The tokens file or the keys file before the change. */
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

/* proof: the hash of the token, or the secret. */
static void append_line(struct zt_buffer *text, const struct request *request, const char *proof)
{
    assert(request->name != NULL && request->scope != NULL);
    if (text->length > 0 && text->bytes[text->length - 1] != '\n')
        append(text, "\n");
    append(text, request->name);
    append(text, "  ");
    append(text, request->is_s3 ? proof : request->scope);
    append(text, "  ");
    append(text, request->is_s3 ? request->scope : proof);
    for (unsigned i = 0; i < request->glob_count; i++) {
        append(text, "  ");
        append(text, request->globs[i]);
    }
    append(text, "\n");
}

/* --- the file --- */

static const char *key_of(const struct request *request)
{
    return request->is_s3 ? "s3.keys" : "auth.tokens";
}

/* The keys file has secrets: text_file.h says who may read it, if this user were the owner. */
static bool is_too_open(const struct request *request, const struct earlier *earlier)
{
    const mode_t group = earlier->info.st_uid == 0 ? S_IWGRP | S_IXGRP : S_IRWXG;

    return earlier->file.is_public ||
           (request->is_s3 && (earlier->info.st_mode & (group | S_IRWXO)) != 0);
}

/* Reads the file if it exists. */
static bool read_earlier(const struct request *request, const char *path, struct earlier *earlier,
                         char *error, size_t error_size)
{
    earlier->exists = stat(path, &earlier->info) == 0;
    if (!earlier->exists && errno == ENOENT)
        return true;
    if (!earlier->exists) {
        snprintf(error, error_size, "%.700s: %s", path, strerrordesc_np(errno));
        return false;
    }
    if (!text_file_read(key_of(request), path, &earlier->file, error, error_size))
        return false;
    if (!is_too_open(request, earlier))
        return true;
    snprintf(error, error_size,
             request->is_s3
                 ? "%.700s: other users can read it, so no key was added: chmod go= it first"
                 : "%.700s: every user of this machine can read it, so no token was added: chmod "
                   "o= it first",
             path);
    return false;
}

/* Reads the text as the server will. *out_line is the line with the client's name, or 0. False with
 * an error. */
static bool find_name(const struct request *request, const char *path, struct zt_text text,
                      unsigned *out_line, char *error)
{
    struct grants *grants = NULL;
    struct s3_keys *keys = NULL;
    const struct grant *grant = NULL;
    const struct s3_key *key;

    if (request->is_s3) {
        keys = s3_keys_parse(text, path, error, LINE_SIZE);
        key = keys != NULL ? s3_keys_find(keys, zt_text_from(request->name)) : NULL;
        grant = key != NULL ? &key->grant : NULL;
    } else {
        grants = grants_parse(text, path, error, LINE_SIZE);
        grant = grants != NULL ? grants_of_name(grants, request->name) : NULL;
    }
    *out_line = grant != NULL ? grant->line : 0;
    s3_keys_free(keys);
    grants_free(grants);
    return keys != NULL || grants != NULL;
}

/* Whether the file is right, and has no client of this name yet. */
static bool check_name(const struct request *request, const char *path,
                       const struct earlier *earlier, char *error)
{
    unsigned line;

    if (!find_name(request, path, (struct zt_text){earlier->file.text, earlier->file.length}, &line,
                   error))
        return false;
    if (line != 0)
        snprintf(error, LINE_SIZE,
                 "%.700s, line %u: there already is a client named %.80s: choose another name, or "
                 "remove that line first",
                 path, line, request->name);
    return line == 0;
}

/* Checks the new text as the server will. */
static bool check_text(const struct request *request, const char *path,
                       const struct zt_buffer *text, char *error)
{
    unsigned line;

    if (text->failed || text->length > TEXT_FILE_MAX) {
        snprintf(error, LINE_SIZE, "%.700s: %s", path,
                 text->failed ? "out of memory" : "it would be larger than 1 MiB");
        return false;
    }
    if (!find_name(request, path, (struct zt_text){(const char *)text->bytes, text->length}, &line,
                   error))
        return false;
    assert(line != 0);
    return true;
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
                     const char *proof)
{
    struct earlier earlier = {.exists = false};
    struct zt_buffer text = {0};
    char error[LINE_SIZE];
    bool is_right = read_earlier(request, output->target, &earlier, error, sizeof(error)) &&
                    check_name(request, path, &earlier, error);
    int status = EXIT_BAD;

    if (is_right) {
        zt_buffer_append(&text, earlier.file.text, earlier.file.length);
        append_line(&text, request, proof);
        is_right = check_text(request, path, &text, error);
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
static int add_to_file(const struct request *request, const char *path, const char *proof)
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
    status = append_to(&output, request, path, proof);
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
    if (request->is_s3 && !s3_key_is_valid(zt_text_from(request->name)))
        return command_usage("\"%.80s\": an access key has only ASCII characters, and no comma",
                             request->name);
    if (request->is_s3 ? request->tokens != NULL : request->keys != NULL)
        return command_usage("%s", request->is_s3 ? "--s3 adds to a keys file: give --keys FILE"
                                                  : "--keys needs --s3");
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
        else if (option_reader_is(&reader, "--keys"))
            request->keys = reader.value;
        else if (option_reader_is(&reader, "--s3"))
            request->is_s3 = true;
        else if (option_reader_is(&reader, "--config"))
            request->config = reader.value;
        else if (option_reader_is(&reader, "--quiet"))
            request->is_quiet = true;
        else
            status = take_operand(request, reader.value);
    return status == EXIT_DONE ? check_request(request) : status;
}

static int fail_unknown_file(const struct request *request)
{
    if (request->is_s3)
        return command_usage("the keys file is not known: give --keys FILE, or --config with the "
                             "settings of a server that has one");
    return command_usage("the tokens file is not known: give --tokens FILE, or --config with the "
                         "settings of a server that has one");
}

/* *out_path points into config or request. */
static int find_file(const struct request *request, struct config *config, const char **out_path)
{
    const char *given = request->is_s3 ? request->keys : request->tokens;
    struct config_message message;

    if (!settings_load_base(request->config, config, &message)) {
        command_complain("%s", message.text);
        return EXIT_USAGE;
    }
    *out_path = given != NULL ? given : request->is_s3 ? config->s3.keys : config->auth.tokens;
    return (*out_path)[0] != '\0' ? EXIT_DONE : fail_unknown_file(request);
}

/* Prints a key as the variables that S3 clients read. */
static void print_token(const struct request *request, const char *token)
{
    if (request->is_s3)
        printf("AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n", request->name, token);
    else
        printf("%s\n", token);
}

static void advise(const struct request *request, const char *path)
{
    if (request->is_quiet)
        return;
    command_complain(request->is_s3
                         ? "a running server accepts this key, which is also in the file %s, after "
                           "SIGHUP (systemctl reload ztserve)"
                         : "keep this token: the file %s has only its hash. A running server "
                           "accepts it after SIGHUP (systemctl reload ztserve)",
                     path);
}

int command_token(int argc, char **argv)
{
    struct request request = {.name = NULL};
    struct config config;
    const char *path;
    char token[TOKEN_SIZE];
    char hex[2 * sizeof(struct token_hash) + 1];
    struct token_hash hash;
    int status = read_arguments(argc, argv, &request);

    if (status == EXIT_DONE)
        status = find_file(&request, &config, &path);
    if (status != EXIT_DONE)
        return status;
    if (!make_token(token, &hash)) {
        command_complain("the kernel gives no random bytes");
        return EXIT_BAD;
    }
    zt_hex_write(hex, &hash, sizeof(hash));
    status = add_to_file(&request, path, request.is_s3 ? token : hex);
    if (status == EXIT_DONE) {
        print_token(&request, token);
        status = command_finish(EXIT_DONE);
    }
    if (status == EXIT_DONE)
        advise(&request, path);
    explicit_bzero(token, sizeof(token));
    return status;
}
