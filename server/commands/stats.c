/* ztserve stats: statistics of every tensor of each file, also of those below folders, as a table
 * or as the JSON that the server sends. A server computes them for its models. Digests are not
 * checked. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/processors.h"
#include "client/model_source.h"
#include "client/remote_statistics.h"
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
/* Tensors that threads take one each of. */
#define BATCH 64
/* A larger tensor uses all threads alone, because decoding needs memory for each tensor. */
#define SMALL_BYTES ((uint64_t)16 << 20)

/* The progress line counts the stored bytes of components. */
struct survey_progress {
    struct progress_line line;
    pthread_mutex_t lock; /* threads advance the line */
};

/* A tensor and its statistics. */
struct subject {
    const struct zt_object *object;
    const struct zt_component *component; /* NULL: it has no statistics */
    struct zt_source *stored;
    struct survey_progress *progress;
    uint64_t bytes_left;  /* of the component */
    uint64_t piece_bytes; /* of it for a piece in one of the two passes */
    enum zt_status status;
    struct zt_error error;
    struct statistics statistics;
    char *text;               /* the server's statistics, in JSON; NULL: computed here */
    struct zt_error fallback; /* why the server did not compute them; ZT_OK: nothing to say */
};

struct survey {
    int count; /* of files and folders */
    char **paths;
    bool as_json;
    struct reporting reporting;
    const char *path; /* of the file at work on */
    struct opened_file file;
    struct remote_statistics remote;
    struct workers *workers;  /* NULL: this thread alone */
    struct subject *subjects; /* BATCH of them */
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

/* Finds the component of an object to read. Not for several threads: it opens shards. */
static void prepare(struct survey *survey, const struct zt_object *object, struct subject *subject)
{
    struct opened_file *file = &survey->file;
    const struct zt_component *component = find_elements(file->model, object);

    assert(component == NULL || component->shard <= file->model->shard_count);
    subject->object = object;
    subject->component = component;
    subject->stored = file->source;
    subject->progress = &survey->progress;
    subject->bytes_left = component != NULL ? component->length : 0;
    subject->status = ZT_OK;
    subject->text = NULL;
    zt_error_clear(&subject->fallback);
    if (component == NULL || component->shard == 0)
        return;
    subject->status = opened_file_shard(file, survey->path, component->shard - 1, &subject->error);
    if (subject->status == ZT_OK)
        subject->stored = file->shards[component->shard - 1];
}

static void advance(struct subject *subject, uint64_t bytes)
{
    pthread_mutex_lock(&subject->progress->lock);
    if (bytes > subject->bytes_left)
        bytes = subject->bytes_left;
    assert(bytes <= subject->bytes_left);
    subject->bytes_left -= bytes;
    progress_line_advance(&subject->progress->line, bytes);
    pthread_mutex_unlock(&subject->progress->lock);
}

/* Called before each piece of either pass. */
static bool begin_piece(void *context)
{
    struct subject *subject = context;

    advance(subject, subject->piece_bytes);
    return true;
}

/* Returns true if a server has computed the statistics. */
static bool ask_server(struct survey *survey, struct subject *subject, unsigned bins)
{
    const struct remote_tensor tensor = {survey->file.model, subject->object, subject->component,
                                         bins};

    return remote_statistics_ask(&survey->remote, &tensor, &subject->statistics, &subject->text,
                                 &subject->fallback);
}

/* workers: NULL for this thread alone. */
static void compute(struct survey *survey, struct subject *subject, struct workers *workers)
{
    const unsigned bins = survey->as_json ? JSON_BINS : STATISTICS_TABLE_BINS;
    struct computing computing = {.workers = workers, .cancellation = {begin_piece, subject}};
    struct zt_stored_tensor stored = {survey->file.model, subject->object, subject->component, NULL,
                                      0};
    struct decoded_file decoded = {.source = NULL};
    struct zt_elements elements;

    if (subject->component == NULL || subject->status != ZT_OK || ask_server(survey, subject, bins))
        return;
    subject->status =
        decoded_file_open(subject->component, subject->stored, &decoded, &subject->error);
    if (subject->status != ZT_OK)
        return;
    if (decoded.is_sequential)
        computing.workers = NULL;
    stored.decoded = decoded.source;
    stored.base = decoded.base;
    subject->status = zt_elements_open(&stored, NULL, &elements, &subject->error);
    if (subject->status == ZT_OK) {
        subject->piece_bytes = subject->bytes_left / (2 * zt_elements_pieces(&elements) + 1) + 1;
        subject->status =
            statistics_compute(&elements, bins, &computing, &subject->statistics, &subject->error);
        zt_elements_close(&elements);
    }
    decoded_file_close(&decoded);
}

static bool compute_alone(void *context, uint32_t index)
{
    struct survey *survey = context;
    struct subject *subject = &survey->subjects[index];

    compute(survey, subject, NULL);
    advance(subject, subject->bytes_left);
    return true;
}

static bool is_small(const struct zt_model *model, const struct zt_object *object)
{
    return zt_object_elements(model, object) <= SMALL_BYTES / sizeof(double);
}

/* Tensors from the first one on, side by side if they are small. Returns how many. */
static uint32_t compute_some(struct survey *survey, uint32_t first)
{
    const struct zt_model *model = survey->file.model;
    struct subject *subjects = survey->subjects;
    struct parallel_work work = {.run = compute_alone, .context = survey};

    assert(first < model->object_count);
    while (first + work.count < model->object_count && work.count < BATCH &&
           is_small(model, &model->objects[first + work.count])) {
        prepare(survey, &model->objects[first + work.count], &subjects[work.count]);
        work.count++;
    }
    if (work.count > 0) {
        parallel_for(survey->workers, &work);
        return work.count;
    }
    prepare(survey, &model->objects[first], &subjects[0]);
    compute(survey, &subjects[0], survey->workers);
    advance(&subjects[0], subjects[0].bytes_left);
    return 1;
}

/* Keeps the output in order if both streams go to the same place. */
static int complain(struct survey *survey, const char *path, const struct zt_error *error)
{
    progress_line_erase(&survey->progress.line);
    fflush(stdout);
    return failure_complain(path, error);
}

/* Says why a tensor has to be fetched. */
static void say_fallback(struct survey *survey, const struct subject *subject)
{
    const struct zt_text name = zt_object_name(subject->object);

    if (subject->fallback.status == ZT_OK || survey->reporting.is_quiet)
        return;
    progress_line_erase(&survey->progress.line);
    fflush(stdout);
    command_complain("%s: %.*s: the server has not computed statistics, so the tensor is fetched: "
                     "%s",
                     survey->path, (int)name.length, name.bytes, subject->fallback.message);
}

static void write_statistics(struct survey *survey, const struct subject *subject,
                             const struct statistics_subject *shown)
{
    size_t length = subject->text != NULL ? strlen(subject->text) : 0;

    /* A JSON object, perhaps in several lines. */
    while (length > 0 && subject->text[length - 1] == '\n')
        length--;
    if (length > 0)
        json_raw(&survey->json, subject->text, length);
    else
        statistics_write(&survey->json, shown, &subject->statistics);
}

/* What cannot be read is complained about, and shown without statistics. */
static int show(struct survey *survey, struct subject *subject)
{
    const struct zt_model *model = survey->file.model;
    const struct zt_object *object = subject->object;
    const struct zt_component *component = subject->component;
    const struct statistics_subject shown = {model, object, component, NULL};
    int result = EXIT_DONE;

    say_fallback(survey, subject);
    if (component != NULL && subject->status != ZT_OK) {
        zt_error_at(&subject->error, zt_object_name(object), zt_component_name(component));
        result = complain(survey, survey->path, &subject->error);
        component = NULL;
    }
    if (!survey->as_json) {
        progress_line_erase(&survey->progress.line);
        statistics_table_row(&survey->table, model, object,
                             component != NULL ? &subject->statistics : NULL);
        return result;
    }
    json_key(&survey->json, zt_object_name(object));
    if (component != NULL)
        write_statistics(survey, subject, &shown);
    else
        json_put_null(&survey->json);
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
    uint32_t done = 0;

    progress_line_start(line, reporting_progress(&survey->reporting), "reading", work_of(model));
    line->name = survey->path;
    while (done < model->object_count) {
        const uint32_t count = compute_some(survey, done);

        for (uint32_t i = 0; i < count; i++)
            if (show(survey, &survey->subjects[i]) != EXIT_DONE)
                result = EXIT_BAD;
        for (uint32_t i = 0; i < count; i++)
            free(survey->subjects[i].text);
        done += count;
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

/* Only the models of a model server have statistics there. */
static void say_remote(const struct survey *survey)
{
    if (web_address_is_meant(survey->path) && survey->remote.client == NULL &&
        !survey->reporting.is_quiet)
        command_complain(
            "%s: this is the URL of a file, not of a model, so its tensors are fetched",
            survey->path);
}

/* file: where the path was found in a folder; otherwise NULL. */
static int survey_file(struct survey *survey, const char *path, const struct folder_model *file)
{
    struct zt_error error;
    int result;

    survey->path = path;
    if (opened_file_open(path, &survey->file, &error) != ZT_OK) {
        if (file != NULL && folder_model_is_hidden(file, &error))
            return EXIT_DONE;
        if (survey->as_json)
            json_put_null(&survey->json);
        return complain(survey, path, &error);
    }
    remote_statistics_begin(&survey->remote, path);
    say_remote(survey);
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

    survey->subjects = calloc(BATCH, sizeof(*survey->subjects));
    if (survey->subjects == NULL) {
        command_complain("out of memory");
        return EXIT_BAD;
    }
    zt_source_allow_mapped();
    pthread_mutex_init(&survey->progress.lock, NULL);
    survey->workers = processors_count() > 1 ? workers_start(0) : NULL;
    result = survey->as_json ? survey_as_json(survey) : survey_paths(survey);
    workers_stop(survey->workers);
    pthread_mutex_destroy(&survey->progress.lock);
    free(survey->subjects);
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
        else if (!server_option_take(model_source_options(), &reader))
            reporting_take(&survey.reporting, &reader);
    if (survey.count == 0)
        return command_usage("stats needs a file, a folder or a URL");
    if (server_options_check(model_source_options()) != EXIT_DONE ||
        operands_check(survey.paths, (int)survey.count) != EXIT_DONE)
        return EXIT_USAGE;
    survey.has_headings = survey.count > 1 || is_folder(survey.paths[0]);
    return survey_all(&survey);
}
