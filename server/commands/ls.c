/* ztserve ls: shows the contents of a file as a table, or as the JSON manifest that the server
 * sends. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/listing.h"
#include "commands/opened_file.h"
#include "commands/option_reader.h"
#include "commands/part_files.h"
#include "derived/manifest_json.h"

static int64_t modified_ns(const struct zt_source *source)
{
    struct stat status;

    if (fstat(zt_source_descriptor(source), &status) != 0)
        return 0;
    return (int64_t)status.st_mtim.tv_sec * CLOCK_NS_PER_S + status.st_mtim.tv_nsec;
}

static bool is_joined(const struct zt_model *model)
{
    return model->shard_count > 0 && model->shards[0].kind == ZT_SHARD_PART;
}

/* Of a model in several files: of all parts together, as the server tells it. */
static uint64_t size_of(const struct opened_file *file, const char *path)
{
    const struct zt_model *model = file->model;
    const bool has_index = index_extension_length(zt_text_from(path)) > 0;
    uint64_t bytes = is_joined(model) && has_index ? 0 : model->file_size;

    for (uint32_t i = 0; is_joined(model) && i < model->shard_count; i++)
        bytes += model->shards[i].size_bytes;
    return bytes;
}

static int print_json(const struct opened_file *file, const char *path)
{
    struct json json;
    const struct manifest_source source = {.name = opened_file_name(file, path),
                                           .modified_ns = modified_ns(file->source),
                                           .is_joined = is_joined(file->model),
                                           .size_bytes = size_of(file, path)};
    int status;

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

static int list(const char *path, bool as_json)
{
    struct opened_file file;
    struct zt_error error;
    int status;

    if (opened_file_open(path, &file, &error) != ZT_OK)
        return failure_complain(path, &error);
    status = EXIT_DONE;
    if (as_json)
        status = print_json(&file, path);
    else
        listing_print(file.model, size_of(&file, path), stdout);
    opened_file_close(&file);
    return command_finish(status);
}

int command_ls(int argc, char **argv)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;
    const char *path = NULL;
    bool as_json = false;

    while ((found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_NAMED)
            as_json = true;
        else if (path != NULL)
            return command_usage("ls takes one file");
        else
            path = reader.value;
    return path != NULL ? list(path, as_json) : command_usage("ls needs a file");
}
