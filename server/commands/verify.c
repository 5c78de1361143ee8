/* ztserve verify: every rule and every digest of each file, judged in one line.
 *
 * Whatever is wrong makes a file bad; what cannot be judged is said and does not. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/opened_file.h"
#include "commands/plain_text.h"
#include "commands/shard_files.h"
#include "zt/verify.h"

/* What was found out about one file. */
struct judgement {
    const char *path;
    struct opened_file file;
    struct zt_source **shards; /* one for each of the model's; NULL where it is not to be had */
    uint32_t verified;
    uint32_t undigested;
    uint32_t unsupported;
    uint32_t bad;
    struct zt_error first_unsupported;
    struct zt_error first_bad;
};

static void note_bad(struct judgement *judgement, const struct zt_error *error)
{
    if (judgement->bad++ == 0) {
        judgement->first_bad = *error;
    }
}

static void note_unsupported(struct judgement *judgement, const struct zt_error *error)
{
    if (judgement->unsupported++ == 0) {
        judgement->first_unsupported = *error;
    }
}

/* Files a failure under what it means for the file. */
static void note(struct judgement *judgement, enum zt_status status, const struct zt_error *error)
{
    if (status == ZT_UNSUPPORTED || status == ZT_NOT_FOUND) {
        note_unsupported(judgement, error);
    } else if (status != ZT_OK) {
        note_bad(judgement, error);
    }
}

/* NULL when it lies in a shard that is not to be had. */
static struct zt_source *source_of(const struct judgement *judgement, const struct zt_component *component)
{
    return component->shard == 0 ? judgement->file.source : judgement->shards[component->shard - 1];
}

static bool open_shards(struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;
    if (model->shard_count == 0) {
        return true;
    }
    judgement->shards = calloc(model->shard_count, sizeof *judgement->shards);
    if (judgement->shards == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < model->shard_count; i++) {
        struct zt_error error;
        note(judgement, shard_file_open(judgement->path, &model->shards[i], &judgement->shards[i], &error), &error);
    }
    return true;
}

/* The verdict on one component's digest, as a status: what it says is what note() makes of it. */
static enum zt_status judge_digest(struct judgement *judgement, const struct zt_component_check *check,
                                   struct zt_error *error)
{
    switch (check->verdict) {
    case ZT_VERDICT_VERIFIED:
        judgement->verified++;
        return ZT_OK;
    case ZT_VERDICT_UNDIGESTED:
        judgement->undigested++;
        return ZT_OK;
    case ZT_VERDICT_UNSUPPORTED:
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "digest %.100s cannot be checked", check->expected);
    case ZT_VERDICT_FAILED:
        break;
    }
    if (check->actual[0] == '\0') {
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "the bytes that digest %.100s covers do not decode",
                       check->expected);
    }
    return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "digest is %.100s, the file states %.100s", check->actual,
                   check->expected);
}

/* False when its bytes are not to be trusted, or not to be had, so that their content need not be looked at. */
static bool judge_component(struct judgement *judgement, const struct zt_object *object,
                            const struct zt_component *component)
{
    struct zt_component_check check;
    struct zt_error error;
    struct zt_source *source = source_of(judgement, component);
    if (source == NULL) {
        return false;
    }
    enum zt_status status = zt_component_check(judgement->file.model, component, source, NULL, &check, &error);
    if (status == ZT_OK) {
        status = judge_digest(judgement, &check, &error);
        if (status != ZT_OK) {
            error.offset = status == ZT_CORRUPT ? component->offset : ZT_NO_OFFSET;
        }
    }
    if (status != ZT_OK) {
        zt_error_at(&error, zt_object_name(object), zt_component_name(component));
        note(judgement, status, &error);
    }
    return status == ZT_OK || status == ZT_UNSUPPORTED;
}

static void judge_object(struct judgement *judgement, const struct zt_object *object)
{
    const struct zt_model *model = judgement->file.model;
    uint32_t unsupported = judgement->unsupported;
    bool readable = true;
    for (uint32_t i = 0; i < object->component_count; i++) {
        readable = judge_component(judgement, object, &zt_object_components(model, object)[i]) && readable;
    }
    if (!readable) {
        return;
    }
    struct zt_error error;
    enum zt_status status = zt_object_check(model, object, judgement->file.source, &error);
    /* The same encoding need not be named twice. */
    if (status != ZT_UNSUPPORTED || judgement->unsupported == unsupported) {
        note(judgement, status, &error);
    }
}

