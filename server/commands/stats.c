/* ztserve stats: statistics of every tensor of each file, also of those below folders, as a table
 * or as the JSON that the server sends. Digests are not checked. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "client/model_source.h"
#include "commands/commands.h"
#include "commands/option_reader.h"
#include "commands/statistics_table.h"
#include "files/decoded_file.h"
#include "files/model_folder.h"
#include "files/opened_file.h"
#include "numbers/statistics_json.h"
#include "terminal/plain_text.h"

/* As the server's default. */
#define JSON_BINS 64

/* The line of progress counts the bytes of components as they are stored. */
struct survey_progress {
    struct progress_line line;
    pthread_mutex_t lock; /* threads advance the line */
    uint64_t bytes_left;  /* of the component at work on */
    uint64_t piece_bytes; /* of it for a piece in one of the two passes */
};

struct survey {
    int count; /* of files and folders */
    char **paths;
    bool as_json;
    struct reporting reporting;
    const char *path; /* of the file at work on */
    struct opened_file file;
    struct workers *workers;       /* NULL: this thread alone */
    struct statistics *statistics; /* of the tensor at work on */
    struct survey_progress progress;
    struct json json; /* empty for tables */
    struct statistics_table table;
    bool has_headings; /* there are several files */
    bool has_tables;   /* one has been printed */
};

/* --- one tensor --- */

/* The component that has the elements; NULL if the object has no statistics. */
static const struct zt_component *find_elements(const struct zt_model *model,
                                                const struct zt_object *object)
{
    const struct zt_component *components = zt_object_components(model, object);
    struct zt_slice_tensor tensor;

    for (uint32_t i = 0; i < object->component_count; i++)
        if (components[i].encoding != ZT_ENCODING_UNKNOWN &&
            zt_elements_tensor(model, object, &components[i], &tensor))
            return &components[i];
    return NULL;
}

static enum zt_status open_shard(struct survey *survey, const struct zt_component *component,
                                 struct zt_error *error)
{
    return component->shard > 0
               ? opened_file_shard(&survey->file, survey->path, component->shard - 1, error)
               : ZT_OK;
}

static void advance(struct survey_progress *progress, uint64_t bytes)
{
    if (bytes > progress->bytes_left)
        bytes = progress->bytes_left;
    progress->bytes_left -= bytes;
    progress_line_advance(&progress->line, bytes);
}

/* Called before each piece of either pass. */
static bool begin_piece(void *context)
{
    struct survey_progress *progress = context;

    pthread_mutex_lock(&progress->lock);
    advance(progress, progress->piece_bytes);
    pthread_mutex_unlock(&progress->lock);
    return true;
}

static enum zt_status compute(struct survey *survey, const struct zt_object *object,
                              const struct zt_component *component, struct zt_error *error)
{
    struct opened_file *file = &survey->file;
    const unsigned bins = survey->as_json ? JSON_BINS : STATISTICS_TABLE_BINS;
    struct survey_progress *progress = &survey->progress;
    struct computing computing = {survey->workers, begin_piece, progress};
    struct decoded_file decoded = {.source = NULL};
    struct zt_elements elements;
    enum zt_status status = open_shard(survey, component, error);

    if (status == ZT_OK)
        status = decoded_file_open(
            component, component->shard > 0 ? file->shards[component->shard - 1] : file->source,
            &decoded, error);
    if (status != ZT_OK)
        return status;
    if (decoded.is_sequential)
        computing.workers = NULL;
    status = zt_elements_open(file->model, object, component, decoded.source, decoded.base, NULL,
                              &elements, error);
    if (status == ZT_OK) {
        progress->piece_bytes = progress->bytes_left / (2 * zt_elements_pieces(&elements) + 1) + 1;
        status = statistics_compute(&elements, bins, &computing, survey->statistics, error);
        zt_elements_close(&elements);
    }
    decoded_file_close(&decoded);
    return status;
}

static void show(struct survey *survey, const struct zt_object *object,
                 const struct zt_component *component)
{
    const struct statistics_subject subject = {survey->file.model, object, component, NULL};

    if (!survey->as_json) {
        progress_line_erase(&survey->progress.line);
        statistics_table_row(&survey->table, survey->file.model, object,
                             component != NULL ? survey->statistics : NULL);
        return;
    }
    json_key(&survey->json, zt_object_name(object));
    if (component != NULL)
        statistics_write(&survey->json, &subject, survey->statistics);
    else
        json_put_null(&survey->json);
}

/* Keeps the order of what is printed if both streams go to the same place. */
static int complain(struct survey *survey, const char *path, const struct zt_error *error)
{
    progress_line_erase(&survey->progress.line);
    fflush(stdout);
    return failure_complain(path, error);
}

