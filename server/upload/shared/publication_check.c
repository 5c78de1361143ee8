/* Validation of a whole stored file: it is opened with the reader that serves it, then the digests
 * that it states are checked, then the rules of its content. The first step that fails ends it. */
#include "upload/shared/publication_check.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/workers.h"
#include "zt/verify.h"

/* Less is hashed before other workers have begun to help. */
#define CREW_BYTES ((uint64_t)16 << 20)

static const char *extension_of(const struct zt_model *model)
{
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
    /* What lies in a shard is checked when that shard is there. */
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

/* What no rule can judge here (an unknown encoding, bytes in a shard) is no reason to refuse. */
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

/* *out_model is NULL for a data shard, which has nothing to check. */
static bool open_model(struct check *check, struct zt_model **out_model)
{
    const struct publication *publication = check->publication;
    struct zt_error error;
    enum zt_status status;

    if (publication->server->store->ops->read_back(publication->stored, &check->source, &error) !=
        ZT_OK)
        return failure_of_store(&check->failure, &error);
    check->findings->has_identity = store_identity_of(check->source, &check->findings->identity);
    status = zt_model_open(check->source, out_model, &error);
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
    if (valid)
        out_findings->extension = extension_of(model);
    valid = valid && (model == NULL || check_data(&check));
    zt_model_free(model);
    assert(valid == !check.failure.is_set);
    return valid || failure_set(failure, check.failure.problem, &check.failure.error);
}
