/* ztserve verify: checks every rule and digest of each file and prints one line per file.
 *
 * A violation makes the file bad; what cannot be judged, and harmless irregularities, are only
 * reported. */
#include <inttypes.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/judgement.h"
#include "commands/option_reader.h"
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

static int print_ok(const struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;

    print_path(stdout, judgement->path, "ok (");
    model_kind_write(stdout, model);
    print_count(model->object_count, "object");
    print_count(model->component_count, "component");
    if (model->shard_count > 0 && model->shards[0].kind == ZT_SHARD_PART)
        print_count(part_count(model), "part");
    printf(", %" PRIu32 " verified, %" PRIu32 " without digest)", judgement->verified,
           judgement->undigested);
    if (judgement->unsupported > 0) {
        fputs("; unsupported: ", stdout);
        print_failure(stdout, &judgement->first_unsupported, judgement->unsupported);
    }
    print_gaps(&judgement->gaps);
    if (judgement->differing_size_bytes > 0)
        printf("; total_size: the index states %" PRIu64 " bytes, the tensors have %" PRIu64,
               judgement->file.stated_size.bytes, judgement->differing_size_bytes);
    fputc('\n', stdout);
    return EXIT_DONE;
}

static int verify_file(const char *path, bool canonical)
{
    struct judgement judgement = {.path = path};
    struct zt_error error;
    enum zt_status status = opened_file_open(path, &judgement.file, &error);
    int result;

    zt_source_allow_mapped();
    if (status == ZT_DATA_SHARD) {
        print_path(stdout, path,
                   "ok (data shard of a zTensor 2 model: it has no manifest; the model states its "
                   "digests)\n");
        return EXIT_DONE;
    }
    if (status != ZT_OK)
        return print_bad(path, &error, 1);
    judgement_make(&judgement, canonical);
    result = judgement.bad > 0 ? print_bad(path, &judgement.first_bad, judgement.bad)
                               : print_ok(&judgement);
    opened_file_close(&judgement.file);
    return result;
}

int command_verify(int argc, char **argv)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;
    bool canonical = false;
    int files = 0;
    int result = EXIT_DONE;

    while ((found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_NAMED)
            canonical = true;
        else
            argv[1 + files++] = reader.value;
    if (files == 0)
        return command_usage("verify needs a file");
    for (int i = 1; i <= files; i++) {
        int status = verify_file(argv[i], canonical);

        result = status != EXIT_DONE ? status : result;
    }
    return command_finish(result);
}
