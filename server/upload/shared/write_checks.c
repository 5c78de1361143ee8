/* Checks of writes: of the request, before a byte of the body is read, and of the whole stored
 * file, before it is published.
 *
 * Checks before the body never wait: what is not known at once is left to publication, which checks
 * everything again. The check of the file ends with the first step that fails. */
#include "upload/shared/write_checks.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/workers.h"
#include "tree/file_hashes.h"
#include "upload/shared/index_check.h"
#include "upload/shared/model_parts.h"
#include "upload/shared/written_name.h"
#include "zt/shards.h"
#include "zt/verify.h"

/* --- the request --- */

/* By then one of the client's other uploads may be done. */
#define RETRY_AFTER_S "5"

static const char *store_refusal(const struct store *store)
{
    return store != NULL && store_is_elsewhere(store) ? store->ops->refusal(store) : NULL;
}

bool write_refuse_read_only(struct request *request)
{
    const char *why = NULL;

    if (!request->server->config->writable)
        problem_reply(request, PROBLEM_READ_ONLY, "writing is turned off on this server");
    else if ((why = store_refusal(request->server->store)) != NULL)
        problem_reply(request, PROBLEM_NOT_IMPLEMENTED, "%s", why);
    return !request->server->config->writable || why != NULL;
}

bool write_refuse_coding(struct request *request)
{
    const char *coding = request_header(request, "Content-Encoding");

    if (coding == NULL || strcasecmp(coding, "identity") == 0)
        return false;
    problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                  "the body is the file itself: Content-Encoding is not supported");
    return true;
}

bool write_refuse_digests(struct request *request, struct digest_field *out_content,
                          struct digest_field *out_repr)
{
    const char *content = request_header(request, "Content-Digest");
    const char *repr = out_repr != NULL ? request_header(request, "Repr-Digest") : NULL;

    if ((content == NULL || digest_field_parse(content, out_content)) &&
        (repr == NULL || digest_field_parse(repr, out_repr)))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "Content-Digest or Repr-Digest is malformed");
    return true;
}

bool write_refuse_absent_body(struct request *request)
{
    if (request_body_length(request) > 0 || request_header(request, "Content-Length") != NULL)
        return false;
    problem_reply(request, PROBLEM_LENGTH_REQUIRED,
                  "a body is required: send its Content-Length, or send it chunked");
    return true;
}

static void forget_waiter(struct waiter *waiter)
{
    free(waiter);
}

typedef enum catalog_answer (*catalog_question)(struct catalog *catalog, struct zt_text text,
                                                struct waiter *waiter,
                                                struct generation **out_generation);

/* Asks the catalog without waiting, since nothing before the body may wait. */
static enum catalog_answer ask_now(struct request *request, catalog_question question,
                                   struct zt_text text, struct generation **out_current)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    enum catalog_answer answer;

    if (waiter == NULL)
        return CATALOG_PENDING;
    waiter->wake = forget_waiter;
    answer = question(request->server->catalog, text, waiter, out_current);
    if (answer != CATALOG_PENDING)
        free(waiter);
    return answer;
}

/* Finds what the name stands for, even a data shard, which is found by path only. False if only a
 * scan can tell; the preconditions are then checked only at publication. */
static bool find_now(struct request *request, struct zt_text name, struct generation **out_current)
{
    char path[MODEL_NAME_MAX + sizeof(".zt")];
    enum catalog_answer answer;

    *out_current = NULL;
    answer = ask_now(request, catalog_find, name, out_current);
    if (answer == CATALOG_NOT_FOUND) {
        int length = snprintf(path, sizeof(path), "%.*s.zt", (int)name.length, name.bytes);

        answer = ask_now(request, catalog_find_path, (struct zt_text){path, (size_t)length},
                         out_current);
    }
    return answer != CATALOG_PENDING && answer != CATALOG_UNAVAILABLE;
}

struct preconditions write_preconditions(struct request *request)
{
    return (struct preconditions){
        .if_match = request_header(request, "If-Match"),
        .if_none_match = request_header(request, "If-None-Match"),
        .if_unmodified_since = request_header(request, "If-Unmodified-Since"),
    };
}

/* If a malformed If-None-Match were ignored, a write that the client meant to prevent would
 * succeed. A malformed If-Match needs no check: it matches nothing, which is 412. */
