/* Keeps the plans of exports in a memo. They are made in two stages: export_work.c makes the
 * outline, export_prepare.c the rest. */
#include "derived/export_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "derived/export_base.h"
#include "derived/export_work.h"
#include "zt/digest.h"

#define PLANS_MAX 256
/* The plan of a file of 100,000 objects takes about 15 MB, most of it for the index of the exported
 * file. */
#define CACHE_BYTES ((uint64_t)128 << 20)

enum stage { STAGE_OUTLINE = 1, STAGE_WHOLE };

/* The first part of a key: the version of a model's files. A plan must not hold the generation,
 * which would keep them open. The description of the query follows. */
struct version {
    char etag[GENERATION_ETAG_SIZE];
    uint64_t device;
    int64_t changed_ns;
};

/* The value in the memo. */
struct plan {
    struct export_plan base;   /* first: the plan is the value */
    struct export_query query; /* a copy; its lists and texts are one block, `copied` */
    void *copied;
    struct export_work *work; /* until the plan is complete or has failed */
};

/* Frees the copy of the query. Only the work uses it. */
static void drop_query(struct plan *plan)
{
    free(plan->copied);
    plan->copied = NULL;
    export_lists_release(plan->query.lists);
    generation_release(plan->query.base);
    plan->query = (struct export_query){.lists = NULL};
}

static void free_plan(void *value)
{
    struct plan *plan = value;

    export_work_free(plan->work);
    zt_file_plan_free(plan->base.file);
    free(plan->base.origins);
    drop_query(plan);
}

static void share(void *value, uint64_t client)
{
    export_work_share(((struct plan *)value)->work, client);
}

struct memo *export_memo_new(void)
{
    return memo_new(&(struct memo_rules){.value_bytes = sizeof(struct plan),
                                         .free_value = free_plan,
                                         .share = share,
                                         .most = {CACHE_BYTES, PLANS_MAX}});
}

/* --- the query of a plan --- */

/* Writes each text after its length, so that different queries have different descriptions. */
static void write_query(FILE *stream, const struct export_query *query)
{
    fprintf(stream, "%d %" PRIu64 "/%" PRIu64 " %zu:", (int)query->target, query->cut.part,
            query->cut.parts, query->prefix.length);
    fwrite(query->prefix.bytes, 1, query->prefix.length, stream);
    for (size_t i = 0; i < query->match_count; i++) {
        fprintf(stream, " %zu:", query->matches[i].length);
        fwrite(query->matches[i].bytes, 1, query->matches[i].length, stream);
    }
    for (size_t i = 0; i < query->rule_count; i++) {
        fprintf(stream, " axis%d %zu:", query->rules[i].set != NULL ? AXIS_SETS_REVISION : 0,
                query->rules[i].text.length);
        fwrite(query->rules[i].text.bytes, 1, query->rules[i].text.length, stream);
    }
    if (query->to_f32)
        fputs(" f32", stream);
    if (query->count > 0)
        fprintf(stream, " %" PRIu32 "+%" PRIu32, query->first, query->count);
    if (query->is_for_torch)
        fputs(" torch", stream);
    if (query->leaves_out) {
        const struct zt_text base =
            query->base != NULL ? export_base_identity(query->base) : (struct zt_text){"", 0};

        fprintf(stream, " without %zu:", base.length);
        fwrite(base.bytes, 1, base.length, stream);
    }
    if (query->lists != NULL) {
        fputs(" lists ", stream);
        fwrite(query->lists->sha256, 1, sizeof(query->lists->sha256), stream);
    }
}

static char *copy_text(char *at, struct zt_text *text)
{
    if (text->length > 0)
        memcpy(at, text->bytes, text->length);
    text->bytes = at;
    return at + text->length;
}

static char *copy_rule(char *at, struct zt_text text, struct axis_rule *rule)
{
    char *end = copy_text(at, &text);
    const bool is_rule = axis_rule_read(text, rule);

    assert(is_rule);
    (void)is_rule;
    return end;
}

static size_t length_of_texts(const struct export_query *query)
{
    size_t length = query->prefix.length;

    for (size_t i = 0; i < query->match_count; i++)
        length += query->matches[i].length;
    for (size_t i = 0; i < query->rule_count; i++)
        length += query->rules[i].text.length;
    return length;
}

static bool copy_query(struct plan *plan, const struct export_query *query)
{
    const size_t length = length_of_texts(query);
    struct axis_rule *rules = malloc(query->rule_count * sizeof(*rules) +
                                     query->match_count * sizeof(struct zt_text) + length + 1);
    struct zt_text *matches;
    char *at;

    if (rules == NULL)
        return false;
    matches = (struct zt_text *)(void *)(rules + query->rule_count);
    plan->copied = rules;
    plan->query = *query;
    plan->query.rules = rules;
    plan->query.matches = matches;
    at = copy_text((char *)(matches + query->match_count), &plan->query.prefix);
    for (size_t i = 0; i < query->match_count; i++) {
        matches[i] = query->matches[i];
        at = copy_text(at, &matches[i]);
    }
    for (size_t i = 0; i < query->rule_count; i++)
        at = copy_rule(at, query->rules[i].text, &rules[i]);
    if (query->lists != NULL)
        export_lists_hold(query->lists);
    if (query->base != NULL)
        generation_hold(query->base);
    assert(at == (char *)(matches + query->match_count) + length);
    return true;
}

