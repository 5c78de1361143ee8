/* ztserve convert: converts a file to another format. Checks the bytes while it reads them; a
 * damaged file yields no output. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/convert_request.h"
#include "conversion/earlier_parts.h"
#include "conversion/output_file.h"
#include "conversion/parallel_conversion.h"
#include "conversion/split_output.h"
#include "files/opened_file.h"
#include "terminal/plain_text.h"
#include "terminal/progress_line.h"
#include "zt/convert.h"

/* Longer names are cut in messages. */
#define NAME_CHARACTERS_MAX ((size_t)200)

struct conversion {
    const struct conversion_request *request;
    struct opened_file file;
    struct rank_share *share;     /* NULL: the whole model is converted */
    const struct zt_model *model; /* what is converted */
    struct zt_source **files;
    struct zt_projection *projection;
    struct progress_line line;
    int64_t begun_ns;
    bool has_replaced;   /* an existing file */
    uint32_t part_count; /* of --max-shard; 0: one file was written */
};

static atomic_int stop_signal; /* read by all threads of the conversion */

static void note_signal(int number)
{
    stop_signal = number;
}

/* --- reading --- */

/* files[0] is the file of the model, the others are its shards. */
static enum zt_status open_shards(struct conversion *work, struct zt_error *error)
{
    const struct zt_model *model = work->file.model;
    enum zt_status status;

    assert(work->files == NULL);
    work->files = calloc(model->shard_count + (size_t)1, sizeof(struct zt_source *));
    if (work->files == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    work->files[0] = work->file.source;
    status = ZT_OK;
    for (uint32_t i = 0; i < model->shard_count && status == ZT_OK; i++) {
        status = opened_file_shard(&work->file, work->request->in, i, error);
        work->files[i + 1] = work->file.shards[i];
    }
    return status;
}

static bool is_partial(const struct conversion_request *request)
{
    return request->share.cut.parts > 0 || request->share.match_count > 0;
}

static bool is_wanted(void *context, uint64_t bytes)
{
    (void)context;
    (void)bytes;
    return stop_signal == 0;
}

static enum zt_status take_share(struct conversion *work, struct zt_error *error)
{
    const struct zt_progress progress = {is_wanted, NULL};
    const struct axis_set *suggestion;
    const enum zt_status status = rank_share_make(&work->file, &work->request->share, &progress,
                                                  &work->share, &suggestion, error);

    if (suggestion != NULL)
        command_suggest_axes(axis_set_name(suggestion));
    if (status != ZT_OK)
        return status;
    work->model = work->share->model;
    if (work->share->is_sequential)
        parallel_conversion_set_jobs(1);
    return ZT_OK;
}

static enum zt_status open_work(struct conversion *work, struct zt_error *error)
{
    enum zt_status status = opened_file_open(work->request->in, &work->file, error);

    if (status == ZT_IO && error->os_error == EISDIR)
        zt_fail(error, status, NULL, ZT_NO_OFFSET, "a folder: name its model file or index");
    if (status == ZT_OK)
        status = open_shards(work, error);
    work->model = work->file.model;
    if (status == ZT_OK && is_partial(work->request))
        status = take_share(work, error);
    if (status != ZT_OK)
        return status;
    return (work->request->to_f32 ? zt_model_project_widened : zt_model_project)(
        work->model, work->request->target, &work->projection, error);
}

static void close_work(struct conversion *work)
{
    zt_projection_free(work->projection);
    rank_share_free(work->share);
    free(work->files);
    opened_file_close(&work->file);
}

/* --- writing --- */

static bool advance(void *context, uint64_t bytes)
{
    struct conversion *work = context;

    progress_line_advance(&work->line, bytes);
    return stop_signal == 0;
}

static struct zt_conversion conversion_of(const struct conversion *work,
                                          const struct zt_progress *progress)
{
    return (struct zt_conversion){
        .projection = work->projection,
        .source = work->model,
        .files = work->share != NULL ? work->share->files : work->files,
        .options = {.zstd = work->request->zstd, .zstd_level = work->request->zstd_level},
        .progress = progress,
    };
}

static void start_line(struct conversion *work, const struct zt_conversion *how)
{
    progress_line_start(&work->line, reporting_progress(&work->request->reporting), "converting",
                        zt_conversion_work(how));
    work->line.name = work->request->in;
}

static enum zt_status write_output(struct conversion *work, struct output_file *output,
                                   struct zt_error *error)
{
    struct zt_progress progress = {advance, work};
    struct zt_conversion how = conversion_of(work, &progress);
    enum zt_status status;