bool write_refuse_tags(struct request *request, const char *if_none_match)
{
    if (if_none_match == NULL || tag_list_is_valid(if_none_match))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "If-None-Match is neither * nor a list of entity tags in quotes");
    return true;
}

bool write_is_done_already(struct request *request, const uint8_t sha256[32])
{
    const char *text = request_header(request, "Repr-Digest");
    struct digest_field stated = {0};

    return request->method == METHOD_PUT && text != NULL && digest_field_parse(text, &stated) &&
           stated.has_sha256 && memcmp(stated.sha256, sha256, sizeof(stated.sha256)) == 0;
}

bool write_file_sha256(struct server *server, const struct generation *generation,
                       uint8_t out_sha256[32])
{
    if (atomic_load(&generation->has_file_sha256)) {
        memcpy(out_sha256, generation->file_sha256, sizeof(generation->file_sha256));
        return true;
    }
    if (server->hashes == NULL || generation->source == NULL)
        return false;
    if (file_hashes_find(server->hashes, generation->path, &generation->identity, out_sha256))
        return true;
    file_hashes_want(server->hashes, generation->path, &generation->identity);
    return false;
}

static bool is_done_already(struct request *request, const struct generation *current,
                            uint8_t out_sha256[32])
{
    return current != NULL && request_header(request, "Repr-Digest") != NULL &&
           write_file_sha256(request->server, current, out_sha256) &&
           write_is_done_already(request, out_sha256);
}

static void reply_done_already(struct request *request, const struct generation *current,
                               const uint8_t sha256[32], struct zt_text name)
{
    struct published published = {.replaced = true};

    memcpy(published.sha256, sha256, sizeof(published.sha256));
    snprintf(published.etag, sizeof(published.etag), "%s", current->etag);
    reply_empty(request, 204);
    published_reply_location(request, name);
    published_reply_digest(request, &published);
}

bool write_refuse_preconditions(struct request *request, struct zt_text name,
                                struct preconditions *out_preconditions)
{
    struct generation *current;
    uint8_t sha256[32];
    bool hold;

    *out_preconditions = write_preconditions(request);
    if (write_refuse_tags(request, out_preconditions->if_none_match))
        return true;
    if (!preconditions_are_given(out_preconditions) || !find_now(request, name, &current))
        return false;
    hold = model_preconditions_hold(out_preconditions, current);
    if (!hold && is_done_already(request, current, sha256)) {
        reply_done_already(request, current, sha256, name);
    } else if (!hold) {
        problem_reply(request, PROBLEM_PRECONDITION_FAILED,
                      "the current model does not meet the request's preconditions");
    }
    generation_release(current);
    return !hold;
}

bool write_refuse_behind(struct request *request, struct zt_text name)
{
    char path[MODEL_PATH_SIZE];

    if (!model_is_known_behind(request->server, name, path))
        return false;
    problem_reply(request, PROBLEM_CONFLICT, MODEL_BEHIND, path);
    return true;
}

bool write_refuse_large(struct request *request, uint64_t length)
{
    uint64_t most = (uint64_t)config_number(&request->server->config->upload.max_bytes);

    if (length == UINT64_MAX || length <= most)
        return false;
    problem_reply(request, PROBLEM_TOO_LARGE,
                  "larger than this server accepts: upload.max_bytes is %llu",
                  (unsigned long long)most);
    return true;
}

/* What cannot be found out is left to the write. */
bool write_refuse_full(struct request *request, uint64_t length)
{
    struct store *store = request->server->store;
    uint64_t space;

    if (store->ops->space(store, &space, NULL) != ZT_OK || length <= space)
        return false;
    problem_reply(request, PROBLEM_INSUFFICIENT_STORAGE,
                  "there is not enough free space beyond the reserve");
    return true;
}

void write_reply_crowded(struct request *request, unsigned limit, const char *key)
{
    problem_reply(request, PROBLEM_RATE_LIMITED,
                  "this client already has %u uploads in progress: %s", limit, key);
    representation_field(&request->reply, "Retry-After", RETRY_AFTER_S);
}

void *write_context(struct request *request, size_t size)
{
    void *context = request_allocate(request, size);

    if (context == NULL)
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
    else
        request->context = memset(context, 0, size);
    return context;
}

/* --- the stored file --- */

