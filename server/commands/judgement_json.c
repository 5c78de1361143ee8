/* {"path", "state": "ok"|"bad"|"data-shard", "format", "version", "objects", "components": {…},
 * "failures", …}: counts are 0 and texts null where the file could not be opened. */
#include "commands/judgement_json.h"

#include <stdio.h>

#include "base/json_write.h"

static void put_name(struct json *json, const char *key, const char *name, size_t length)
{
    json_key_string(json, key);
    json_text(json, (struct zt_text){name, length});
}

static void put_failure(struct json *json, const char *key, const struct zt_error *error)
{
    json_object_member(json, key);
    json_string_member(json, "detail", error->message);
    if (error->rule != NULL)
        json_string_member(json, "rule", error->rule);
    if (error->has_object)
        put_name(json, "object", error->object, error->object_length);
    if (error->component_length > 0)
        put_name(json, "component", error->component, error->component_length);
    if (error->offset != ZT_NO_OFFSET)
        json_uint_member(json, "offset", error->offset);
    json_object_end(json);
}

static void put_kind(struct json *json, const struct zt_model *model)
{
    json_key_string(json, "format");
    if (model != NULL)
        json_put_string(json, model->format_name);
    else
        json_put_null(json);
    json_key_string(json, "version");
    if (model != NULL)
        json_text(json, model->version);
    else
        json_put_null(json);
    json_uint_member(json, "objects", model != NULL ? model->object_count : 0);
}

static void put_components(struct json *json, const struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;

    json_object_member(json, "components");
    json_uint_member(json, "total", model != NULL ? model->component_count : 0);
    json_uint_member(json, "verified", judgement->verified);
    json_uint_member(json, "undigested", judgement->undigested);
    json_object_end(json);
    json_uint_member(json, "failures", judgement->bad);
    json_uint_member(json, "unsupported", judgement->unsupported);
    json_uint_member(json, "unreferenced_ranges", judgement->gaps.unreferenced);
}

static void put_judgement(struct json *json, const struct judgement *judgement,
                          const struct zt_error *error)
{
    const bool is_shard = error != NULL && error->status == ZT_DATA_SHARD;

    json_object_begin(json);
    json_string_member(json, "path", judgement->path);
    json_string_member(json, "state", error == NULL ? "ok" : is_shard ? "data-shard" : "bad");
    put_kind(json, judgement->file.model);
    put_components(json, judgement);
    if (error != NULL && !is_shard)
        put_failure(json, "error", error);
    if (judgement->unsupported > 0)
        put_failure(json, "first_unsupported", &judgement->first_unsupported);
    json_object_end(json);
}

void judgement_print_json(const struct judgement *judgement, const struct zt_error *error,
                          FILE *stream)
{
    struct json json;

    json_init(&json, true);
    put_judgement(&json, judgement, error);
    if (!json.failed)
        fwrite(json.text, 1, json.length, stream);
    json_free(&json);
}
