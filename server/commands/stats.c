/* ztserve stats: statistics of every tensor of each file, as a table or as the JSON that the server
 * sends. Digests are not checked. */
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "commands/commands.h"
#include "commands/option_reader.h"
#include "commands/statistics_table.h"
#include "files/decoded_file.h"
#include "files/opened_file.h"
#include "numbers/statistics_json.h"
#include "terminal/plain_text.h"

/* As the server's default. */
#define JSON_BINS 64

struct survey {
    const char *path;
    struct opened_file file;
    struct workers *workers;       /* NULL: this thread alone */
    struct statistics *statistics; /* of the tensor at work on */
    struct json *json;             /* NULL: a table */
    struct statistics_table table;
};

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

static enum zt_status compute(struct survey *survey, const struct zt_object *object,
                              const struct zt_component *component, struct zt_error *error)
{
    struct opened_file *file = &survey->file;
    const unsigned bins = survey->json != NULL ? JSON_BINS : STATISTICS_TABLE_BINS;
    struct computing computing = {.workers = survey->workers};
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

    if (survey->json == NULL) {
        statistics_table_row(&survey->table, survey->file.model, object,
                             component != NULL ? survey->statistics : NULL);
        return;
    }
    json_key(survey->json, zt_object_name(object));
    if (component != NULL)
        statistics_write(survey->json, &subject, survey->statistics);
    else
        json_put_null(survey->json);
}

/* One tensor. What cannot be read is complained about, and shown without statistics. */
static int survey_object(struct survey *survey, const struct zt_object *object)
{
    const struct zt_component *component = find_elements(survey->file.model, object);
    struct zt_error error;
    int result = EXIT_DONE;

    if (component != NULL && compute(survey, object, component, &error) != ZT_OK) {
        fflush(stdout);
        zt_error_at(&error, zt_object_name(object), zt_component_name(component));
        result = failure_complain(survey->path, &error);
        component = NULL;
    }
    show(survey, object, component);
    return result;
}

static int survey_file(struct survey *survey)
{
    struct zt_error error;
    int result = EXIT_DONE;

    if (opened_file_open(survey->path, &survey->file, &error) != ZT_OK) {
        if (survey->json != NULL)
            json_put_null(survey->json);
        return failure_complain(survey->path, &error);
    }
    if (survey->json != NULL)
        json_object_begin(survey->json);
    else
        statistics_table_begin(&survey->table, survey->file.model, stdout);
    for (uint32_t i = 0; i < survey->file.model->object_count; i++) {
        const int status = survey_object(survey, &survey->file.model->objects[i]);

        result = status != EXIT_DONE ? status : result;
    }
    if (survey->json != NULL)
        json_object_end(survey->json);
    opened_file_close(&survey->file);
    return result;
}

/* An array for several files. */
static int survey_as_json(struct survey *survey, char **paths, int count)
{
    struct json json;
    int result = EXIT_DONE;

    json_init(&json, false);
    survey->json = &json;
    if (count > 1)
        json_array_begin(&json);
    for (int i = 0; i < count; i++) {
        int status;

        survey->path = paths[i];
        status = survey_file(survey);
        result = status != EXIT_DONE ? status : result;
    }
    if (count > 1)
        json_array_end(&json);
    if (json.failed) {
        command_complain("out of memory");
    } else {
        fwrite(json.text, 1, json.length, stdout);
        /* The null of a single file that cannot be read. */
        if (json.length > 0 && json.text[json.length - 1] != '\n')
            putchar('\n');
    }
    result = json.failed ? EXIT_BAD : result;
    json_free(&json);
    return result;
}

static void print_heading(const char *path, bool is_next)
{
    fputs(is_next ? "\n" : "", stdout);
    plain_text_write(stdout, path, strlen(path));
    fputs(":\n", stdout);
}

static int survey_as_tables(struct survey *survey, char **paths, int count)
{
    int result = EXIT_DONE;

    for (int i = 0; i < count; i++) {
        int status;

        survey->path = paths[i];
        if (count > 1)
            print_heading(paths[i], i > 0);
        status = survey_file(survey);
        result = status != EXIT_DONE ? status : result;
    }
    return result;
}

static int survey_all(char **paths, int count, bool as_json)
{
    struct survey survey = {.statistics = malloc(sizeof(*survey.statistics))};
    int result;

    if (survey.statistics == NULL) {
        command_complain("out of memory");
        return EXIT_BAD;
    }
    zt_source_allow_mapped();
    survey.workers = processors_count() > 1 ? workers_start(0) : NULL;
    result =
        as_json ? survey_as_json(&survey, paths, count) : survey_as_tables(&survey, paths, count);
    workers_stop(survey.workers);
    free(survey.statistics);
    return command_finish(result);
}

int command_stats(int argc, char **argv)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;
    bool as_json = false;
    int files = 0;

    while ((found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_NAMED)
            as_json = true;
        else
            argv[1 + files++] = reader.value;
    return files > 0 ? survey_all(argv + 1, files, as_json) : command_usage("stats needs a file");
}
