/* The text depends on the address under which the client reached the server, so it is not kept, and
 * its ETag covers that address. */
#include "api/handlers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/attachment.h"
#include "api/json_reply.h"
#include "api/parameters.h"
#include "api/resolve.h"
#include "derived/export_plan.h"
#include "derived/reference_json.h"
#include "http/exchange/base_url.h"
#include "selection/matches.h"
#include "zt/digest.h"

/* Raise this when the same query of the same file gives other bytes, so that ETags change. */
#define REFERENCE_REVISION 1
/* "r", the revision, "-", two words in hex and NUL. */
#define SUFFIX_SIZE 64
/* A longer text takes more than about 100 us to write. */
#define INLINE_OBJECTS        32
#define INLINE_MANIFEST_BYTES 16384

struct reference {
    struct reference_wish wish;
    struct json *json; /* NULL: not begun */
    enum zt_status status;
    bool is_unused; /* a glob matches no object */
    struct zt_error error;
};

bool reference_is_wanted(struct request *request)
{
    struct zt_text text;
    struct zt_text again;

    return request_query(request, "format", 0, &text) && zt_text_is(text, "reference") &&
           !request_query(request, "format", 1, &again);
}

/* --- the query --- */

/* Returns false if it has replied. */
static bool refuse_cuts(struct request *request)
{
    struct zt_text text;

    if (!request_query(request, "shard", 0, &text) && !request_query(request, "axis", 0, &text))
        return true;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "a reference describes whole tensors, which its reader slices: shard and axis "
                  "are for other formats");
    return false;
}

/* Returns false if it has replied. */
static bool read_query(struct request *request, struct export_query *query)
{
    struct zt_text *globs;

    *query = (struct export_query){.lists = NULL};
    if (!refuse_cuts(request) || !parameter_prefix(request, &query->prefix) ||
        !parameter_matches(request, &globs, &query->match_count) ||
        !parameter_dtype(request, &query->to_f32))
        return false;
    query->matches = globs;
    return true;
}

/* Returns NULL if it has replied. */
static struct reference *make_reference(struct request *request, const struct export_query *query)
{
    struct reference *reference = request_new_memory(request, sizeof(*reference));

    if (reference == NULL)
        return NULL;
    *reference = (struct reference){.wish = {.prefix = query->prefix,
                                             .matches = query->matches,
                                             .match_count = query->match_count,
                                             .to_f32 = query->to_f32}};
    reference->wish.base_url = request_base_url(request);
    if (reference->wish.base_url == NULL) {
        problem_reply(
            request, PROBLEM_INVALID_REQUEST,
            "a reference contains this server's address: the request must have a Host field");
        return NULL;
    }
    return reference;
}

/* --- the text --- */

static void write_text(struct request *request)
{
    struct reference *reference = request->context;
    const struct reference_wish *wish = &reference->wish;
    const struct zt_model *model = request->generation->model;
    struct zt_error *error = &reference->error;

    reference->status = reference_write(reference->json, request->generation, wish, error);
    if (reference->status == ZT_NOT_FOUND && wish->match_count + wish->prefix.length > 0)
        matches_fail_all(wish->prefix, wish->matches, wish->match_count, model, error);
    if (reference->status == ZT_OK) {
        reference->status =
            matches_check(wish->prefix, wish->matches, wish->match_count, model, error);
        reference->is_unused = reference->status == ZT_NOT_FOUND;
    }
}

static enum problem problem_of(const struct reference *reference)
{
    if (reference->is_unused)
        return PROBLEM_RULE_UNUSED;
    return reference->status == ZT_NOT_FOUND ? PROBLEM_OBJECT_NOT_FOUND : PROBLEM_NOT_REPRESENTABLE;
}

static bool is_long_work(const struct reference *reference, const struct zt_model *model)
{
    return model->object_count > INLINE_OBJECTS || model->manifest_length > INLINE_MANIFEST_BYTES ||
           reference->wish.match_count > 1;
}

static enum outcome step_write(struct request *request)
{
    struct reference *reference = request->context;

    if (reference->json == NULL) {
        reference->json = json_reply_new(request, false);
        if (reference->json == NULL)
            return OUTCOME_READY;
        if (is_long_work(reference, request->generation->model))
            return request_work_long(request, write_text);
        write_text(request);
    }
    if (reference->status != ZT_OK)
        return problem_reply_error_as(request, problem_of(reference), &reference->error);
    return json_reply_send(request, reference->json);
}

/* --- the handler --- */

/* Each text is preceded by its length, so that different queries have different descriptions. */
static void describe(FILE *stream, const struct reference_wish *wish)
{
    fprintf(stream, "%s %d %zu:", wish->base_url, wish->to_f32, wish->prefix.length);
    fwrite(wish->prefix.bytes, 1, wish->prefix.length, stream);
    for (size_t i = 0; i < wish->match_count; i++) {
        fprintf(stream, " %zu:", wish->matches[i].length);
        fwrite(wish->matches[i].bytes, 1, wish->matches[i].length, stream);
    }
}

/* Returns NULL if out of memory. */
static const char *make_etag(struct request *request, const struct reference_wish *wish)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    uint64_t words[2];
    char suffix[SUFFIX_SIZE];
    char etag[GENERATION_ETAG_SIZE + SUFFIX_SIZE];

    if (stream == NULL)
        return NULL;
    describe(stream, wish);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    zt_xxh3_128(text, length, words);
    free(text);
    snprintf(suffix, sizeof(suffix), "r%d-%016" PRIx64 "%016" PRIx64, REFERENCE_REVISION, words[0],
             words[1]);
    generation_etag(request->generation, suffix, etag, sizeof(etag));
    return request_copy(request, etag, strlen(etag));
}

enum outcome reference_get(struct request *request)
{
    struct export_query query;
    enum outcome outcome;

    if (!model_resolve(request, &outcome))
        return outcome;
    return read_query(request, &query) ? reference_reply(request, &query) : OUTCOME_READY;
}

enum outcome reference_reply(struct request *request, const struct export_query *query)
{
    struct representation *reply = &request->reply;
    struct reference *reference = make_reference(request, query);

    if (reference == NULL)
        return OUTCOME_READY;
    request->context = reference;
    reply->etag = make_etag(request, &reference->wish);
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->vary = BASE_URL_VARY;
    reply->media_type = "application/json";
    reply->ranges = true;
    representation_field(
        reply, "Content-Disposition",
        attachment_of_model(request, generation_name(request->generation), ".reference.json"));
    representation_step(reply, "reference", step_write);
    return OUTCOME_READY;
}
