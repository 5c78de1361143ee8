/* ztserve pull: downloads a whole model, or a selected part of it, and verifies it. If that fails,
 * no file appears.
 *
 * A model in several files is downloaded part by part. Its own file comes last, so that its name
 * does not exist before. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/download.h"
#include "client/related_files.h"
#include "commands/commands.h"
#include "commands/judgement.h"
#include "selection/axis_rules.h"
#include "store/store.h"
#include "terminal/interruption.h"
#include "terminal/plain_text.h"
#include "transfers/pull_paths.h"
#include "transfers/transfer_options.h"

#define WISHES_MOST 256

struct request {
    const char *url;
    const char *output;
    struct model_wish wish;
    const char *globs[WISHES_MOST];
    const char *axes[WISHES_MOST];
    bool is_forced;
    struct transfer_options given;
};

/* The result of checking one file. */
struct checked {
    bool is_model; /* false: a shard without a manifest */
    uint32_t objects;
    uint32_t verified;
    uint32_t undigested;
    uint32_t unsupported;
};

/* One file is pulled after another. */
struct pull {
    const struct request *request;
    struct progress_line line;
    uint64_t reported;
    const char *path;
    struct checked checked;
};

/* --- checking --- */

static void keep_statistics(struct checked *checked, const struct judgement *judgement)
{
    checked->is_model = true;
    checked->objects = judgement->file.model->object_count;
    checked->verified = judgement->verified;
    checked->undigested = judgement->undigested;
    checked->unsupported = judgement->unsupported;
}

static enum zt_status check(void *context, struct zt_source *source, struct zt_error *error)
{
    struct pull *pull = context;
    struct judgement *judgement = calloc(1, sizeof(*judgement));
    enum zt_status status;

    if (judgement == NULL) {
        zt_source_close(source);
        return zt_fail_memory(error, "a verdict");
    }
    judgement->path = pull->path;
    pull->checked = (struct checked){.is_model = false};
    status = opened_file_adopt(pull->path, source, &judgement->file, error);
    if (status == ZT_OK) {
        judgement_make(judgement, false);
        if (judgement->bad > 0) {
            *error = judgement->first_bad;
            status = error->status;
        }
        keep_statistics(&pull->checked, judgement);
        opened_file_close(&judgement->file);
    } else if (status == ZT_DATA_SHARD) {
        status = ZT_OK;
    }
    free(judgement);
    return status;
}

static bool is_covered(void *context)
{
    const struct checked *checked = &((struct pull *)context)->checked;

    return checked->undigested == 0 && checked->unsupported == 0;
}

/* --- progress --- */

static void report_progress(void *context, uint64_t total, uint64_t before, uint64_t come)
{
    struct pull *pull = context;

    pull->line.total_bytes = total;
    if (pull->line.done_bytes == 0 && before > 0)
        progress_line_skip(&pull->line, before);
    progress_line_advance(&pull->line, come - pull->reported);
    pull->reported = come;
}

/* Many formats have no digests, so that none is verified; this is not a fault. */
static void print_checked(const struct checked *checked)
{
    printf("; %" PRIu32 " object%s", checked->objects, checked->objects == 1 ? "" : "s");
    if (checked->verified > 0)
        printf(", %" PRIu32 " verified, %" PRIu32 " without digest", checked->verified,
               checked->undigested);
    else if (checked->undigested > 0)
        fputs("; the file states no digests", stdout);
}

static void print_result(const struct pull *pull, const struct download_result *result)
{
    const struct checked *checked = &pull->checked;

    if (pull->request->given.reporting.is_quiet)
        return;
    plain_text_write(stdout, pull->path, strlen(pull->path));
    if (result->was_there) {
        printf(": already exists, with the same %" PRIu64 " bytes\n", result->size);
        return;
    }
    printf(": %" PRIu64 " bytes", result->size);
    if (result->resumed > 0)
        printf(", %" PRIu64 " of them received earlier", result->resumed);
    if (checked->is_model)
        print_checked(checked);
    if (checked->unsupported > 0)
        printf(", %" PRIu32 " unsupported", checked->unsupported);
    if (result->has_sha256)
        printf("; SHA-256 matches the server");
    putchar('\n');
}

/* --- files --- */

/* If the user types control-C, says that the same command resumes the pull. */
static enum zt_status run(const struct download *download, struct download_result *result,
                          struct zt_error *error)
{
    char *part;
    enum zt_status status;

    if (asprintf(&part, "%s.part", download->path) < 0)
        return zt_fail_memory(error, "a path");
    interruption_note_part(part);
    status = download_run(download, result, error);
    interruption_note_part(NULL);
    free(part);
    return status;
}

