/* Decides which models have a view, and plans its files and their lengths. */
#include "views/model_view.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/export_reply.h"
#include "catalog/catalog.h"
#include "derived/export_source.h"
#include "parts/split_path.h"
#include "zt/digest.h"

bool model_view_is_of(const char *path)
{
    static const char *const extensions[] = {".zt", ".gguf", ".mag", ".npz"};
    char split[MODEL_PATH_SIZE];
    size_t name_length;
    unsigned rank;

    if (!model_path_split(path, &name_length, &rank) || model_rank_is_index(rank) ||
        split_path_of_part(path, split))
        return false;
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (strcmp(model_extension(rank), extensions[i]) == 0)
            return true;
    return false;
}

static uint64_t manifest_hash_of(const struct generation *generation)
{
    return generation->model != NULL ? generation->model->manifest_hash : 0;
}

bool model_view_is_outdated(const struct server *server, const struct model_view *view)
{
    struct generation *known = catalog_peek_path(server->catalog, zt_text_from(view->path));
    const bool is_outdated = known != NULL &&
                             store_identity_equal(&known->identity, &view->identity) &&
                             manifest_hash_of(known) != view->manifest_hash;

    generation_release(known);
    return is_outdated;
}

bool model_view_is_from(const struct model_view *view, const struct generation *generation)
{
    /* If a model has data in other files, its identity does not cover them. */
    return generation->model != NULL && !generation->is_joined && generation->shards.count == 0 &&
           strcmp(generation->path, view->path) == 0 &&
           store_identity_equal(&generation->identity, &view->identity) &&
           manifest_hash_of(generation) == view->manifest_hash;
}

struct export_query model_view_query(const struct model_view *view, uint32_t part)
{
    assert(part < view->part_count || view->part_count == 0);
    return (struct export_query){.target = ZT_TARGET_SAFETENSORS,
                                 .prefix = {"", 0},
                                 .first = view->parts[part].first,
                                 .count = view->parts[part].count,
                                 .is_for_torch = true};
}

/* Uses the names of transformers. */
void model_view_name(const struct model_view *view, uint32_t part, char out_name[VIEW_NAME_SIZE])
{
    int length;

    if (part == VIEW_INDEX)
        length = snprintf(out_name, VIEW_NAME_SIZE, "%s.safetensors.index.json", view->stem);
    else if (view->part_count == 1)
        length = snprintf(out_name, VIEW_NAME_SIZE, "%s.safetensors", view->stem);
    else
        length = snprintf(out_name, VIEW_NAME_SIZE, "%s-%05" PRIu32 "-of-%05" PRIu32 ".safetensors",
                          view->stem, part + 1, view->part_count);
    assert(length > 0 && length < (int)VIEW_NAME_SIZE);
}

/* --- the index --- */

/* Returns the object's size in safetensors. */
static uint64_t object_size(const struct zt_model *model, uint32_t index)
{
    const struct zt_object *object = &model->objects[index];
    uint64_t size = 0;

    assert(index < model->object_count);
    for (uint32_t i = 0; i < object->component_count; i++) {
        const uint64_t length = model->components[object->first_component + i].decoded_length;

        size = length < UINT64_MAX - size ? size + length : UINT64_MAX;
    }
    return size;
}

static uint64_t model_size(const struct zt_model *model)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const uint64_t more = object_size(model, i);

        size = more < UINT64_MAX - size ? size + more : UINT64_MAX;
    }
    return size;
}

void model_view_write_index(const struct model_view *view, const struct generation *generation,
                            struct json *json)
{
    const struct zt_model *model = generation->model;
    char name[VIEW_NAME_SIZE];

    json_object_begin(json);
    json_object_member(json, "metadata");
    json_uint_member(json, "total_size", model_size(model));
    json_object_end(json);
    json_object_member(json, "weight_map");
    for (uint32_t part = 0; part < view->part_count; part++) {
        const struct view_part *of = &view->parts[part];

        model_view_name(view, part, name);
        /* Fewer objects if the file has other bytes than the view, and the same identity. */
        for (uint32_t i = of->first; i < of->first + of->count && i < model->object_count; i++) {
            json_key(json, zt_object_name(&model->objects[i]));
            json_put_string(json, name);
        }
    }
    json_object_end(json);
    json_object_end(json);
}

static enum zt_status measure_index(struct model_view *view, const struct generation *generation,
                                    struct zt_error *error)
{
    struct zt_digest digest;
    struct json json;

    assert(view->part_count > 1);
    json_init(&json, false);
    model_view_write_index(view, generation, &json);
    if (json.failed || zt_digest_of(ZT_DIGEST_SHA256, json.text, json.length, &digest) != ZT_OK) {
        json_free(&json);
        return zt_fail_memory(error, "an index");
    }
    memcpy(view->index_sha256, digest.bytes, sizeof(view->index_sha256));
    view->index_length = json.length;
    json_free(&json);
    return ZT_OK;
}

