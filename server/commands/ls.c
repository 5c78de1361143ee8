/* ztserve ls: shows the contents of files as tables, or as the JSON manifest that the server sends,
 * and the models below folders. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "client/model_listing.h"
#include "client/model_source.h"
#include "commands/attribute_listing.h"
#include "commands/commands.h"
#include "commands/folder_listing.h"
#include "commands/listing.h"
#include "commands/option_reader.h"
#include "derived/manifest_json.h"
#include "files/model_folder.h"
#include "files/opened_file.h"
#include "terminal/plain_text.h"

/* The arguments. */
struct request {
    int count; /* of files and folders */
    char **paths;
    bool as_json;
    bool only_names;
    bool as_array;  /* JSON of several files, or of a folder */
    bool has_items; /* of the array, already printed */
};

/* --- one file --- */

static int print_manifest(const struct opened_file *file, const char *path)
{
    struct json json;
    struct manifest_source source = {.name = opened_file_name(file, path),
                                     .is_joined = opened_file_is_joined(file),
                                     .size_bytes = opened_file_size(file, path)};
    int status;

    source.is_undated = !opened_file_modified_ns(file, &source.modified_ns);
    json_init(&json, true);
    manifest_write(&json, file->model, &source, NULL);
    status = json.failed ? EXIT_BAD : EXIT_DONE;
    if (json.failed)
        command_complain("%s: out of memory", path);
    else
        fwrite(json.text, 1, json.length, stdout);
    json_free(&json);
    return status;
}

static void print_names(const struct zt_model *model)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        plain_text_write(stdout, model->objects[i].name, model->objects[i].name_length);
        putchar('\n');
    }
}

static void print_table(const struct request *request, const struct opened_file *file,
                        const char *path)
{
    if (request->count > 1) {
        plain_text_write(stdout, path, strlen(path));
        puts(":");
    }
    listing_print(file->model, stdout);
    attribute_listing_print(file->model, stdout);
    listing_print_totals(file->model, opened_file_size(file, path), stdout);
}

static void begin_item(struct request *request)
{
    if (request->as_array && request->has_items)
        puts(",");
    else if (request->count > 1 && request->has_items && !request->only_names)
        putchar('\n');
    request->has_items = true;
}

static int list_file(struct request *request, const char *path)
{
    struct opened_file file;
    struct zt_error error;
    int status = EXIT_DONE;

    if (opened_file_open(path, &file, &error) != ZT_OK) {
        fflush(stdout);
        return failure_complain(path, &error);
    }
    begin_item(request);
    if (request->as_json)
        status = print_manifest(&file, path);
    else if (request->only_names)
        print_names(file.model);
    else
        print_table(request, &file, path);
    opened_file_close(&file);
    return status;
}

/* --- a folder --- */

static int list_folder(struct request *request, const char *path)
{
    struct folder_listing listing;
    struct zt_error error;
    int status;

    if ((model_listing_is_meant(path) ? folder_listing_fetch(path, &listing, &error)
                                      : folder_listing_make(path, &listing, &error)) != ZT_OK) {
        fflush(stdout);
        return failure_complain(path, &error);
    }
    if (listing.count > 0 || !request->as_json)
        begin_item(request);
    if (request->count > 1 && !request->as_json && !request->only_names) {
        plain_text_write(stdout, path, strlen(path));
        puts(":");
    }
    if (request->as_json)
        folder_listing_print_json(&listing, stdout);
    else if (request->only_names)
        folder_listing_print_names(&listing, stdout);
    else
        folder_listing_print(&listing, stdout);
    status = listing.bad > 0 ? EXIT_BAD : EXIT_DONE;
    folder_listing_free(&listing);
    return status;
}

static bool is_of_models(const char *path)
{
    return is_folder(path) || model_listing_is_meant(path);
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
        else if (option_reader_is(&reader, "--json"))
            request->as_json = true;
        else if (option_reader_is(&reader, "--quiet"))
            request->only_names = true;
        else if (option_reader_is(&reader, "--progress"))
            continue; /* there is none */
        else if (!server_option_take(model_source_options(), &reader))
            request->paths[request->count++] = reader.value;
    if (request->count == 0)
        return command_usage("ls needs a file, a folder or a URL");
    if (request->as_json && request->only_names)
        return command_usage("--json and --quiet cannot be combined");
    for (int i = 0; i < request->count; i++)
        if (!model_listing_is_meant(request->paths[i]) &&
            operands_check(&request->paths[i], 1) != EXIT_DONE)
            return EXIT_USAGE;
    request->as_array = request->as_json && (request->count > 1 || is_of_models(request->paths[0]));
    return server_options_check(model_source_options());
}

int command_ls(int argc, char **argv)
{
    struct request request = {.count = 0};
    int result = read_arguments(argc, argv, &request);

    if (result != EXIT_DONE)
        return result;
    if (request.as_array)
        puts("[");
    for (int i = 0; i < request.count; i++) {
        const char *path = request.paths[i];
        const int status =
            is_of_models(path) ? list_folder(&request, path) : list_file(&request, path);

        result = status != EXIT_DONE ? status : result;
    }
    if (request.as_array)
        puts("]");
    return command_finish(result);
}
