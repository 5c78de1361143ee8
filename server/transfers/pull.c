/* ztserve pull: downloads a whole model, a selected part of it, a repository or any file, and
 * verifies it. If that fails, no file appears.
 *
 * A model in several files is downloaded part by part. Its own file comes last, so that its name
 * does not exist before. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/related_files.h"
#include "client/repository.h"
#include "commands/commands.h"
#include "conversion/read_only_format.h"
#include "selection/axis_rules.h"
#include "store/store.h"
#include "terminal/interruption.h"
#include "transfers/pull_paths.h"
#include "transfers/pull_repository.h"
#include "transfers/pulled_file.h"

#define WISHES_MOST 256

struct request {
    const char *url;
    const char *output;
    struct model_wish wish;
    const char *globs[WISHES_MOST];
    const char *axes[WISHES_MOST];
    const char *haves[WISHES_MOST];
    unsigned have_count;
    struct local_tensors *local;
    bool is_forced;
    struct transfer_options given;
};

/* --- files --- */

static int pull_related(const struct request *request, struct pull *pull,
                        const struct model_file *file, const struct related_files *related,
                        const char *main_path)
{
    int result = EXIT_DONE;

    for (unsigned i = 0; i < related->count && result == EXIT_DONE; i++) {
        const char *name = related->names[i];
        char *path = related->own_names ? pull_path_beside(request->output, name)
                                        : pull_path_of_shard(main_path, file->name, name);
        struct client_place place;
        struct zt_error error;

        if (path == NULL)
            zt_fail_memory(&error, "a path");
        if (path == NULL || related_file_place(file, name, &place, &error) != ZT_OK ||
            (related->own_names && pull_path_make_folders(path, name, &error) != ZT_OK)) {
            result = failure_complain(name, &error);
        } else {
            const struct pulled_file pulled = {
                .place = &place, .url = place.address.target, .path = path};

            pull->line.file = i + 1;
            pull->line.files = related->count + 1;
            result = pull_file(pull, &pulled);
        }
        free(path);
    }
    return result;
}

static int pull_model(const struct request *request, const struct model_file *file,
                      const struct related_files *related)
{
    struct pull pull = {
        .given = &request->given, .is_forced = request->is_forced, .local = request->local};
    char *path = pull_path_main(request->output, file->name);
    const struct pulled_file pulled = {.place = &file->place,
                                       .url = request->url,
                                       .path = path,
                                       .may_be_other = file->may_be_other};
    struct zt_error error;
    int result;

    if (path == NULL) {
        command_complain("%s: out of memory", request->url);
        return EXIT_BAD;
    }
    if (pull_path_make_output(request->output, &error) != ZT_OK) {
        free(path);
        return failure_complain(request->output, &error);
    }
    result = pull_related(request, &pull, file, related, path);
    pull.line.file = related->count + 1;
    pull.line.files = related->count + 1;
    if (result == EXIT_DONE)
        result = pull_file(&pull, &pulled);
    free(path);
    return result;
}

/* Returns true if a name that the server has chosen is acceptable for a file here. */
static bool is_tensor_name(const char *name)
{
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++)
        if (model_extension_ends(zt_text_from(name), rank))
            return true;
    return model_path_is_index(zt_text_from(name));
}

/* Returns the first name that the server has chosen and that is not a tensor file's, or NULL. The
 * name of the main file comes from the user, by -o or in the URL. */
static const char *find_unexpected_name(const struct request *request,
                                        const struct model_file *file,
                                        const struct related_files *related)
{
    const bool has_path = request->output != NULL && !pull_path_is_folder(request->output);

    if (!has_path && !file->is_named_by_url && !is_tensor_name(file->name))
        return file->name;
    for (unsigned i = 0; i < related->count; i++)
        if (!is_tensor_name(related->names[i]))
            return related->names[i];
    return NULL;
}

/* The first part of a split is identified by its name, and must keep it. */
static bool may_be_renamed(const struct request *request, const struct model_file *file,
                           const struct related_files *related)
{
    return request->output == NULL || pull_path_is_folder(request->output) || related->count == 0 ||
           !related->own_names || model_path_is_index(zt_text_from(file->name));
}

/* The format of PATH's extension, if it is only read and the server's file has another one: its
 * bytes would have a misleading name. NULL otherwise. */
static const char *misleading_format(const struct request *request, const struct model_file *file)
{
    const bool has_path = request->output != NULL && !pull_path_is_folder(request->output);
    const char *wanted = has_path ? read_only_format(request->output) : NULL;
    const char *own = read_only_format(file->name);
    const bool differs = wanted != NULL && (own == NULL || strcmp(own, wanted) != 0);

    return differs && !file->is_named_by_url && !request->is_forced ? wanted : NULL;
}