    assert(work->projection != NULL && work->files[0] == work->file.source);
    start_line(work, &how);
    status = parallel_conversion_write(&how, output, error);
    if (status == ZT_OK)
        status = output_file_check(output, error);
    progress_line_end(&work->line);
    return status;
}

static int make_output(struct conversion *work)
{
    struct output_file output;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    if (output_file_open(work->request->out, &output, &error) != ZT_OK)
        return failure_complain(work->request->out, &error);
    output.never_replaces = work->request->keeps_output;
    status = write_output(work, &output, &error);
    if (status != ZT_OK) {
        bool is_output = output.failed;

        output_file_discard(&output);
        return failure_complain(is_output ? work->request->out : work->request->in, &error);
    }
    if (output_file_publish(&output, &error) != ZT_OK)
        return failure_complain(work->request->out, &error);
    work->has_replaced = output.has_replaced;
    return EXIT_DONE;
}

/* A file that has the name of the model would be used as the model, in spite of the parts. */
static int check_unhidden(const char *out)
{
    struct zt_error error;

    if (access(out, F_OK) != 0)
        return EXIT_DONE;
    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
            "it exists, and would be used as the model instead of the parts");
    return failure_complain(out, &error);
}

/* Parts of another count would remain, and belong to no model. */
static int check_alone(const char *out, uint32_t count)
{
    struct zt_error error;
    char *earlier = NULL;
    int result = EXIT_DONE;

    zt_error_clear(&error);
    if (earlier_parts_find(out, count, &earlier, &error) != ZT_OK)
        return failure_complain(out, &error);
    if (earlier != NULL) {
        zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                "it belongs to another split of this name, which now has %" PRIu32
                " parts: remove that split first, or choose another name",
                count);
        result = failure_complain(earlier, &error);
    }
    free(earlier);
    return result;
}

static int make_parts(struct conversion *work, const struct split_plan *plan)
{
    struct zt_progress progress = {advance, work};
    const struct zt_conversion how = conversion_of(work, &progress);
    struct split_replacing replacing = {.is_refused = work->request->keeps_output};
    char *failed = NULL;
    struct zt_error error;
    enum zt_status status;
    int result = check_unhidden(work->request->out);

    assert(plan->count > 1);
    if (result == EXIT_DONE)
        result = check_alone(work->request->out, plan->count);
    if (result != EXIT_DONE)
        return result;
    zt_error_clear(&error);
    start_line(work, &how);
    status = split_output_write(plan, &how, work->request->out, &replacing, &failed, &error);
    progress_line_end(&work->line);
    work->has_replaced = replacing.has_happened;
    work->part_count = plan->count;
    if (status != ZT_OK)
        result = failure_complain(failed != NULL ? failed : work->request->in, &error);
    free(failed);
    return result;
}

/* What fits into one part is one file without an index. */
static int make_outputs(struct conversion *work)
{
    struct split_plan plan;
    struct zt_error error;
    int result;

    if (work->request->part_bytes == 0)
        return make_output(work);
    if (split_plan_make(work->model, work->projection, work->request->part_bytes, &plan, &error) !=
        ZT_OK)
        return failure_complain(work->request->in, &error);
    result = plan.count > 1 ? make_parts(work, &plan) : make_output(work);
    split_plan_free(&plan);
    return result;
}

/* NPY is the only target without names; its reader calls the object "data". */
static void report_lost_name(const struct conversion *work)
{
    const struct zt_object *object = work->model->objects;

    assert(work->request->target != ZT_TARGET_NPY || work->model->object_count == 1);
    if (work->request->target != ZT_TARGET_NPY ||
        (object->name_length == 4 && memcmp(object->name, "data", 4) == 0))
        return;
    plain_text_write(stdout, work->request->out, strlen(work->request->out));
    fputs(": the name of the object, \"", stdout);
    plain_text_write_short(stdout, object->name, object->name_length, NAME_CHARACTERS_MAX);
    printf("\", is lost, because %s cannot hold it\n", zt_target_name(work->request->target));
}