/* Less than this is hashed before other workers could begin to help. */
#define CREW_BYTES ((uint64_t)16 << 20)

/* The extension under which a model of that name is stored: its format's name but for PyTorch. */
static const char *extension_of(const struct zt_model *model, const char *name)
{
    const char *slash = strrchr(name, '/');

    if (model != NULL && model->format == ZT_FORMAT_PYTORCH)
        return zt_text_starts_with(zt_text_from(slash != NULL ? slash + 1 : name),
                                   zt_text_from("pytorch_model"))
                   ? ".bin"
                   : ".pt";
    for (unsigned rank = 0; model != NULL && model_extension(rank) != NULL; rank++)
        if (strcmp(model_extension(rank) + 1, model->format_name) == 0)
            return model_extension(rank);
    /* A data shard has no model: it is zTensor 2. */
    return ".zt";
}

struct check {
    const struct publication *publication;
    struct findings *findings;
    struct zt_source *source;
    const struct zt_model *model;
    /* Several objects are hashed at once; the failure of the first of them is reported. */
    pthread_mutex_t lock;
    uint32_t failed_object;
    struct failure failure;
};

static bool fail_model(struct failure *failure, const struct zt_error *error)
{
    bool is_ours = error->status == ZT_IO || error->status == ZT_NO_MEMORY;

    return failure_set(failure, is_ours ? PROBLEM_INTERNAL : PROBLEM_INVALID_MODEL, error);
}

static bool fail_object(struct check *check, uint32_t object, enum problem problem,
                        const struct zt_error *error)
{
    pthread_mutex_lock(&check->lock);
    if (!check->failure.is_set || object < check->failed_object) {
        check->failed_object = object;
        check->failure = (struct failure){.is_set = true, .problem = problem, .error = *error};
    }
    pthread_mutex_unlock(&check->lock);
    return false;
}

static bool fail_digest(struct check *check, uint32_t index, const struct zt_component *component,
                        const struct zt_component_check *result)
{
    struct zt_error error;

    if (result->actual[0] != '\0') {
        zt_fail(&error, ZT_CORRUPT, NULL, component->offset, "expected %s, actual %s",
                result->expected, result->actual);
    } else {
        zt_fail(&error, ZT_CORRUPT, NULL, component->offset,
                "expected %s, but the bytes do not decode", result->expected);
    }
    zt_error_at(&error, zt_object_name(&check->model->objects[index]),
                zt_component_name(component));
    return fail_object(check, index, PROBLEM_DIGEST_MISMATCH, &error);
}

static bool check_component(struct check *check, uint32_t index,
                            const struct zt_component *component)
{
    struct zt_component_check result;
    struct zt_error error;
    unsigned char *verdict =
        &check->findings->verdicts[zt_component_index(check->model, component)];

    *verdict = ZT_VERDICT_UNDIGESTED;
    /* Components in a shard are checked when the shard exists. */
    if (component->digest == NULL || component->shard != 0)
        return true;
    if (zt_component_check(check->model, component, check->source, NULL, &result, &error) != ZT_OK)
        return fail_object(check, index, PROBLEM_INTERNAL, &error);
    *verdict = (unsigned char)result.verdict;
    return result.verdict != ZT_VERDICT_FAILED || fail_digest(check, index, component, &result);
}

static bool check_object_digests(void *context, uint32_t index)
{
    struct check *check = context;
    const struct zt_object *object = &check->model->objects[index];
    const struct zt_component *components = zt_object_components(check->model, object);

    for (uint32_t i = 0; i < object->component_count; i++)
        if (!check_component(check, index, &components[i]))
            return false;
    return true;
}

static bool check_digests(struct check *check)
{
    const struct crew_work work = {check->model->object_count, check_object_digests, check};
    struct workers *helpers =
        zt_source_size(check->source) < CREW_BYTES ? NULL : check->publication->server->workers;

    pthread_mutex_init(&check->lock, NULL);
    crew_run(helpers, &work);
    pthread_mutex_destroy(&check->lock);
    return !check->failure.is_set;
}

/* Contents that no rule can judge here (an unknown encoding, bytes in a shard) are accepted. */
static bool check_contents(struct check *check)
{
    const struct zt_files files = {check->source, NULL};

    for (uint32_t i = 0; i < check->model->object_count; i++) {
        struct zt_error error;
        enum zt_status status =
            zt_object_check(check->model, &check->model->objects[i], &files, &error);

        if (status != ZT_OK && status != ZT_UNSUPPORTED)
            return fail_model(&check->failure, &error);
    }
    return true;
}

