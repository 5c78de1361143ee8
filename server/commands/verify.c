/* ztserve verify: checks every rule and digest of each file, also of those below folders, and
 * prints one line per file, or JSON.
 *
 * A violation makes the file bad; what cannot be judged, and harmless irregularities, are only
 * reported. */
#include <inttypes.h>
#include <string.h>

#include "client/model_source.h"
#include "commands/commands.h"
#include "commands/judgement_json.h"
#include "commands/option_reader.h"
#include "files/judgement.h"
#include "files/model_folder.h"
#include "terminal/plain_text.h"

static void print_failure(FILE *stream, const struct zt_error *error, uint32_t count)
{
    failure_write(stream, error);
    if (count > 1)
        fprintf(stream, " (and %" PRIu32 " more)", count - 1);
}

static void print_path(FILE *stream, const char *path, const char *verdict)
{
    plain_text_write(stream, path, strlen(path));
    fprintf(stream, ": %s", verdict);
}

static int print_bad(const char *path, const struct zt_error *error, uint32_t count)
{
    /* Keeps the order of the files if both streams go to the same place. */
    fflush(stdout);
    print_path(stderr, path, "bad: ");
    print_failure(stderr, error, count);
    fputc('\n', stderr);
    return EXIT_BAD;
}

static void print_count(uint32_t count, const char *noun)
{
    printf(", %" PRIu32 " %s%s", count, noun, count == 1 ? "" : "s");
}

static void print_more(uint64_t count)
{
    if (count > 1)
        printf(" (and %" PRIu64 " more)", count - 1);
}

static void print_part(const struct zt_shard *part)
{
    if (part == NULL)
        return;
    fputs(" of ", stdout);
    plain_text_write(stdout, part->name, part->name_length);
}

static void print_gaps(const struct judged_gaps *gaps)
{
    if (gaps->unreferenced > 0) {
        printf("; unreferenced: %" PRIu64 " byte%s at %" PRIu64, gaps->first_length,
               gaps->first_length == 1 ? "" : "s", gaps->first_offset);
        print_part(gaps->first_part);
        print_more(gaps->unreferenced);
    }
    if (gaps->dirty > 0) {
        printf("; padding: not zero at %" PRIu64, gaps->first_dirty_at);
        print_part(gaps->first_dirty_part);
        print_more(gaps->dirty);
    }
}

/* A split GGUF's own file is a part too. */
static uint32_t part_count(const struct zt_model *model)
{
    return model->shard_count + (model->format == ZT_FORMAT_GGUF);
}

static bool states_no_digest(const struct judgement *judgement)
{
    return judgement->file.model->component_count > 0 &&
           judgement->undigested == judgement->file.model->component_count;
}

static void print_kind(const struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;

    model_kind_write(stdout, model);
    print_count(model->object_count, "object");
    print_count(model->component_count, "component");
    if (opened_file_is_joined(&judgement->file))
        print_count(part_count(model), "part");
}

static void print_ok(const struct judgement *judgement)
{
    print_path(stdout, judgement->path, "ok (");
    print_kind(judgement);
    if (states_no_digest(judgement))
        printf("; the file states no digests, so its bytes cannot be verified)");
    else if (judgement->file.model->component_count == 0)
        putchar(')');
    else
        printf(", %" PRIu32 " verified, %" PRIu32 " without digest)", judgement->verified,
               judgement->undigested);
    if (judgement->unsupported > 0) {
        fputs("; unsupported: ", stdout);
        print_failure(stdout, &judgement->first_unsupported, judgement->unsupported);
    }
    print_gaps(&judgement->gaps);
    if (judgement->differing_size_bytes > 0)
        printf("; total_size: the index states %" PRIu64 " bytes, the tensors have %" PRIu64,
               judgement->file.total_size_bytes, judgement->differing_size_bytes);
    fputc('\n', stdout);
}

/* --- one file --- */

/* The arguments and the progress. */
struct request {
    int count; /* of files and folders */
    char **paths;
    bool canonical;
    bool allows_missing;
    bool as_json;
    struct reporting reporting;
    struct progress_line line;
    bool as_array;  /* JSON of several files, or of a folder */
    bool has_items; /* of the array, already printed */
};

static bool advance(void *context, uint64_t bytes)
{
    struct request *request = context;

    progress_line_advance(&request->line, bytes);
    return true;
}

static void print_json(struct request *request, const struct judgement *judgement,
                       const struct zt_error *error)
{
    if (request->has_items)
        puts(",");
    request->has_items = true;
    judgement_print_json(judgement, error, stdout);
}

