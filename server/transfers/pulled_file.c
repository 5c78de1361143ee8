#include "transfers/pulled_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "download/download.h"
#include "files/judgement.h"
#include "store/store.h"
#include "terminal/interruption.h"
#include "terminal/plain_text.h"
#include "transfers/local_bytes.h"

/* --- checking --- */

static void keep_statistics(struct checked_file *checked, const struct judgement *judgement)
{
    checked->is_model = true;
    checked->objects = judgement->file.model->object_count;
    checked->verified = judgement->verified;
    checked->undigested = judgement->undigested;
    checked->unsupported = judgement->unsupported;
}

/* Returns true if a file of this name should be a model. Extensions that other programs share, and
 * an index, which says little, do not promise that. */
static bool is_named_like_model(const char *path)
{
    size_t length;
    unsigned rank;

    return model_path_split(path, &length, &rank) && !model_rank_is_index(rank) &&
           !model_path_needs_sniffing(path);
}

static enum zt_status check(void *context, struct zt_source *source, struct zt_error *error)
{
    struct pull *pull = context;
    struct judgement *judgement;
    enum zt_status status;

    pull->checked = (struct checked_file){.is_model = false};
    if (pull->may_be_other && !is_named_like_model(pull->path)) {
        zt_source_close(source);
        return ZT_OK;
    }
    judgement = calloc(1, sizeof(*judgement));
    if (judgement == NULL) {
        zt_source_close(source);
        return zt_fail_memory(error, "a verdict");
    }
    judgement->path = pull->path;
    status = opened_file_adopt(pull->path, source, &judgement->file, error);
    if (status == ZT_OK) {
        judgement_make(judgement, false);
        if (judgement->bad > 0) {
            *error = judgement->first_bad;
            status = error->status;
        }
        keep_statistics(&pull->checked, judgement);
        opened_file_close(&judgement->file);
    } else if (status == ZT_DATA_SHARD || (pull->may_be_other && status == ZT_UNSUPPORTED)) {
        status = ZT_OK;
    }
    free(judgement);
    return status;
}

static bool is_covered(void *context)
{
    const struct pull *pull = context;

    return !pull->may_be_other && pull->checked.undigested == 0 && pull->checked.unsupported == 0;
}

/* --- progress --- */

static void report_progress(void *context, uint64_t total, uint64_t before, uint64_t come)
{
    struct pull *pull = context;

    pull->line.total_bytes = total;
    if (before > pull->skipped)
        progress_line_skip(&pull->line, before - pull->skipped);
    pull->skipped = before;
    progress_line_advance(&pull->line, come - pull->reported);
    pull->reported = come;
}

static void start_line(struct pull *pull, const char *verb)
{
    const unsigned number = pull->line.file;
    const unsigned files = pull->line.files;

    progress_line_start(&pull->line, reporting_progress(&pull->given->reporting), verb, 0);
    pull->line.name = pull->path;
    pull->line.file = number;
    pull->line.files = files;
    pull->reported = 0;
    pull->skipped = 0;
}

static void report_hashing(void *context, uint64_t total, uint64_t done)
{
    struct pull *pull = context;

    pull->line.total_bytes = total;
    progress_line_advance(&pull->line, done - pull->line.done_bytes);
}

static enum zt_status find_local(void *context, struct client *client, struct web_file *web,
                                 struct copied_bytes *copied, struct zt_error *error)
{
    struct pull *pull = context;
    enum zt_status status;

    progress_line_erase(&pull->line);
    start_line(pull, "comparing");
    local_tensors_watch(pull->local, report_hashing, pull);
    status = local_bytes_find(pull->local, client, web, copied, error);
    progress_line_erase(&pull->line);
    start_line(pull, "pulling");
    return status;
}

/* Many formats have no digests, so that none is verified; this is not a fault. */
static void print_checked(const struct checked_file *checked)
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
    const struct checked_file *checked = &pull->checked;

    if (pull->given->reporting.is_quiet)
        return;
    plain_text_write(stdout, pull->path, strlen(pull->path));
    if (result->was_there) {
        printf(": already exists, with the same %" PRIu64 " bytes\n", result->size);
        return;
    }
    printf(": %" PRIu64 " bytes", result->size);
    if (result->resumed > 0)
        printf(", %" PRIu64 " of them received earlier", result->resumed);
    if (pull->local != NULL)
        printf(", %" PRIu64 " copied from local files, %" PRIu64 " fetched",
               result->copied - result->made, result->received);
    if (result->made > 0)
        printf(", %" PRIu64 " made of local tensors and %" PRIu64 " bytes of differences",
               result->made, result->differences);
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

int pull_file(struct pull *pull, const struct pulled_file *file)
{
    const struct transfer_options *given = pull->given;
    const char *path = file->path;
    const size_t length = strlen(path);
    const struct download download = {
        .options = &given->client,
        .url = file->url,
        .place = *file->place,
        .path = path,
        .replaces_any = pull->is_forced,
        .sha256 = file->sha256,
        /* zTensor files contain digests. */
        .wants_digest = file->may_be_other || length < 3 || strcmp(path + length - 3, ".zt") != 0,
        .find_local = pull->local != NULL ? find_local : NULL,
        .check = check,
        .is_covered = is_covered,
        .report_progress = report_progress,
        .context = pull,
    };
    struct download_result result = {.was_there = false};
    struct zt_error error;
    enum zt_status status;

    pull->path = path;
    pull->may_be_other = file->may_be_other;
    start_line(pull, "pulling");
    zt_error_clear(&error);
    status = run(&download, &result, &error);
    progress_line_end(&pull->line);
    if (status != ZT_OK)
        return failure_complain(path, &error);
    if (result.is_again)
        command_complain("%s: local files did not have the bytes that they promised, so the whole "
                         "was fetched",
                         path);
    print_result(pull, &result);
    if (result.axis_suggestion[0] != '\0')
        command_suggest_axes(result.axis_suggestion);
    return EXIT_DONE;
}