static bool check_data(struct check *check)
{
    struct findings *findings = check->findings;

    findings->verdict_count = check->model->component_count;
    findings->verdicts = calloc((size_t)findings->verdict_count + 1, 1);
    if (findings->verdicts == NULL)
        return failure_no_memory(&check->failure, "checking the model");
    return check_digests(check) && check_contents(check);
}

/* --- the shards --- */

static bool fail_shard(struct check *check, const struct zt_shard *shard)
{
    access_count_failure(ACCESS_MODEL);
    return failure_refuse(&check->failure, PROBLEM_FORBIDDEN,
                          "shard %.*s: this client may not use a file of this name",
                          (int)shard->name_length, shard->name);
}

static bool covers_shard(struct check *check, const char *path, const struct zt_shard *shard)
{
    char *sibling = zt_shard_sibling(path, shard);
    struct zt_text name;
    bool covered;

    if (sibling == NULL)
        return failure_no_memory(&check->failure, "the name of a shard");
    name = zt_text_from(sibling);
    assert(name.length > strlen(".zt"));
    name.length -= strlen(".zt");
    covered = name_filter_passes(check->publication->covers, name);
    free(sibling);
    return covered || fail_shard(check, shard);
}

/* The names of external data are no models' names, so their files cannot be uploaded; and a file
 * that is there already may be any file of the folder, which the client need not be allowed to
 * see. */
static bool refuse_external(struct check *check, const struct zt_shard *shard)
{
    return failure_refuse(&check->failure, PROBLEM_INVALID_MODEL,
                          "the model has external data, in %.*s, which cannot be uploaded: upload "
                          "it as one file, or place its files on the server",
                          (int)shard->name_length, shard->name);
}

/* A shard's file is served, and removed, as part of the model: whoever could name any file as a
 * shard would get at models that it may not see. Nothing is said about the file, not even whether
 * it exists. */
static bool check_shards(struct check *check)
{
    const struct zt_model *model = check->model;
    char path[MODEL_NAME_MAX + sizeof(".zt")];

    if (model != NULL && model->shard_count > 0 && model->shards[0].kind == ZT_SHARD_DATA)
        return refuse_external(check, &model->shards[0]);
    if (model == NULL || check->publication->covers.passes == NULL)
        return true;
    snprintf(path, sizeof(path), "%s.zt", check->publication->name);
    for (uint32_t i = 0; i < model->shard_count; i++)
        if (!covers_shard(check, path, &model->shards[i]))
            return false;
    return true;
}

/* *out_model is NULL for a data shard, which has nothing to check, and for an index, whose
 * extension is found. */
static bool open_model(struct check *check, struct zt_model **out_model)
{
    const struct publication *publication = check->publication;
    struct store *store = publication->server->store;
    struct zt_error error;
    enum zt_status status;

    if (store->ops->read_back(publication->stored, &check->source, &error) != ZT_OK)
        return failure_of_store(&check->failure, &error);
    check->findings->has_identity =
        store->ops->identity_of(store, check->source, &check->findings->identity);
    status = zt_model_open(check->source, out_model, &error);
    if (status == ZT_INVALID && index_is_meant(check->source))
        return index_check(publication, check->source, &check->findings->extension,
                           &check->failure);
    return status == ZT_OK || status == ZT_DATA_SHARD || fail_model(&check->failure, &error);
}

bool publication_check(const struct publication *publication, struct findings *out_findings,
                       struct failure *failure)
{
    struct check check = {.publication = publication, .findings = out_findings};
    struct zt_model *model = NULL;
    bool valid;

    *out_findings = (struct findings){0};
    valid = open_model(&check, &model);
    check.model = model;
    if (valid && out_findings->extension == NULL)
        out_findings->extension = extension_of(model, publication->name);
    valid = valid &&
            (model == NULL || !written_name_is_doubled(publication->name, out_findings->extension,
                                                       &check.failure)) &&
            check_shards(&check) && (model == NULL || check_data(&check));
    zt_model_free(model);
    assert(valid == !check.failure.is_set);
    return valid || failure_set(failure, check.failure.problem, &check.failure.error);
}
