/* Copying models into one.
 *
 * The numbers of objects, components and dimensions are known, so each array has exactly the room
 * that it needs. Texts that every tensor has in common ("data", "raw", its type) are not copied for
 * each of them. */
#include "join/copy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_build.h"

/* Texts are taken from the arena in runs of this length: it aligns what it gives. */
#define RUN_BYTES ((size_t)32 << 10)
/* More than GGUF has types, whose tensors share their attributes. */
#define SHARED_MAX 64

/* A text that several entries of one part point to, and its copy. */
struct shared_text {
    const void *from;
    const char *copy;
    size_t length;
};

struct copying {
    struct zt_model *model;
    struct zt_object *objects;
    struct zt_component *components;
    uint64_t *dimensions;
    uint64_t dimension_count;
    char *run;
    size_t run_left;
    struct shared_text shared[SHARED_MAX]; /* by a hash of the address */
};

/* --- texts --- */

enum zt_status zt_text_keep(struct zt_model *model, struct zt_text text, const char **out_copy,
                            struct zt_error *error)
{
    void *copy;
    enum zt_status status = zt_arena_take(&model->storage->arena, text.length, &copy, error);

    if (status != ZT_OK)
        return status;
    if (text.length > 0)
        memcpy(copy, text.bytes, text.length);
    *out_copy = copy;
    return ZT_OK;
}

/* Replaces a text by its copy. NULL stays. */
static enum zt_status copy_text(struct copying *copying, const char **text, size_t length,
                                struct zt_error *error)
{
    enum zt_status status;
    void *run;

    if (*text == NULL)
        return ZT_OK;
    if (length > RUN_BYTES / 8)
        return zt_text_keep(copying->model, (struct zt_text){*text, length}, text, error);
    if (copying->run == NULL || length > copying->run_left) {
        status = zt_arena_take(&copying->model->storage->arena, RUN_BYTES, &run, error);
        if (status != ZT_OK)
            return status;
        copying->run = run;
        copying->run_left = RUN_BYTES;
    }
    assert(length <= copying->run_left);
    memcpy(copying->run, *text, length);
    *text = copying->run;
    copying->run += length;
    copying->run_left -= length;
    return ZT_OK;
}

/* Like copy_text, for texts that many entries have. */
static enum zt_status copy_shared(struct copying *copying, const char **text, size_t length,
                                  struct zt_error *error)
{
    const uintptr_t address = (uintptr_t)*text;
    struct shared_text *shared = &copying->shared[(address ^ address >> 6) % SHARED_MAX];
    enum zt_status status;

    if (*text == NULL)
        return ZT_OK;
    if (shared->from != *text || shared->length != length) {
        const void *from = *text;

        status = copy_text(copying, text, length, error);
        if (status != ZT_OK)
            return status;
        *shared = (struct shared_text){from, *text, length};
    }
    *text = shared->copy;
    return ZT_OK;
}

/* Like copy_shared, for texts that are most often one that the library itself has. */
static enum zt_status copy_usual(struct copying *copying, const char **text, size_t length,
                                 const char *usual, struct zt_error *error)
{
    if (*text != NULL && usual != NULL && strlen(usual) == length &&
        memcmp(*text, usual, length) == 0) {
        *text = usual;
        return ZT_OK;
    }
    return copy_shared(copying, text, length, error);
}

/* --- entries --- */

static enum zt_status copy_words(struct copying *copying, const uint64_t **words, unsigned count,
                                 struct zt_error *error)
{
    const char *copy;
    enum zt_status status;

    if (*words == NULL)
        return ZT_OK;
    status =
        zt_text_keep(copying->model,
                     (struct zt_text){(const char *)*words, count * sizeof(**words)}, &copy, error);
    if (status == ZT_OK)
        *words = (const uint64_t *)(const void *)copy;
    return status;
}

static enum zt_status copy_arrangement(struct copying *copying, struct zt_component *component,
                                       struct zt_error *error)
{
    const struct zt_arrangement *from = component->arrangement;
    struct zt_arrangement *to;
    void *held;
    enum zt_status status;

    if (from == NULL)
        return ZT_OK;
    status = zt_arena_take(&copying->model->storage->arena, sizeof(*to), &held, error);
    if (status != ZT_OK)
        return status;
    to = held;
    *to = *from;
    component->arrangement = to;
    status = copy_words(copying, &to->shape, from->rank, error);
    return status == ZT_OK ? copy_words(copying, &to->strides, from->rank, error) : status;
}

static enum zt_status copy_component(struct copying *copying, const struct zt_component *from,
                                     uint32_t shard, struct zt_error *error)
{
    const char *type_name = zt_logical_name((enum zt_logical)from->logical);
    struct zt_component *to = &copying->components[copying->model->component_count++];
    enum zt_status status;

    *to = *from;
    to->shard = shard;
    status = copy_usual(copying, &to->name, to->name_length, "data", error);
    if (status == ZT_OK)
        status = copy_usual(copying, &to->type, to->type_length, type_name, error);
    if (status == ZT_OK)
        status = copy_usual(copying, &to->encoding_name, to->encoding_length, "raw", error);
    if (status == ZT_OK)
        status = copy_text(copying, &to->digest, to->digest_length, error);
    return status == ZT_OK ? copy_arrangement(copying, to, error) : status;
}