struct export_plan *export_plan_hold(struct memo *plans, const struct generation *generation,
                                     const struct export_query *query)
{
    struct version version;
    char *key = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&key, &length);
    struct export_plan *plan = NULL;

    if (stream == NULL)
        return NULL;
    memset(&version, 0, sizeof(version));
    memcpy(version.etag, generation->etag, sizeof(version.etag));
    version.device = generation->identity.device;
    version.changed_ns = generation->identity.changed_ns;
    fwrite(&version, sizeof(version), 1, stream);
    write_query(stream, query);
    if (fclose(stream) == 0)
        plan = memo_hold(plans, (struct zt_text){key, length});
    free(key);
    return plan;
}

/* --- stages --- */

static uint64_t bytes_of(struct plan *plan)
{
    const struct zt_file_plan *file = plan->base.file;
    uint64_t bytes = sizeof(*plan) + 2 * memo_key(plan).length;

    for (size_t i = 0; i < file->piece_count; i++)
        bytes += file->pieces[i].is_component ? 0 : file->pieces[i].length;
    return bytes + file->piece_count * sizeof(*file->pieces) +
           plan->base.origin_count * sizeof(*plan->base.origins);
}

/* Ends a plan with a failure. Failed plans are not kept: the failure may be temporary, so the next
 * request starts again. */
static void fail(struct plan *plan, const struct export_result *result)
{
    plan->base.failure = result->failure;
    plan->base.verdict = result->verdict;
    plan->base.error = result->error;
    memo_fail(plan, &result->error, MEMO_NOT_KEPT, 0);
}

static void stage_ended(void *context)
{
    struct plan *plan = context;
    struct export_work *work = plan->work;
    struct export_result result;

    export_work_take(work, &result);
    /* The outline makes it; afterwards other loops read it without a lock. */
    if (plan->base.suggestion == NULL && result.suggestion != NULL)
        plan->base.suggestion = result.suggestion;
    if (!result.failed && result.file == NULL) {
        memo_done(plan, MEMO_NOT_KEPT);
        memo_release(plan);
        return;
    }
    if (result.failed) {
        fail(plan, &result);
    } else {
        assert(result.origins != NULL);
        plan->base.file = result.file;
        plan->base.origins = result.origins;
        plan->base.origin_count = result.origin_count;
        plan->base.left_out_count = result.left_out_count;
        memo_done(plan, (struct memo_charge){bytes_of(plan), 1});
    }
    plan->work = NULL;
    export_work_free(work);
    drop_query(plan);
    memo_release(plan);
}

/* Creates the work of a new plan. Returns false if out of memory. */
static bool make_work(struct plan *plan, struct server *server, struct generation *generation,
                      const struct export_query *query, uint64_t client)
{
    const struct export_order order = {.server = server,
                                       .generation = generation,
                                       .client = client,
                                       .query = &plan->query,
                                       .ended = stage_ended,
                                       .wanted = memo_is_wanted,
                                       .context = plan};
    const struct zt_text key = memo_key(plan);

    assert(plan->work == NULL && plan->copied == NULL);
    assert(key.length > sizeof(struct version));
    zt_xxh3_128(key.bytes + sizeof(struct version), key.length - sizeof(struct version),
                plan->base.identity);
    if (copy_query(plan, query))
        plan->work = export_work_new(&order);
    return plan->work != NULL;
}

enum memo_answer export_plan_outline(struct server *server, struct export_plan *base,
                                     struct generation *generation,
                                     const struct export_query *query, struct waiter *waiter)
{
    struct plan *plan = (struct plan *)base;
    struct export_result failed = {.failed = true, .failure = EXPORT_ERROR};
    const enum memo_answer answer = memo_ask(plan, STAGE_OUTLINE, waiter, NULL);

    if (answer != MEMO_MAKE)
        return answer;
    if (make_work(plan, server, generation, query, waiter->client)) {
        memo_await(plan, waiter);
        export_work_outline(plan->work);
        return MEMO_PENDING;
    }
    zt_fail_memory(&failed.error, "an export");
    fail(plan, &failed);
    memo_release(plan);
    return MEMO_FAILED;
}

enum memo_answer export_plan_prepare(struct export_plan *base, struct waiter *waiter)
{
    struct plan *plan = (struct plan *)base;
    const enum memo_answer answer = memo_ask(plan, STAGE_WHOLE, waiter, NULL);

    if (answer != MEMO_MAKE)
        return answer;
    memo_await(plan, waiter);
    export_work_prepare(plan->work);
    return MEMO_PENDING;
}
