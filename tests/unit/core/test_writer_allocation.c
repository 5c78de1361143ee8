/* Memory that runs out while a model is projected and written: every n-th allocation fails once;
 * nothing is leaked.
 *
 * The C library's allocator is replaced in this program, so it tests nothing under sanitizers,
 * which do the same. */
#include "tests.h"

#include <string.h>

#include "survives.h"
#include "written.h"

#define SINK_SIZE 1048576

/* What was written is kept here, so that the sink itself allocates nothing. */
static uint8_t output[SINK_SIZE];
static size_t output_length;

static enum zt_status take(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    (void)context;
    (void)error;
    assert_true(length <= SINK_SIZE - output_length);
    memcpy(output + output_length, bytes, length);
    output_length += length;
    return ZT_OK;
}

struct job {
    const struct written *from;
    enum zt_target target;
    bool zstd;
    size_t whole; /* what was written with enough memory */
};

static enum zt_status convert(void *context)
{
    struct job *job = context;
    struct zt_source *files[] = {job->from->source};
    struct zt_conversion conversion = {.source = job->from->model, .files = files};
    struct zt_sink sink = {take, NULL};
    struct zt_projection *projection = NULL;
    struct zt_error error;
    enum zt_status status = zt_model_project(job->from->model, job->target, &projection, &error);

    output_length = 0;
    /* OpenSSL keeps blocks of its own when its caches cannot grow: no SHA-256 here. */
    conversion.options = (struct zt_writer_options){.zstd = job->zstd, .without_digests = true};
    conversion.projection = projection;
    if (status == ZT_OK)
        status = zt_model_convert(&conversion, &sink, &error);
    zt_projection_free(projection);
    if (status == ZT_OK && job->whole == 0)
        job->whole = output_length;
    return status == ZT_OK && output_length != job->whole ? ZT_CORRUPT : status;
}

#define MANIFEST                                                                                  \
    "{'version':'1.2.0','attributes':{'n':7,'text':'t'},'objects':{'e\u0301':{'shape':[2,2],'"    \
    "format':'dense','attributes':{'b':{'y':1,'x':2}},'components':{'data':{'dtype':'f32','"      \
    "offset':64,'length':16}}},'f':{'shape':[4],'format':'dense','components':{'data':{'dtype':'" \
    "f32','offset':64,'length':16}}}}}"

TEST(every_allocation_may_fail)
{
    struct written from = {0};

    written_from_text(&from, 64, MANIFEST);
    for (unsigned target = ZT_TARGET_ZT1; target <= ZT_TARGET_NPZ; target++)
        assert_survives(convert, &(struct job){.from = &from, .target = (enum zt_target)target});
    assert_survives(convert, &(struct job){.from = &from, .target = ZT_TARGET_ZT1, .zstd = true});
    assert_survives(convert, &(struct job){.from = &from, .target = ZT_TARGET_ZT2, .zstd = true});
    written_free(&from);
}