static enum zt_status copy_object(struct copying *copying, const struct zt_part *part,
                                  const struct zt_object *from, uint32_t shard,
                                  struct zt_error *error)
{
    struct zt_model *model = copying->model;
    struct zt_object *to = &copying->objects[model->object_count++];
    const struct zt_component *components = zt_object_components(part->model, from);
    const char *attributes = (const char *)from->attributes;
    enum zt_status status;

    *to = *from;
    to->first_component = model->component_count;
    to->first_dimension = (uint32_t)copying->dimension_count;
    if (from->rank > 0)
        memcpy(copying->dimensions + copying->dimension_count, zt_object_shape(part->model, from),
               from->rank * sizeof(*copying->dimensions));
    copying->dimension_count += from->rank;
    status = copy_text(copying, &to->name, to->name_length, error);
    if (status == ZT_OK)
        status = copy_usual(copying, &to->format, to->format_length, "dense", error);
    if (status == ZT_OK)
        status = copy_shared(copying, &attributes, to->attributes_length, error);
    to->attributes = (const uint8_t *)attributes;
    for (uint32_t i = 0; i < from->component_count && status == ZT_OK; i++)
        status = copy_component(copying, &components[i], shard, error);
    assert(status != ZT_OK ||
           model->component_count - to->first_component == from->component_count);
    return status;
}

static enum zt_status copy_part(struct copying *copying, const struct zt_part *part, uint32_t shard,
                                struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    /* Another part's texts may have the same addresses as this one's did. */
    memset(copying->shared, 0, sizeof(copying->shared));
    for (uint32_t i = 0; i < part->model->object_count && status == ZT_OK; i++)
        status = copy_object(copying, part, &part->model->objects[i], shard, error);
    return status;
}

/* --- the model --- */

struct counts {
    uint64_t objects;
    uint64_t components;
    uint64_t dimensions;
};

static enum zt_status count_all(const struct zt_part *parts, size_t part_count,
                                struct counts *out_counts, struct zt_error *error)
{
    struct counts counts = {0};

    for (size_t i = 0; i < part_count; i++) {
        const struct zt_model *model = parts[i].model;

        counts.objects += model->object_count;
        counts.components += model->component_count;
        for (uint32_t k = 0; k < model->object_count; k++)
            counts.dimensions += model->objects[k].rank;
    }
    if (counts.objects > UINT32_MAX || counts.components > UINT32_MAX ||
        counts.dimensions > UINT32_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the parts together have more tensors than a model may have");
    *out_counts = counts;
    return ZT_OK;
}

/* At least one entry each, so that no pointer is NULL. */
static enum zt_status reserve(struct copying *copying, const struct counts *counts,
                              struct zt_error *error)
{
    struct zt_model *model = calloc(1, sizeof(*model));

    if (model == NULL)
        return zt_fail_memory(error, "a model");
    copying->model = model;
    model->storage = calloc(1, sizeof(*model->storage));
    if (model->storage == NULL)
        return zt_fail_memory(error, "a model");
    /* The copied data has passed the budgets of the parts. */
    zt_arena_init(&model->storage->arena, SIZE_MAX / 2);
    copying->objects = calloc(counts->objects + 1, sizeof(*copying->objects));
    model->objects = copying->objects;
    copying->components = calloc(counts->components + 1, sizeof(*copying->components));
    model->components = copying->components;
    copying->dimensions = calloc(counts->dimensions + 1, sizeof(*copying->dimensions));
    model->dimensions = copying->dimensions;
    if (model->objects == NULL || model->components == NULL || model->dimensions == NULL)
        return zt_fail_memory(error, "a model");
    return ZT_OK;
}

static enum zt_status copy_head(struct zt_model *to, const struct zt_model *from,
                                struct zt_error *error)
{
    to->format = from->format;
    to->format_name = from->format_name;
    to->version.length = from->version.length;
    return zt_text_keep(to, from->version, &to->version.bytes, error);
}

enum zt_status zt_models_copy(const struct zt_part *parts, size_t part_count,
                              const uint32_t *shards, struct zt_model **out_model,
                              struct zt_error *error)
{
    struct copying copying = {0};
    struct counts counts = {0};
    enum zt_status status = count_all(parts, part_count, &counts, error);

    assert(part_count > 0);
    if (status != ZT_OK)
        return status;
    status = reserve(&copying, &counts, error);
    if (status == ZT_OK)
        status = copy_head(copying.model, parts[0].model, error);
    for (size_t i = 0; i < part_count && status == ZT_OK; i++)
        status = copy_part(&copying, &parts[i], shards[i], error);
    if (status != ZT_OK) {
        zt_model_free(copying.model);
        return status;
    }
    assert(copying.model->object_count == counts.objects);
    assert(copying.model->component_count == counts.components);
    assert(copying.dimension_count == counts.dimensions);
    *out_model = copying.model;
    return ZT_OK;
}
