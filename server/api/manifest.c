/* Sends manifests as JSON: of a model or of one object, whole or a selection (prefix, match,
 * fields).
 *
 * The whole manifest of a model is made once and kept with the generation, in each coding; any
 * other response is made for its request. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/json_reply.h"
#include "api/parameters.h"
#include "api/resolve.h"
#include "derived/manifest_json.h"
#include "verify/component_digests.h"
#include "zt/digest.h"

/* Writing more objects than this takes too long on a loop, so a worker does it. */
#define INLINE_OBJECTS 500
/* The limit for attributes and names, since few objects may have many bytes of them. */
#define INLINE_MANIFEST_BYTES 65536
/* The limit for globs: matching long ones takes longer than writing the matching objects. */
#define INLINE_GLOB_BYTES 128
/* The limits for the components and attributes of a single object. */
#define INLINE_COMPONENTS      500
#define INLINE_ATTRIBUTE_BYTES 65536
/* "m", two words in hex, and NUL. */
#define SUFFIX_SIZE 64

/* The part of the manifest that a request selects. */
struct selection {
    struct json_reply reply; /* first: request->context points to both */
    struct manifest_selection manifest;
    bool pretty;
    bool with_digests;          /* computed ones, which may come later */
    bool is_whole;              /* everything, compact: this text is kept */
    struct manifest_text *text; /* for a whole manifest: held; NULL until it is requested */
    bool written;
};

/* --- the query --- */

static bool read_fields(struct request *request, struct manifest_selection *selection)
{
    struct zt_text text;

    if (!request_query(request, "fields", 0, &text))
        return true;
    if (!parameter_once(request, "fields"))
        return false;
    if (manifest_fields_parse(text, &selection->fields))
        return true;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "fields must be one or more of shape, format, attributes and components");
    return false;
}

/* Reads the query and negotiates the coding. Returns NULL if it has replied. */
static struct selection *read_selection(struct request *request)
{
    struct selection *selection = request_new_memory(request, sizeof(*selection));
    struct zt_text *globs;
    bool attributes;

    if (selection == NULL)
        return NULL;
    if (!parameter_prefix(request, &selection->manifest.prefix) ||
        !parameter_matches(request, &globs, &selection->manifest.match_count) ||
        !read_fields(request, &selection->manifest) ||
        !parameter_switch(request, "pretty", &selection->pretty) ||
        !parameter_switch(request, "digests", &selection->with_digests) ||
        !parameter_switch_off(request, "attributes", &attributes) ||
        !json_reply_negotiate(request, &selection->reply))
        return NULL;
    selection->manifest.matches = globs;
    selection->manifest.without_attributes = !attributes;
    selection->is_whole = selection->manifest.prefix.length == 0 &&
                          selection->manifest.match_count == 0 && selection->manifest.fields == 0 &&
                          !selection->manifest.without_attributes && !selection->pretty &&
                          !selection->with_digests;
    return selection;
}

/* --- the answer --- */

/* Each text is preceded by its length, so that different selections have different descriptions. */
static void describe(FILE *stream, const struct selection *selection, const char *what)
{
    const struct manifest_selection *manifest = &selection->manifest;

    fprintf(stream, "%s %d %u %d %d %zu:", what, selection->reply.coding, manifest->fields,
            manifest->without_attributes, selection->pretty, manifest->prefix.length);
    fwrite(manifest->prefix.bytes, 1, manifest->prefix.length, stream);
    for (size_t i = 0; i < manifest->match_count; i++) {
        fprintf(stream, " %zu:", manifest->matches[i].length);
        fwrite(manifest->matches[i].bytes, 1, manifest->matches[i].length, stream);
    }
    /* Other digests may be known the next time. */
    if (selection->with_digests)
        fprintf(stream, " %" PRIx64,
                zt_xxh3(selection->reply.json->text, selection->reply.json->length));
}

/* what: the kind of response, so that no two kinds share an ETag. Returns NULL if out of memory. */
static const char *selection_etag(struct request *request, const struct selection *selection,
                                  const char *what)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    uint64_t words[2];
    char suffix[SUFFIX_SIZE];
    char etag[GENERATION_ETAG_SIZE + SUFFIX_SIZE];

    assert(request->generation != NULL);
    if (stream == NULL)
        return NULL;
    describe(stream, selection, what);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    zt_xxh3_128(text, length, words);
    free(text);
    snprintf(suffix, sizeof(suffix), "m%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    generation_etag(request->generation, suffix, etag, sizeof(etag));
    return request_copy(request, etag, strlen(etag));
}

static void set_fields(struct request *request, const char *etag)
{
    struct representation *reply = &request->reply;

    reply->etag = etag;
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->media_type = "application/json";
    reply->ranges = true;
    reply->lasting = true;
}

/* --- a model --- */

/* A step, because a 304 needs no text. */
static enum outcome step_manifest(struct request *request)
{
    struct selection *selection = request->context;
    const enum coding coding = selection->reply.coding;
    enum memo_answer given = MEMO_FAILED;
    struct zt_error error;