static int pull_file(struct pull *pull, const struct client_place *place, const char *url,
                     const char *path)
{
    const struct request *request = pull->request;
    const struct transfer_options *given = &request->given;
    const size_t length = strlen(path);
    const struct download download = {
        .options = &given->client,
        .url = url,
        .place = *place,
        .path = path,
        .replaces_any = request->is_forced,
        /* zTensor files contain digests. */
        .wants_digest = length < 3 || strcmp(path + length - 3, ".zt") != 0,
        .check = check,
        .is_covered = is_covered,
        .report_progress = report_progress,
        .context = pull,
    };
    const unsigned file = pull->line.file;
    const unsigned files = pull->line.files;
    struct download_result result;
    struct zt_error error;
    enum zt_status status;

    pull->path = path;
    pull->reported = 0;
    progress_line_start(&pull->line, reporting_progress(&given->reporting), "pulling", 0);
    pull->line.name = path;
    pull->line.file = file;
    pull->line.files = files;
    zt_error_clear(&error);
    status = run(&download, &result, &error);
    progress_line_end(&pull->line);
    if (status != ZT_OK)
        return failure_complain(path, &error);
    print_result(pull, &result);
    if (result.axis_suggestion[0] != '\0')
        command_suggest_axes(result.axis_suggestion);
    return EXIT_DONE;
}

static int pull_related(struct pull *pull, const struct model_file *file,
                        const struct related_files *related, const char *main_path)
{
    int result = EXIT_DONE;

    for (unsigned i = 0; i < related->count && result == EXIT_DONE; i++) {
        const char *name = related->names[i];
        char *path = related->own_names ? pull_path_beside(pull->request->output, name)
                                        : pull_path_of_shard(main_path, file->name, name);
        struct client_place place;
        struct zt_error error;

        if (path == NULL)
            zt_fail_memory(&error, "a path");
        if (path == NULL || related_file_place(file, name, &place, &error) != ZT_OK ||
            (related->own_names && pull_path_make_folders(path, name, &error) != ZT_OK)) {
            result = failure_complain(name, &error);
        } else {
            pull->line.file = i + 1;
            pull->line.files = related->count + 1;
            result = pull_file(pull, &place, place.address.target, path);
        }
        free(path);
    }
    return result;
}

static int pull_model(const struct request *request, const struct model_file *file,
                      const struct related_files *related)
{
    struct pull pull = {.request = request};
    char *path = pull_path_main(request->output, file->name);
    int result;

    if (path == NULL) {
        command_complain("%s: out of memory", request->url);
        return EXIT_BAD;
    }
    result = pull_related(&pull, file, related, path);
    pull.line.file = related->count + 1;
    pull.line.files = related->count + 1;
    if (result == EXIT_DONE)
        result = pull_file(&pull, &file->place, request->url, path);
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

static int check_names(const struct request *request, const struct model_file *file,
                       const struct related_files *related)
{
    const char *unexpected =
        request->is_forced ? NULL : find_unexpected_name(request, file, related);

    if (file->name[0] == '.' && (request->output == NULL || pull_path_is_folder(request->output)))
        return command_usage("%s: the file %s would be hidden: choose one with -o", request->url,
                             file->name);
    if (!may_be_renamed(request, file, related))
        return command_usage("-o: the parts of a split keep their names: give a folder");
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

static int pull_url(struct request *request)
{
    struct related_files related = {.names = NULL};
    struct client *client = NULL;
    struct model_file file;
    struct zt_error error;
    enum zt_status status;
    int result;

    interruption_catch();
    zt_error_clear(&error);
    request->given.client.is_patient = true;
    status = client_open(&request->given.client, &client, &error);
    if (status == ZT_OK)
        status = find_file(client, request, &file, &error);
    if (status == ZT_OK && !model_wish_is_set(&request->wish))
        status = related_files_find(client, &file, &related, &error);
    client_close(client);
    request->given.client.has_answered = true;
    if (status != ZT_OK) {
        failure_complain(request->url, &error);
        return status == ZT_ARGUMENT ? EXIT_USAGE : EXIT_BAD;
    }
    result = check_names(request, &file, &related);
    if (result == EXIT_DONE)
        result = pull_model(request, &file, &related);
    related_files_free(&related);
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
    if (request->output != NULL && pull_path_is_absent_folder(request->output))
        return command_usage("--output %s: there is no such folder", request->output);
    return EXIT_DONE;
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
        result = client_options_finish(&request.given.client, &error) == ZT_OK
                     ? pull_url(&request)
                     : failure_complain(request.url, &error);
    client_options_free(&request.given.client);
    return result;
}