/* --- making --- */

static struct model_view *new_view(const char *path, const char *stem,
                                   const struct file_identity *identity)
{
    struct model_view *view = calloc(1, sizeof(*view));

    if (view == NULL)
        return NULL;
    atomic_init(&view->references, 1);
    view->identity = *identity;
    view->path = strdup(path);
    view->stem = strdup(stem);
    view->parts = calloc(1, sizeof(*view->parts));
    if (view->path != NULL && view->stem != NULL && view->parts != NULL)
        return view;
    model_view_release(view);
    return NULL;
}

/* Fills parts up to about this size; a larger object gets its own part. Returns the number of
 * parts. parts has room for them, or is NULL. */
static uint32_t split(const struct zt_model *model, uint64_t part_bytes, struct view_part *parts)
{
    uint32_t part = 0;
    uint32_t first = 0;
    uint64_t size = 0;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const uint64_t more = object_size(model, i);

        if (i > first && (size > part_bytes || more > part_bytes - size)) {
            if (parts != NULL)
                parts[part] = (struct view_part){.first = first, .count = i - first};
            part++;
            first = i;
            size = 0;
        }
        size += more;
    }
    if (parts != NULL)
        parts[part] = (struct view_part){.first = first, .count = model->object_count - first};
    return part + 1;
}

/* Returns the bytes of tensors per part. Any two consecutive parts have more than that, so there
 * are at most VIEW_PARTS_MAX. */
static uint64_t part_bytes(const struct server *server, uint64_t size)
{
    const uint64_t wanted = (uint64_t)config_number(&server->config->hub.shard_bytes);
    const uint64_t least = size / (VIEW_PARTS_MAX / 2 - 1) + 1;

    return wanted > least ? wanted : least;
}

static enum zt_status lay_parts_out(struct server *server, const struct zt_model *model,
                                    struct model_view *view, struct zt_error *error)
{
    const uint64_t size = model_size(model);
    const uint64_t most = part_bytes(server, size);
    struct view_part *parts;

    /* Then the model has a length that cannot be determined. */
    if (size == UINT64_MAX)
        return ZT_OK;
    view->part_count = split(model, most, NULL);
    assert(view->part_count >= 1 && view->part_count <= VIEW_PARTS_MAX);
    if (view->part_count == 1)
        return ZT_OK;
    parts = calloc(view->part_count, sizeof(*parts));
    if (parts == NULL)
        return zt_fail_memory(error, "a view");
    free(view->parts);
    view->parts = parts;
    split(model, most, parts);
    return ZT_OK;
}

/* Plans the files of the model, if safetensors can represent it. */
static enum zt_status lay_out(struct server *server, struct generation *generation,
                              struct model_view *view, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    if (generation->model->object_count > 0)
        status = lay_parts_out(server, generation->model, view, error);
    for (uint32_t i = 0; i < view->part_count && status == ZT_OK; i++) {
        const struct export_query query = model_view_query(view, i);

        status = export_size(server, generation, &query, &view->parts[i].length, error);
    }
    if (status == ZT_OK && view->part_count > 1)
        status = measure_index(view, generation, error);
    if (status != ZT_UNSUPPORTED)
        return status;
    view->part_count = 0;
    return ZT_OK;
}

static enum zt_status look_at(struct server *server, struct generation *generation,
                              struct model_view *view, struct zt_error *error)
{
    if (!store_identity_equal(&generation->identity, &view->identity))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the file has been replaced");
    view->manifest_hash = manifest_hash_of(generation);
    if (!model_view_is_from(view, generation))
        return ZT_OK;
    return lay_out(server, generation, view, error);
}

enum zt_status model_view_make(struct server *server, const char *path, const char *stem,
                               const struct file_identity *identity, struct model_view **out_view,
                               struct zt_error *error)
{
    struct model_view *view = new_view(path, stem, identity);
    struct generation *generation;
    enum zt_status status;

    *out_view = NULL;
    if (view == NULL)
        return zt_fail_memory(error, "a view");
    generation = catalog_update(server->catalog, path);
    if (generation == NULL)
        status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the file cannot be opened");
    else
        status = look_at(server, generation, view, error);
    generation_release(generation);
    if (status == ZT_OK)
        *out_view = view;
    else
        model_view_release(view);
    return status;
}

struct model_view *model_view_hold(struct model_view *view)
{
    atomic_fetch_add(&view->references, 1);
    return view;
}

void model_view_release(struct model_view *view)
{
    if (view == NULL || atomic_fetch_sub(&view->references, 1) > 1)
        return;
    free(view->path);
    free(view->stem);
    free(view->parts);
    free(view);
}
