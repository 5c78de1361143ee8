/* Reads and checks the arguments of `convert`. */
#include "commands/convert_request.h"

#include <string.h>

#include "base/decimal.h"
#include "client/model_source.h"
#include "commands/commands.h"
#include "conversion/read_only_format.h"
#include "conversion/split_output.h"

#define JOBS_MAX       256
#define ZSTD_LEVEL_MAX 22

static const struct {
    const char *name;
    const char *extension;
    enum zt_target target;
} targets[] = {
    {"zt", ".zt", ZT_TARGET_ZT1},   {"zt2", NULL, ZT_TARGET_ZT2_CANONICAL},
    {"mag", ".mag", ZT_TARGET_MAG}, {"safetensors", ".safetensors", ZT_TARGET_SAFETENSORS},
    {"npz", ".npz", ZT_TARGET_NPZ}, {"npy", ".npy", ZT_TARGET_NPY},
};

static bool ends_in(const char *path, const char *extension)
{
    return strlen(path) > strlen(extension) &&
           zt_text_ends_like(zt_text_from(path), zt_text_from(extension));
}

static bool find_target(struct conversion_request *request)
{
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        bool found = request->to != NULL ? strcmp(request->to, targets[i].name) == 0
                                         : targets[i].extension != NULL &&
                                               ends_in(request->out, targets[i].extension);

        if (found) {
            request->target = targets[i].target;
            return true;
        }
    }
    return false;
}

/* Reads the level of "--zstd=LEVEL". */
static bool read_level(struct conversion_request *request, const char *text)
{
    uint64_t level;

    if (!zt_decimal_read(zt_text_from(text), ZSTD_LEVEL_MAX, &level) || level < 1)
        return false;
    request->zstd_level = (int)level;
    return true;
}

static int refuse_target(const char *out)
{
    const char *read_only = read_only_format(out);

    if (read_only != NULL)
        return command_usage("%s: %s is read, not written; the formats that are written are "
                             "zTensor, .mag, safetensors, NPZ and NPY",
                             out, read_only);
    return command_usage("%s: the extension belongs to no known format; choose one with --to", out);
}

static int choose_target(struct conversion_request *request)
{
    if (request->in == NULL || request->out == NULL)
        return command_usage("convert needs two files: one to read and one to write");
    if (operand_check(request->in) != EXIT_DONE)
        return EXIT_USAGE;
    if (strcmp(request->out, "-") == 0)
        return command_usage(
            "OUT -: writing to standard output is not supported; use ./- for a file of that name");
    if (!find_target(request))
        return refuse_target(request->out);
    if (request->zstd && request->target == ZT_TARGET_ZT2_CANONICAL)
        request->target = ZT_TARGET_ZT2;
    if (request->zstd && request->target != ZT_TARGET_ZT2 && request->target != ZT_TARGET_ZT1)
        return command_usage("--zstd: %s has no zstd compression", zt_target_name(request->target));
    if (request->part_bytes > 0 && request->target != ZT_TARGET_SAFETENSORS)
        return command_usage("--max-shard: %s is written as one file, only safetensors as several",
                             zt_target_name(request->target));
    if (request->share.rule_count > 0 && request->share.cut.parts == 0)
        return command_usage("--axis: only with --shard");
    request->share.to_f32 = request->to_f32;
    return EXIT_DONE;
}

static int take_path(struct conversion_request *request, const char *path)
{
    if (request->in == NULL)
        request->in = path;
    else if (request->out == NULL)
        request->out = path;
    else
        return command_usage("convert takes only two files");
    return EXIT_DONE;
}

static int take_part_size(struct conversion_request *request, const char *text)
{
    if (split_size_read(text, &request->part_bytes))
        return EXIT_DONE;
    return command_usage("--max-shard %s: a size is a whole number of bytes, KB, MB, GB, TB, KiB, "
                         "MiB, GiB or TiB",
                         text);
}

static int take_jobs(struct conversion_request *request, const char *text)
{
    uint64_t jobs;

    if (!zt_decimal_read(zt_text_from(text), JOBS_MAX, &jobs) || jobs < 1)
        return command_usage("--jobs %s: it must be a number from 1 to %d", text, JOBS_MAX);
    request->jobs = (unsigned)jobs;
    return EXIT_DONE;
}

static int take_match(struct share_wish *share, const char *text)
{
    const struct zt_text glob = zt_text_from(text);
    size_t bytes = glob.length;

    for (size_t i = 0; i < share->match_count; i++)
        bytes += share->matches[i].length;
    if (!glob_is_valid(glob) || share->match_count == GLOB_SET_MAX || bytes > GLOB_SET_BYTES_MAX)
        return command_usage("--match %s: it must be a glob with every '[' closed by ']', one of "
                             "at most %d",
                             text, GLOB_SET_MAX);
    share->matches[share->match_count++] = glob;
    return EXIT_DONE;
}

static int take_axis(struct share_wish *share, const char *text)
{
    if (share->rule_count == GLOB_SET_MAX)
        return command_usage("--axis: more than %d times", GLOB_SET_MAX);
    if (!axis_rule_read(zt_text_from(text), &share->rules[share->rule_count]))
        return command_usage("--axis %s: it must be " AXIS_RULE_FORMS, text);
    share->rule_count++;
    return EXIT_DONE;
}

static int take_shard(struct share_wish *share, const char *text)
{
    if (cut_read(zt_text_from(text), &share->cut))
        return EXIT_DONE;
    return command_usage("--shard %s: it must be R/N: part R, counted from 0, of N", text);
}

static int take_option(struct conversion_request *request, const struct option_reader *option)
{
    if (reporting_take(&request->reporting, option) ||
        server_option_take(model_source_options(), option))
        return EXIT_DONE;
    if (option_reader_is(option, "--to"))
        request->to = option->value;
    else if (option_reader_is(option, "--dtype"))
        request->to_f32 = true; /* the only word */
    else if (option_reader_is(option, "--max-shard"))
        return take_part_size(request, option->value);
    else if (option_reader_is(option, "--jobs"))
        return take_jobs(request, option->value);
    else if (option_reader_is(option, "--match"))
        return take_match(&request->share, option->value);
    else if (option_reader_is(option, "--shard"))
        return take_shard(&request->share, option->value);
    else if (option_reader_is(option, "--axis"))
        return take_axis(&request->share, option->value);
    else if (option_reader_is(option, "--no-clobber"))
        request->keeps_output = true;
    else if (option_reader_is(option, "--zstd")) {
        request->zstd = true;
        if (option->value != NULL && !read_level(request, option->value))
            return command_usage("--zstd=%s: the level must be 1 to 22", option->value);
    }
    return EXIT_DONE;
}

int convert_request_read(int argc, char **argv, struct conversion_request *request)
{
    struct option_reader reader = option_reader_of(argc, argv);
    int status = EXIT_DONE;
    enum option_found found;

    while (status == EXIT_DONE && (found = option_reader_next(&reader)) != OPTION_END)
        status = found == OPTION_WRONG   ? EXIT_USAGE
                 : found == OPTION_NAMED ? take_option(request, &reader)
                                         : take_path(request, reader.value);
    if (status == EXIT_DONE)
        status = server_options_check(model_source_options());
    return status == EXIT_DONE ? choose_target(request) : status;
}