static int show_unopened(struct request *request, const char *path, const struct zt_error *error)
{
    const struct judgement judgement = {.path = path};
    const bool is_shard = error->status == ZT_DATA_SHARD;

    if (request->as_json)
        print_json(request, &judgement, error);
    else if (is_shard && !request->reporting.is_quiet)
        print_path(stdout, path,
                   "ok (data shard of a zTensor 2 model: it has no manifest; the model states its "
                   "digests)\n");
    return is_shard ? EXIT_DONE : print_bad(path, error, 1);
}

static int show(struct request *request, const struct judgement *judgement)
{
    const bool is_bad = judgement->bad > 0;

    if (request->as_json)
        print_json(request, judgement, is_bad ? &judgement->first_bad : NULL);
    else if (!is_bad && !request->reporting.is_quiet)
        print_ok(judgement);
    return is_bad ? print_bad(judgement->path, &judgement->first_bad, judgement->bad) : EXIT_DONE;
}

static int verify_opened(struct request *request, struct judgement *judgement)
{
    const struct zt_progress progress = {advance, request};
    int result;

    judgement->progress = &progress;
    progress_line_start(&request->line, reporting_progress(&request->reporting), "verifying",
                        judgement_work(judgement->file.model));
    request->line.name = judgement->path;
    judgement_make(judgement, request->canonical);
    progress_line_end(&request->line);
    result = show(request, judgement);
    opened_file_close(&judgement->file);
    return result;
}

/* file: where the path was found in a folder; otherwise NULL. */
static int verify_file(struct request *request, const char *path, const struct folder_model *file)
{
    struct judgement judgement = {.path = path, .allows_missing = request->allows_missing};
    struct zt_error error;
    const enum zt_status status = opened_file_open(path, &judgement.file, &error);

    if (status == ZT_OK)
        return verify_opened(request, &judgement);
    if (file != NULL && status != ZT_DATA_SHARD && folder_model_is_hidden(file, &error))
        return EXIT_DONE;
    return show_unopened(request, path, &error);
}

/* --- folders --- */

/* Unchecked files must not look checked. */
static void print_left_out(const char *path, const struct model_folder *folder)
{
    if (folder->misnamed_files + folder->shadowed == 0)
        return;
    print_path(stdout, path, "not checked:");
    if (folder->shadowed > 0)
        printf(" %zu file%s hidden by another of the same name", folder->shadowed,
               folder->shadowed == 1 ? "" : "s");
    if (folder->misnamed_files > 0)
        printf("%s %zu file%s whose name%s cannot be served", folder->shadowed > 0 ? "," : "",
               folder->misnamed_files, folder->misnamed_files == 1 ? "" : "s",
               folder->misnamed_files == 1 ? "" : "s");
    puts(" (to check a file, give its path)");
}

static int verify_folder(struct request *request, const char *path)
{
    struct model_folder folder;
    struct zt_error error;
    int result = EXIT_DONE;

    if (model_folder_list(path, &folder, &error) != ZT_OK)
        return print_bad(path, &error, 1);
    for (size_t i = 0; i < folder.count; i++) {
        const int status = verify_file(request, folder.files[i].path, &folder.files[i]);

        result = status != EXIT_DONE ? status : result;
    }
    if (folder.count == 0 && !request->as_json && !request->reporting.is_quiet)
        print_path(stdout, path, "ok (a folder without models)\n");
    if (!request->as_json && !request->reporting.is_quiet)
        print_left_out(path, &folder);
    model_folder_free(&folder);
    return result;
}

/* --- the whole --- */

static int read_arguments(int argc, char **argv, struct request *request)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;

    request->paths = argv + 1;
    while ((found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (option_reader_is(&reader, "--canonical"))
            request->canonical = true;
        else if (option_reader_is(&reader, "--allow-missing"))
            request->allows_missing = true;
        else if (option_reader_is(&reader, "--json"))
            request->as_json = true;
        else if (found == OPTION_OPERAND)
            request->paths[request->count++] = reader.value;
        else if (!server_option_take(model_source_options(), &reader))
            reporting_take(&request->reporting, &reader);
    if (request->count == 0)
        return command_usage("verify needs a file, a folder or a URL");
    if (operands_check(request->paths, request->count) != EXIT_DONE)
        return EXIT_USAGE;
    request->as_array = request->as_json && (request->count > 1 || is_folder(request->paths[0]));
    return server_options_check(model_source_options());
}

int command_verify(int argc, char **argv)
{
    struct request request = {.count = 0};
    int result = read_arguments(argc, argv, &request);

    if (result != EXIT_DONE)
        return result;
    zt_source_allow_mapped();
    if (request.as_array)
        puts("[");
    for (int i = 0; i < request.count; i++) {
        char *path = request.paths[i];
        const int status =
            is_folder(path) ? verify_folder(&request, path) : verify_file(&request, path, NULL);

        result = status != EXIT_DONE ? status : result;
    }
    if (request.as_array)
        puts("]");
    return command_finish(result);
}