    assert(selection->is_whole && request->generation->model != NULL);
    if (selection->text == NULL) {
        selection->text = manifest_hold(request->server->manifests, request->generation, coding);
        request_hold(request, selection->text, memo_release);
    }
    if (selection->text == NULL)
        zt_fail_memory(&error, "a manifest");
    else
        given = manifest_ask(request->server, selection->text, request->generation, coding,
                             request_waiter(request), &error);
    if (given == MEMO_PENDING)
        return OUTCOME_WAITING;
    if (given == MEMO_FAILED && error.status == ZT_LIMIT)
        return json_reply_too_long(request);
    if (given == MEMO_FAILED)
        return problem_reply(request, PROBLEM_INTERNAL,
                             "the manifest as JSON does not fit in memory");
    representation_memory(&request->reply, selection->text->bytes, selection->text->length);
    return OUTCOME_READY;
}

static enum outcome reply_whole(struct request *request, const struct selection *selection)
{
    const char *etag = json_reply_etag(request, &selection->reply, request->generation->etag);

    assert(selection->is_whole);
    request->reply.coding = coding_name(selection->reply.coding);
    set_fields(request, etag);
    /* Without a length, the connection would be closed after a 304. */
    request->reply.expected_length =
        manifest_length(request->server->manifests, request->generation, selection->reply.coding);
    representation_step(&request->reply, "manifest", step_manifest);
    return OUTCOME_READY;
}

static bool is_long_work(const struct zt_model *model, const struct manifest_selection *selection)
{
    size_t glob_bytes = 0;

    for (size_t i = 0; i < selection->match_count; i++)
        glob_bytes += selection->matches[i].length;
    return model->object_count > INLINE_OBJECTS || model->manifest_length > INLINE_MANIFEST_BYTES ||
           glob_bytes > INLINE_GLOB_BYTES;
}

/* Has the missing digests computed in the background. */
static void want_digests(struct request *request, struct selection *selection)
{
    selection->manifest.digested = request->generation;
    for (uint32_t i = 0; i < request->generation->model->component_count; i++)
        stored_digest_want(request->server, request->generation, i);
}

static void write_selection(struct request *request)
{
    struct selection *selection = request->context;
    const struct manifest_source source = manifest_source_of(request->generation);

    if (selection->with_digests)
        want_digests(request, selection);
    manifest_write(selection->reply.json, request->generation->model, &source,
                   &selection->manifest);
}

static enum outcome reply_selection(struct request *request, struct selection *selection)
{
    assert(!selection->is_whole);
    if (!selection->written) {
        selection->written = true;
        selection->reply.json = json_reply_new(request, selection->pretty);
        if (selection->reply.json == NULL)
            return OUTCOME_READY;
        if (is_long_work(request->generation->model, &selection->manifest))
            return request_work_long(request, write_selection);
        write_selection(request);
    }
    if (json_reply_encode(request, &selection->reply) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    json_reply_send(request, selection->reply.json);
    if (!selection->reply.json->failed)
        set_fields(request, selection_etag(request, selection, "model"));
    return OUTCOME_READY;
}

enum outcome model_get(struct request *request)
{
    enum outcome outcome;
    struct selection *selection;

    if (!model_resolve(request, &outcome))
        return outcome;
    selection = request->context != NULL ? request->context : read_selection(request);
    if (selection == NULL)
        return OUTCOME_READY;
    request->context = selection;
    return selection->is_whole ? reply_whole(request, selection)
                               : reply_selection(request, selection);
}

/* --- an object --- */

static void write_object(struct request *request)
{
    struct selection *selection = request->context;
    const struct zt_model *model = request->generation->model;
    const struct manifest_source source = manifest_source_of(request->generation);
    const struct zt_object *object = zt_model_find(model, request->names[1]);

    assert(object != NULL);
    manifest_write_object(selection->reply.json, model, object, &source,
                          selection->manifest.fields);
}

static const char *object_etag(struct request *request, const struct selection *selection,
                               const struct zt_object *object)
{
    char what[32];

    snprintf(what, sizeof(what), "object %td", object - request->generation->model->objects);
    return selection_etag(request, selection, what);
}

/* Returns NULL if it has replied. */
static struct selection *begin_object(struct request *request)
{
    struct selection *selection = read_selection(request);

    if (selection != NULL)
        selection->reply.json = json_reply_new(request, selection->pretty);
    return selection != NULL && selection->reply.json != NULL ? selection : NULL;
}

enum outcome object_get(struct request *request)
{
    enum outcome outcome;
    const struct zt_object *object;
    struct selection *selection;

    if (!model_resolve(request, &outcome))
        return outcome;
    object = object_resolve(request);
    if (object == NULL)
        return OUTCOME_READY;
    selection = request->context;
    if (selection == NULL) {
        selection = begin_object(request);
        request->context = selection;
        if (selection == NULL)
            return OUTCOME_READY;
        if (object->component_count > INLINE_COMPONENTS ||
            object->attributes_length > INLINE_ATTRIBUTE_BYTES)
            return request_work_long(request, write_object);
        write_object(request);
    }
    if (json_reply_encode(request, &selection->reply) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    json_reply_send(request, selection->reply.json);
    if (!selection->reply.json->failed)
        set_fields(request, object_etag(request, selection, object));
    return OUTCOME_READY;
}