static int check_names(const struct request *request, const struct model_file *file,
                       const struct related_files *related)
{
    const char *unexpected =
        request->is_forced ? NULL : find_unexpected_name(request, file, related);
    const char *misleading = misleading_format(request, file);

    if (file->name[0] == '.' && (request->output == NULL || pull_path_is_folder(request->output)))
        return command_usage("%s: the file %s would be hidden: choose one with -o", request->url,
                             file->name);
    if (!may_be_renamed(request, file, related))
        return command_usage("-o: the parts of a split keep their names: give a folder");
    if (misleading != NULL)
        return command_usage("-o %s: %s is read, not written; the server's file is %s",
                             request->output, misleading, file->name);
    if (unexpected == NULL)
        return EXIT_DONE;
    command_complain("%s: the server names the file %s, which does not have the extension of a "
                     "tensor file; --force downloads it anyway",
                     request->url, unexpected);
    return EXIT_BAD;
}

/* The extension in -o selects the format, like convert's OUT, unless --format does. */
static enum zt_status find_file(struct client *client, struct request *request,
                                struct model_file *out_file, struct zt_error *error)
{
    const char *path =
        request->output != NULL && !pull_path_is_folder(request->output) ? request->output : NULL;
    struct model_wish *wish = &request->wish;
    enum zt_status status;

    if (model_wish_is_set(wish) && wish->format == NULL)
        wish->format = pull_format_of(path);
    status = model_address_find(client, request->url, wish, out_file, error);
    if (status != ZT_OK || model_wish_is_set(wish) ||
        !pull_format_differs(request->url, path, out_file))
        return status;
    wish->format = pull_format_of(path);
    return model_address_find(client, request->url, wish, out_file, error);
}

/* What a URL names: a repository if its address has a name, otherwise a file. */
struct found {
    struct model_file file;
    struct related_files related;
    struct repository repository;
};

static enum zt_status find_repository(struct client *client, const struct request *request,
                                      struct found *found, struct zt_error *error)
{
    struct repository_address address;
    enum zt_status status = repository_address_read(request->url, &address, error);

    if (status == ZT_OK && address.name[0] == '\0')
        status = zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                         "the URL names neither a model nor a repository: use http://HOST/NAME "
                         "(ztserve ls http://HOST/ lists the models)");
    if (status == ZT_OK && model_wish_is_set(&request->wish))
        status = zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                         "only models can be selected from or converted, not repositories");
    if (status != ZT_OK)
        return status;
    status = repository_find(client, &address, &found->repository, error);
    if (status == ZT_IO && error->os_error == ENOENT) {
        zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server has no repository of that name");
        error->os_error = ENOENT;
    }
    return status;
}

static bool ends_in_slash(const char *url)
{
    return url[strcspn(url, "?#")] == '\0' && url[strlen(url) - 1] == '/';
}

/* Finds a repository where no model was found, as *error says. Replaces *error only if a repository
 * exists that cannot be read. */
static enum zt_status find_instead(struct client *client, const struct request *request,
                                   struct found *found, struct zt_error *error)
{
    struct zt_error reason;
    const enum zt_status status = find_repository(client, request, found, &reason);

    assert(error->os_error == ENOENT);
    if (status == ZT_ARGUMENT || status == ZT_INVALID ||
        (status == ZT_IO && reason.os_error == ENOENT))
        return error->status;
    if (status != ZT_OK)
        *error = reason;
    return status;
}

/* A model takes precedence over the folder of its name, unless the URL ends in '/'. */
static enum zt_status find(struct client *client, struct request *request, struct found *found,
                           struct zt_error *error)
{
    enum zt_status status;

    if (ends_in_slash(request->url))
        return find_repository(client, request, found, error);
    status = find_file(client, request, &found->file, error);
    if (status == ZT_IO && error->os_error == ENOENT && !model_wish_is_set(&request->wish))
        return find_instead(client, request, found, error);
    if (status == ZT_OK && !model_wish_is_set(&request->wish))
        status = related_files_find(client, &found->file, &found->related, error);
    return status;
}

static int pull_found(struct request *request, const struct found *found)
{
    int result;

    if (found->repository.address.name[0] != '\0')
        return pull_repository(&(struct repository_pull){&request->given, &found->repository,
                                                         request->url, request->output,
                                                         request->is_forced, request->local});
    result = check_names(request, &found->file, &found->related);
    return result == EXIT_DONE ? pull_model(request, &found->file, &found->related) : result;
}