/* One tensor. What cannot be read is complained about, and shown without statistics. */
static int survey_object(struct survey *survey, const struct zt_object *object)
{
    const struct zt_component *component = find_elements(survey->file.model, object);
    struct zt_error error;
    int result = EXIT_DONE;

    survey->progress.bytes_left = component != NULL ? component->length : 0;
    if (component != NULL && compute(survey, object, component, &error) != ZT_OK) {
        zt_error_at(&error, zt_object_name(object), zt_component_name(component));
        result = complain(survey, survey->path, &error);
        component = NULL;
    }
    advance(&survey->progress, survey->progress.bytes_left);
    show(survey, object, component);
    return result;
}

/* --- one file --- */

static uint64_t work_of(const struct zt_model *model)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_component *component = find_elements(model, &model->objects[i]);

        bytes += component != NULL ? component->length : 0;
    }
    return bytes;
}

static int survey_model(struct survey *survey)
{
    const struct zt_model *model = survey->file.model;
    struct progress_line *line = &survey->progress.line;
    int result = EXIT_DONE;

    progress_line_start(line, reporting_progress(&survey->reporting), "reading", work_of(model));
    line->name = survey->path;
    for (uint32_t i = 0; i < model->object_count; i++) {
        const int status = survey_object(survey, &model->objects[i]);

        result = status != EXIT_DONE ? status : result;
    }
    progress_line_end(line);
    return result;
}

static void print_heading(struct survey *survey)
{
    if (!survey->has_headings)
        return;
    fputs(survey->has_tables ? "\n" : "", stdout);
    survey->has_tables = true;
    plain_text_write(stdout, survey->path, strlen(survey->path));
    fputs(":\n", stdout);
}

/* file: where the path was found in a folder; otherwise NULL. */
static int survey_file(struct survey *survey, const char *path, const struct model_file *file)
{
    struct zt_error error;
    int result;

    survey->path = path;
    if (opened_file_open(path, &survey->file, &error) != ZT_OK) {
        if (file != NULL && model_file_is_hidden(file, &error))
            return EXIT_DONE;
        if (survey->as_json)
            json_put_null(&survey->json);
        return complain(survey, path, &error);
    }
    if (survey->as_json) {
        json_object_begin(&survey->json);
    } else {
        print_heading(survey);
        statistics_table_begin(&survey->table, survey->file.model, stdout);
    }
    result = survey_model(survey);
    if (survey->as_json)
        json_object_end(&survey->json);
    opened_file_close(&survey->file);
    return result;
}

/* --- folders, and the whole --- */

static int survey_folder(struct survey *survey, const char *path)
{
    struct model_folder folder;
    struct zt_error error;
    int result = EXIT_DONE;

    if (model_folder_list(path, &folder, &error) != ZT_OK)
        return complain(survey, path, &error);
    for (size_t i = 0; i < folder.count; i++) {
        const int status = survey_file(survey, folder.files[i].path, &folder.files[i]);

        result = status != EXIT_DONE ? status : result;
    }
    model_folder_free(&folder);
    return result;
}

static int survey_paths(struct survey *survey)
{
    int result = EXIT_DONE;

    for (int i = 0; i < survey->count; i++) {
        const char *path = survey->paths[i];
        const int status =
            is_folder(path) ? survey_folder(survey, path) : survey_file(survey, path, NULL);

        result = status != EXIT_DONE ? status : result;
    }
    return result;
}

/* An array for several files, or a folder. */
static int survey_as_json(struct survey *survey)
{
    struct json *json = &survey->json;
    int result;

    json_init(json, false);
    if (survey->has_headings)
        json_array_begin(json);
    result = survey_paths(survey);
    if (survey->has_headings)
        json_array_end(json);
    if (json->failed) {
        command_complain("out of memory");
        result = EXIT_BAD;
    } else {
        fwrite(json->text, 1, json->length, stdout);
        /* The null of a single file that cannot be read. */
        if (json->length > 0 && json->text[json->length - 1] != '\n')
            putchar('\n');
    }
    json_free(json);
    return result;
}

static int survey_all(struct survey *survey)
{
    int result;

    survey->statistics = malloc(sizeof(*survey->statistics));
    if (survey->statistics == NULL) {
        command_complain("out of memory");
        return EXIT_BAD;
    }
    zt_source_allow_mapped();
    pthread_mutex_init(&survey->progress.lock, NULL);
    survey->workers = processors_count() > 1 ? workers_start(0) : NULL;
    result = survey->as_json ? survey_as_json(survey) : survey_paths(survey);
    workers_stop(survey->workers);
    pthread_mutex_destroy(&survey->progress.lock);
    free(survey->statistics);
    return command_finish(result);
}

int command_stats(int argc, char **argv)
{
    struct option_reader reader = option_reader_of(argc, argv);
    struct survey survey = {.paths = argv + 1};
    enum option_found found;

    while ((found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_OPERAND)
            survey.paths[survey.count++] = reader.value;
        else if (option_reader_is(&reader, "--json"))
            survey.as_json = true;
        else if (!server_option_take(model_source_settings(), &reader))
            reporting_take(&survey.reporting, &reader);
    if (survey.count == 0)
        return command_usage("stats needs a file, a folder or a URL");
    survey.has_headings = survey.count > 1 || is_folder(survey.paths[0]);
    return survey_all(&survey);
}