static void judge_canonical(struct judgement *judgement)
{
    struct zt_error error;
    enum zt_status status = zt_canonical_check(judgement->file.model, judgement->file.source, &error);
    if (status == ZT_ARGUMENT) {
        zt_fail(&error, status, NULL, ZT_NO_OFFSET, "not canonical: only zTensor 2 has a canonical form");
    }
    note(judgement, status, &error);
}

static void judge_model(struct judgement *judgement, bool canonical)
{
    const struct zt_model *model = judgement->file.model;
    if (!open_shards(judgement)) {
        struct zt_error error;
        zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
        note_bad(judgement, &error);
        return;
    }
    for (uint32_t i = 0; i < model->object_count; i++) {
        judge_object(judgement, &model->objects[i]);
    }
    if (canonical) {
        judge_canonical(judgement);
    }
    for (uint32_t i = 0; i < model->shard_count; i++) {
        zt_source_close(judgement->shards[i]);
    }
    free(judgement->shards);
}

/* --- saying it --- */

static void print_failure(FILE *stream, const struct zt_error *error, uint32_t count)
{
    char text[FAILURE_TEXT_SIZE];
    failure_describe(error, text, sizeof text);
    plain_text_write(stream, text, strlen(text));
    if (count > 1) {
        fprintf(stream, " (and %" PRIu32 " more)", count - 1);
    }
}

static void print_path(FILE *stream, const char *path, const char *verdict)
{
    plain_text_write(stream, path, strlen(path));
    fprintf(stream, ": %s", verdict);
}

static int print_bad(const char *path, const struct zt_error *error, uint32_t count)
{
    /* In the order of the files also where both streams are one. */
    fflush(stdout);
    print_path(stderr, path, "bad: ");
    print_failure(stderr, error, count);
    fputc('\n', stderr);
    return EXIT_BAD;
}

static int print_ok(const struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;
    print_path(stdout, judgement->path, "ok (");
    printf("%s ", model->format_name);
    plain_text_write(stdout, model->version.bytes, model->version.length);
    printf(", %" PRIu32 " objects, %" PRIu32 " components, %" PRIu32 " digests right, %" PRIu32 " without a digest)",
           model->object_count, model->component_count, judgement->verified, judgement->undigested);
    if (judgement->unsupported > 0) {
        fputs("; unsupported: ", stdout);
        print_failure(stdout, &judgement->first_unsupported, judgement->unsupported);
    }
    fputc('\n', stdout);
    return EXIT_DONE;
}

static int verify_file(const char *path, bool canonical)
{
    struct judgement judgement = {.path = path};
    struct zt_error error;
    enum zt_status status = opened_file_open(path, &judgement.file, &error);
    if (status == ZT_DATA_SHARD) {
        print_path(stdout, path,
                   "ok (data shard of a zTensor 2 model: it has no manifest, its model states its digests)\n");
        return EXIT_DONE;
    }
    if (status != ZT_OK) {
        return print_bad(path, &error, 1);
    }
    judge_model(&judgement, canonical);
    int result = judgement.bad > 0 ? print_bad(path, &judgement.first_bad, judgement.bad) : print_ok(&judgement);
    opened_file_close(&judgement.file);
    return result;
}

int command_verify(int argc, char **argv)
{
    bool canonical = false;
    int files = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--canonical") == 0) {
            canonical = true;
        } else if (argv[i][0] == '-') {
            return command_refuse("%s: unknown argument", argv[i]);
        } else {
            argv[1 + files++] = argv[i];
        }
    }
    if (files == 0) {
        return command_refuse("verify needs a file");
    }
    int result = EXIT_DONE;
    for (int i = 1; i <= files; i++) {
        int status = verify_file(argv[i], canonical);
        result = status != EXIT_DONE ? status : result;
    }
    return command_finish(result);
}
