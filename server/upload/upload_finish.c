/* The last byte is there: hash, validate with the reader that serves, check the digests that the file states and then
 * the rules of its content, publish. One function a step; the first that refuses ends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upload/upload_state.h"
#include "zt/verify.h"

static const char *extension_of(const struct zt_model *model)
{
    for (unsigned rank = 0; model != NULL && model_extension(rank) != NULL; rank++) {
        if (strcmp(model_extension(rank) + 1, model->format_name) == 0) {
            return model_extension(rank);
        }
    }
    /* A data shard has no model: it is zTensor 2. */
    return ".zt";
}

static bool refuse_model(struct upload *upload, const struct zt_error *error)
{
    bool is_ours = error->status == ZT_IO || error->status == ZT_NO_MEMORY;
    return upload_fail(upload, is_ours ? PROBLEM_INTERNAL : PROBLEM_INVALID_MODEL, error);
}

static bool refuse_digest(struct upload *upload, const struct zt_object *object, const struct zt_component *component,
                          const struct zt_component_check *check)
{
    struct zt_error error;
    if (check->actual[0] != '\0') {
        zt_fail(&error, ZT_CORRUPT, NULL, component->offset, "expected %s, actual %s", check->expected, check->actual);
    } else {
        zt_fail(&error, ZT_CORRUPT, NULL, component->offset, "expected %s, but the bytes do not decode",
                check->expected);
    }
    zt_error_at(&error, zt_object_name(object), zt_component_name(component));
    return upload_fail(upload, PROBLEM_DIGEST_MISMATCH, &error);
}

static bool check_component(struct upload *upload, const struct zt_model *model, const struct zt_object *object,
                            const struct zt_component *component, struct zt_source *source)
{
    struct zt_component_check check;
    struct zt_error error;
    unsigned char *verdict = &upload->verdicts[zt_component_index(model, component)];
    *verdict = ZT_VERDICT_UNDIGESTED;
    /* What lies in a shard is checked when that shard is there. */
    if (component->digest == NULL || component->shard != 0) {
        return true;
    }
    if (zt_component_check(model, component, source, NULL, &check, &error) != ZT_OK) {
        return upload_fail(upload, PROBLEM_INTERNAL, &error);
    }
    *verdict = (unsigned char)check.verdict;
    return check.verdict != ZT_VERDICT_FAILED || refuse_digest(upload, object, component, &check);
}

static bool check_digests(struct upload *upload, const struct zt_model *model, struct zt_source *source)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        const struct zt_component *components = zt_object_components(model, object);
        for (uint32_t j = 0; j < object->component_count; j++) {
            if (!check_component(upload, model, object, &components[j], source)) {
                return false;
            }
        }
    }
    return true;
}

/* What no rule can judge here (an unknown encoding, bytes in a shard) is no reason to refuse. */
static bool check_contents(struct upload *upload, const struct zt_model *model, struct zt_source *source)
{
    const struct zt_files files = {source, NULL};
    for (uint32_t i = 0; i < model->object_count; i++) {
        struct zt_error error;
        enum zt_status status = zt_object_check(model, &model->objects[i], &files, &error);
        if (status != ZT_OK && status != ZT_UNSUPPORTED) {
            return refuse_model(upload, &error);
        }
    }
    return true;
}

static bool check_data(struct upload *upload, const struct zt_model *model, struct zt_source *source)
{
    struct zt_error error;
    upload->verdict_count = model->component_count;
    upload->verdicts = calloc((size_t)model->component_count + 1, 1);
    if (upload->verdicts == NULL) {
        zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to check the model");
        return refuse_model(upload, &error);
    }
    return check_digests(upload, model, source) && check_contents(upload, model, source);
}

/* *out_model is NULL for a data shard, which has nothing to check. */
static bool open_model(struct upload *upload, struct zt_source **out_source, struct zt_model **out_model)
{
    struct zt_error error;
    if (upload->server->store->ops->read_back(upload->stored, out_source, &error) != ZT_OK) {
        return upload_fail_store(upload, &error);
    }
    *out_model = NULL;
    upload->has_identity = store_identity_of(*out_source, &upload->identity);
    enum zt_status status = zt_model_open(*out_source, out_model, &error);
    return status == ZT_OK || status == ZT_DATA_SHARD || refuse_model(upload, &error);
}

static bool validate_and_publish(struct upload *upload)
{
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;
    if (!open_model(upload, &source, &model)) {
        return false;
    }
    const char *extension = extension_of(model);
    bool valid = model == NULL || check_data(upload, model, source);
    zt_model_free(model);
    return valid && upload_publish(upload, extension);
}

void upload_finish(struct upload *upload)
{
    bool published = upload_hash_finish(upload) && validate_and_publish(upload);
    upload->state = published ? UPLOAD_PUBLISHED : UPLOAD_FAILED;
}