static int pull_url(struct request *request)
{
    struct found found = {.related = {.names = NULL}};
    struct client *client = NULL;
    struct zt_error error;
    enum zt_status status;
    int result;

    interruption_catch();
    zt_error_clear(&error);
    request->given.client.is_patient = true;
    status = client_open(&request->given.client, &client, &error);
    if (status == ZT_OK)
        status = find(client, request, &found, &error);
    client_close(client);
    request->given.client.has_answered = true;
    if (status != ZT_OK) {
        failure_complain(request->url, &error);
        return status == ZT_ARGUMENT ? EXIT_USAGE : EXIT_BAD;
    }
    result = pull_found(request, &found);
    related_files_free(&found.related);
    repository_free(&found.repository);
    return command_finish(result);
}

/* --- arguments --- */

static int add_repeated(const struct option_reader *reader, const char **list, unsigned *count)
{
    if (*count == WISHES_MOST)
        return command_usage("%s: more than %d times", reader->name, WISHES_MOST);
    list[(*count)++] = reader->value;
    return EXIT_DONE;
}

static int take_shard(struct request *request, const struct option_reader *reader)
{
    struct zt_cut cut;

    if (!cut_read(zt_text_from(reader->value), &cut))
        return command_usage("--shard %s: it must be R/N: part R, counted from 0, of N",
                             reader->value);
    request->wish.shard = reader->value;
    return EXIT_DONE;
}

static int take_option(struct request *request, const struct option_reader *reader)
{
    struct model_wish *wish = &request->wish;
    const enum option_taken taken = transfer_option_take(&request->given, reader);

    if (taken != OPTION_OTHER)
        return taken == OPTION_TAKEN ? EXIT_DONE : EXIT_USAGE;
    if (option_reader_is(reader, "--match"))
        return add_repeated(reader, request->globs, &wish->glob_count);
    if (option_reader_is(reader, "--have"))
        return add_repeated(reader, request->haves, &request->have_count);
    if (option_reader_is(reader, "--axis"))
        return add_repeated(reader, request->axes, &wish->axis_count);
    if (option_reader_is(reader, "--shard"))
        return take_shard(request, reader);
    if (option_reader_is(reader, "--force"))
        request->is_forced = true;
    else if (option_reader_is(reader, "--format"))
        wish->format = reader->value;
    else if (option_reader_is(reader, "--dtype"))
        wish->dtype = reader->value;
    else
        request->output = reader->value;
    return EXIT_DONE;
}

static int take_url(struct request *request, const char *url)
{
    if (request->url != NULL)
        return command_usage("pull takes one URL");
    if (!web_address_is_meant(url))
        return url_refuse(url);
    request->url = url;
    return EXIT_DONE;
}

static int read_arguments(int argc, char **argv, struct request *request)
{
    struct option_reader reader = option_reader_of(argc, argv);
    int status = EXIT_DONE;
    enum option_found found;

    while (status == EXIT_DONE && (found = option_reader_next(&reader)) != OPTION_END)
        status = found == OPTION_WRONG   ? EXIT_USAGE
                 : found == OPTION_NAMED ? take_option(request, &reader)
                                         : take_url(request, reader.value);
    if (status != EXIT_DONE)
        return status;
    if (request->url == NULL)
        return command_usage("pull needs a URL");
    if (request->wish.axis_count > 0 && request->wish.shard == NULL)
        return command_usage("--axis: only with --shard");
    if (request->output != NULL && request->output[0] == '\0')
        return command_usage("--output: needs a path");
    if (request->output != NULL && strcmp(request->output, "-") == 0)
        return command_usage("--output -: writing to standard output is not supported; use ./- for "
                             "a file of that name");
    return EXIT_DONE;
}

static int open_local(struct request *request)
{
    const char *path = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    if (request->have_count == 0)
        return EXIT_DONE;
    return local_tensors_open(request->haves, request->have_count, &request->local, &path,
                              &error) == ZT_OK
               ? EXIT_DONE
               : failure_complain(path, &error);
}

int command_pull(int argc, char **argv)
{
    struct request request = {.given = TRANSFER_OPTIONS_DEFAULT};
    struct zt_error error;
    int result;

    request.wish.globs = request.globs;
    request.wish.axes = request.axes;
    result = read_arguments(argc, argv, &request);
    if (result == EXIT_DONE)
        result = server_options_check(&request.given.client);
    if (result == EXIT_DONE)
        result = open_local(&request);
    if (result == EXIT_DONE)
        result = client_options_finish(&request.given.client, &error) == ZT_OK
                     ? pull_url(&request)
                     : failure_complain(request.url, &error);
    client_options_free(&request.given.client);
    local_tensors_free(request.local);
    return result;
}