/* Where standard error is for programs, these lines are none of its objects. */
static FILE *report_stream(const struct conversion *work)
{
    return reporting_progress(&work->request->reporting) == PROGRESS_JSON ? stdout : stderr;
}

static void write_short(FILE *stream, struct zt_text text)
{
    plain_text_write_short(stream, text.bytes, text.length, NAME_CHARACTERS_MAX);
}

static void report_lost_attributes(const struct conversion *work)
{
    const struct zt_projection *made = work->projection;
    FILE *stream = report_stream(work);

    if (made->left_out == 0)
        return;
    plain_text_write(stream, work->request->out, strlen(work->request->out));
    fprintf(stream, ": %" PRIu64 " attribute%s lost, because %s cannot hold %s:", made->left_out,
            made->left_out == 1 ? " is" : "s are", zt_target_name(work->request->target),
            made->left_out == 1 ? "it" : "them");
    for (uint32_t i = 0; i < made->named_count; i++) {
        fputs(i == 0 ? " " : ", ", stream);
        write_short(stream, made->named[i].name);
        if (made->named[i].object.bytes == NULL)
            continue;
        fputs(" of ", stream);
        write_short(stream, made->named[i].object);
    }
    fputs(made->left_out > made->named_count ? ", …\n" : "\n", stream);
}

/* What fits into one part has no index. */
static void report_parts(const struct conversion *work)
{
    FILE *stream = report_stream(work);

    for (uint32_t i = 0; i <= work->part_count && work->part_count > 0; i++) {
        char *path = split_output_path(work->request->out, i, work->part_count);

        if (path == NULL)
            continue;
        plain_text_write(stream, path, strlen(path));
        fputc('\n', stream);
        free(path);
    }
}

/* Counts the bytes of the tensors, before any compression. */
static void report_summary(const struct conversion *work)
{
    const struct zt_model *made = work->projection->model;
    FILE *stream = report_stream(work);
    const double seconds = (double)(clock_ns() - work->begun_ns) / (double)CLOCK_NS_PER_S;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < made->component_count; i++)
        if (made->components[i].decoded_length != ZT_LENGTH_UNKNOWN)
            bytes += made->components[i].decoded_length;
    plain_text_write(stream, work->request->out, strlen(work->request->out));
    fprintf(stream, ": %" PRIu32 " object%s, %" PRIu64 " byte%s, %.3f seconds%s%s\n",
            made->object_count, made->object_count == 1 ? "" : "s", bytes, bytes == 1 ? "" : "s",
            seconds, work->has_replaced ? ", replaced" : "",
            work->part_count > 0 ? ", in these files:" : "");
}

/* Signals that would end the program stop the conversion instead, so that it leaves no file
 * behind. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    /* Writing past a limit on file sizes then fails like any other write. */
    signal(SIGXFSZ, SIG_IGN);
}

int command_convert(int argc, char **argv)
{
    struct conversion_request request = {0};
    struct conversion work = {.request = &request, .begun_ns = clock_ns()};
    struct zt_error error;
    int status = convert_request_read(argc, argv, &request);

    if (status != EXIT_DONE)
        return status;
    if (request.keeps_output && access(request.out, F_OK) == 0) {
        zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "it exists, and --no-clobber is set");
        return failure_complain(request.out, &error);
    }
    catch_signals();
    parallel_conversion_set_jobs(request.jobs);
    zt_error_clear(&error);
    status = open_work(&work, &error) == ZT_OK ? make_outputs(&work)
                                               : failure_complain(request.in, &error);
    if (status == EXIT_DONE && !request.reporting.is_quiet) {
        report_lost_name(&work);
        report_lost_attributes(&work);
        report_summary(&work);
        report_parts(&work);
    }
    close_work(&work);
    return command_finish(status);
}
