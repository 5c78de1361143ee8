/* Building a model: arrays that grow within a budget, functions for entries that several readers
 * add, and sorting at the end. */
#include "model/model_build.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/locate.h"
#include "zt/digest.h"

/* Of the 16 n bytes + 1 MiB that a manifest of n bytes may take, the manifest itself takes n,
 * joined texts at most 4 n and the arrays at most 11 n. The costliest object, one of 64 one-byte
 * dimensions, takes less than 10 n. */
#define ARENA_BUDGET_FACTOR  4
#define ARRAYS_BUDGET_FACTOR 11
#define ARENA_BUDGET_BASE    (256u << 10)
#define ARRAYS_BUDGET_BASE   (512u << 10)

static _Atomic uint64_t memory_limit = UINT64_MAX;

void zt_model_set_memory_limit(uint64_t bytes)
{
    atomic_store_explicit(&memory_limit, bytes, memory_order_relaxed);
}

uint64_t zt_model_memory_limit(void)
{
    return atomic_load_explicit(&memory_limit, memory_order_relaxed);
}

static enum zt_status fail_limit(uint64_t limit, struct zt_error *error)
{
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                   "the opened model would take more than %" PRIu64
                   " bytes of memory, the limit for a manifest",
                   limit);
}

/* Rejects a model that takes more than the limit with so many bytes more. */
static enum zt_status check_memory(const struct zt_builder *builder, uint64_t more,
                                   struct zt_error *error)
{
    const uint64_t limit = zt_model_memory_limit();
    const struct zt_model *model = builder->model;
    uint64_t held = builder->held_bytes + model->storage->arena.held_bytes;

    held += model->storage->manifest != NULL ? model->manifest_length : 0;
    return held > limit || more > limit - held ? fail_limit(limit, error) : ZT_OK;
}

static struct zt_named_array shards_named(const struct zt_shard *shards, uint32_t count)
{
    static_assert(offsetof(struct zt_shard, name) == 0, "the name comes first");

    return (struct zt_named_array){(void *)(uintptr_t)shards, count, sizeof(*shards),
                                   offsetof(struct zt_shard, name_length)};
}

static enum zt_status no_memory(struct zt_error *error)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
}

/* Makes room for one more entry in the array whose pointer is at array_at. The budget bounds all
 * arrays together. */
static enum zt_status grow(struct zt_builder *builder, void *array_at, size_t *capacity,
                           size_t count, size_t entry_bytes, struct zt_error *error)
{
    const size_t before = *capacity;
    uint64_t left;
    enum zt_status status;

    assert(count <= before && builder->held_bytes <= builder->budget_bytes);
    if (count < before)
        return ZT_OK;
    status = check_memory(builder, entry_bytes, error);
    if (status != ZT_OK)
        return status;
    left = (builder->budget_bytes - builder->held_bytes) / entry_bytes;
    status = zt_array_reserve(array_at, capacity, count + 1, entry_bytes,
                              left < UINT32_MAX - before ? before + (size_t)left : UINT32_MAX);
    if (status == ZT_LIMIT)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the manifest takes more memory than its length allows");
    if (status != ZT_OK)
        return no_memory(error);
    builder->held_bytes += (uint64_t)(*capacity - before) * entry_bytes;
    assert(builder->held_bytes <= builder->budget_bytes);
    return ZT_OK;
}

/* --- beginning --- */

static enum zt_status read_manifest(struct zt_builder *builder, struct zt_source *source,
                                    struct zt_error *error)
{
    struct zt_model *model = builder->model;
    size_t length = (size_t)model->manifest_length;
    uint8_t *bytes = malloc(length > 0 ? length : 1);

    if (bytes == NULL)
        return no_memory(error);
    assert(model->storage->manifest == NULL);
    model->storage->manifest = bytes;
    if (length > 0) {
        enum zt_status status =
            zt_source_read_at(source, model->manifest_offset, bytes, length, error);

        if (status != ZT_OK)
            return status;
    }
    model->manifest_hash = zt_xxh3(bytes, length);
    return ZT_OK;
}

/* Objects point into these two arrays even without components or dimensions, and adding to NULL
 * would be undefined. */
static enum zt_status reserve_arrays(struct zt_builder *builder, struct zt_error *error)
{
    enum zt_status status = grow(builder, &builder->components, &builder->component_capacity, 0,
                                 sizeof(*builder->components), error);

    if (status != ZT_OK)
        return status;
    return grow(builder, &builder->dimensions, &builder->dimension_capacity, 0,
                sizeof(*builder->dimensions), error);
}

enum zt_status zt_builder_init(struct zt_builder *builder, struct zt_source *source,
                               uint64_t manifest_offset, uint64_t manifest_length,
                               struct zt_error *error)
{
    struct zt_model *model;
    struct zt_model_storage *storage;
    enum zt_status status;

    memset(builder, 0, sizeof(*builder));
    model = calloc(1, sizeof(*model));
    storage = calloc(1, sizeof(*storage));
    if (model == NULL || storage == NULL) {
        free(model);
        free(storage);
        return no_memory(error);
    }
    model->storage = storage;
    model->file_size = zt_source_size(source);
    model->manifest_offset = manifest_offset;
    model->manifest_length = manifest_length;
    zt_arena_init(&storage->arena,
                  ARENA_BUDGET_FACTOR * (size_t)manifest_length + ARENA_BUDGET_BASE);
    builder->budget_bytes = ARRAYS_BUDGET_FACTOR * manifest_length + ARRAYS_BUDGET_BASE;
    builder->model = model;
    status = check_memory(builder, manifest_length, error);
    if (status == ZT_OK)
        status = reserve_arrays(builder, error);
    if (status == ZT_OK)
        status = read_manifest(builder, source, error);
    if (status != ZT_OK)
        zt_builder_abandon(builder);
    return status;
}

void zt_builder_extend(struct zt_builder *builder, uint64_t length)
{
    struct zt_model_storage *storage = builder->model->storage;

    assert(builder->model->manifest_length == 0 || storage->manifest == NULL);
    free(storage->manifest);
    storage->manifest = NULL;
    builder->model->manifest_length += length;
    storage->arena.budget_bytes += ARENA_BUDGET_FACTOR * (size_t)length;
    builder->budget_bytes += ARRAYS_BUDGET_FACTOR * length;
}

/* --- adding --- */

enum zt_status zt_builder_object(struct zt_builder *builder, struct zt_object **out_object,
                                 struct zt_error *error)
{
    struct zt_model *model = builder->model;
    struct zt_object *object;
    enum zt_status status = grow(builder, &builder->objects, &builder->object_capacity,
                                 model->object_count, sizeof(*builder->objects), error);

    if (status != ZT_OK)
        return status;
    object = &builder->objects[model->object_count++];
    memset(object, 0, sizeof(*object));
    object->first_component = model->component_count;
    object->first_dimension = builder->dimension_count;
    *out_object = object;
    return ZT_OK;
}

struct zt_object *zt_last_object(const struct zt_builder *builder)
{
    assert(builder->model->object_count > 0);
    assert(builder->model->object_count <= builder->object_capacity);
    return &builder->objects[builder->model->object_count - 1];
}

struct zt_component *zt_last_component(const struct zt_builder *builder)
{
    assert(builder->model->component_count > 0);
    assert(builder->model->component_count <= builder->component_capacity);
    return &builder->components[builder->model->component_count - 1];
}

enum zt_status zt_builder_component(struct zt_builder *builder, struct zt_component **out_component,
                                    struct zt_error *error)
{
    struct zt_model *model = builder->model;
    struct zt_object *object = zt_last_object(builder);
    struct zt_component *component;
    enum zt_status status = grow(builder, &builder->components, &builder->component_capacity,
                                 model->component_count, sizeof(*builder->components), error);

    if (status != ZT_OK)
        return status;
    component = &builder->components[model->component_count++];
    memset(component, 0, sizeof(*component));
    object->component_count++;
    assert(object->first_component + object->component_count == model->component_count);
    *out_component = component;
    return ZT_OK;
}

enum zt_status zt_builder_dimension(struct zt_builder *builder, uint64_t extent,
                                    struct zt_error *error)
{
    struct zt_object *object = zt_last_object(builder);
    enum zt_status status = grow(builder, &builder->dimensions, &builder->dimension_capacity,
                                 builder->dimension_count, sizeof(*builder->dimensions), error);

    assert(object->rank < ZT_RANK_MAX);
    if (status != ZT_OK)
        return status;
    builder->dimensions[builder->dimension_count++] = extent;
    object->rank++;
    return ZT_OK;
}

enum zt_status zt_builder_shard(struct zt_builder *builder, struct zt_shard **out_shard,
                                struct zt_error *error)
{
    struct zt_model *model = builder->model;
    struct zt_shard *shard;
    enum zt_status status = grow(builder, &builder->shards, &builder->shard_capacity,
                                 model->shard_count, sizeof(*builder->shards), error);

    if (status != ZT_OK)
        return status;
    shard = &builder->shards[model->shard_count++];
    memset(shard, 0, sizeof(*shard));
    *out_shard = shard;
    return ZT_OK;
}

/* --- finishing --- */

/* Sorts one array and rejects a name that occurs twice, at its second occurrence in the file.
 * *out_name is then the name, which the caller adds to the error. */
static enum zt_status sort_by_name(const struct zt_builder *builder,
                                   const struct zt_named_array *array, const char *rule,
                                   struct zt_text *out_name, struct zt_error *error)
{
    enum zt_status status = zt_names_sort(array, error);
    size_t second;
    uint64_t a, b;

    if (status != ZT_OK)
        return status;
    second = zt_names_duplicate(array);
    if (second == 0)
        return ZT_OK;
    assert(second < array->count);
    *out_name = zt_names_at(array, second);
    a = zt_manifest_position(builder->model, zt_names_at(array, second - 1).bytes);
    b = zt_manifest_position(builder->model, out_name->bytes);
    return zt_fail(error, ZT_INVALID, rule, a != ZT_NO_OFFSET && a > b ? a : b,
                   "a name occurs twice");
}

static enum zt_status sort_components(struct zt_builder *builder, const char *rule,
                                      struct zt_error *error)
{
    for (uint32_t i = 0; i < builder->model->object_count; i++) {
        const struct zt_object *object = &builder->objects[i];
        struct zt_named_array array = zt_components_named(
            builder->components + object->first_component, object->component_count);
        struct zt_text name = {NULL, 0};
        enum zt_status status = sort_by_name(builder, &array, rule, &name, error);

        if (status == ZT_INVALID)
            zt_error_at(error, zt_object_name(object), name);
        if (status != ZT_OK)
            return status;
    }
    return ZT_OK;
}

static enum zt_status sort_objects(struct zt_builder *builder, const char *rule,
                                   struct zt_error *error)
{
    struct zt_named_array array = zt_objects_named(builder->objects, builder->model->object_count);
    struct zt_text name = {NULL, 0};
    enum zt_status status = sort_by_name(builder, &array, rule, &name, error);

    if (status == ZT_INVALID)
        zt_error_at(error, name, (struct zt_text){NULL, 0});
    return status;
}

static enum zt_status sort_shards(struct zt_builder *builder, const char *rule,
                                  struct zt_error *error)
{
    struct zt_named_array array = shards_named(builder->shards, builder->model->shard_count);
    struct zt_text ignored;

    return sort_by_name(builder, &array, rule, &ignored, error);
}

/* Like zt_array_trim, but an empty array keeps one entry, so that its pointer is not NULL. */
static void trim_most(void *array_at, size_t *capacity, size_t count, size_t entry_bytes)
{
    zt_array_trim(array_at, capacity, count > 0 ? count : 1, entry_bytes);
}

enum zt_status zt_builder_finish(struct zt_builder *builder, const char *duplicate_rule,
                                 struct zt_model **out_model, struct zt_error *error)
{
    struct zt_model *model = builder->model;
    enum zt_status status;

    assert(model->object_count <= builder->object_capacity);
    assert(model->component_count <= builder->component_capacity);
    assert(builder->dimension_count <= builder->dimension_capacity);
    assert(model->shard_count <= builder->shard_capacity);
    status = check_memory(builder, 0, error);
    if (status == ZT_OK)
        status = sort_components(builder, duplicate_rule, error);
    if (status == ZT_OK)
        status = sort_objects(builder, duplicate_rule, error);
    if (status == ZT_OK)
        status = sort_shards(builder, duplicate_rule, error);
    if (status != ZT_OK)
        return status;
    zt_array_trim(&builder->objects, &builder->object_capacity, model->object_count,
                  sizeof(*builder->objects));
    trim_most(&builder->components, &builder->component_capacity, model->component_count,
              sizeof(*builder->components));
    trim_most(&builder->dimensions, &builder->dimension_capacity, builder->dimension_count,
              sizeof(*builder->dimensions));
    zt_array_trim(&builder->shards, &builder->shard_capacity, model->shard_count,
                  sizeof(*builder->shards));
    model->objects = builder->objects;
    model->components = builder->components;
    model->dimensions = builder->dimensions;
    model->shards = builder->shards;
    memset(builder, 0, sizeof(*builder));
    *out_model = model;
    return ZT_OK;
}

void zt_model_keep_names(struct zt_model *model)
{
    /* The model is not yet visible to anyone else. */
    struct zt_object *objects = (struct zt_object *)(uintptr_t)model->objects;
    size_t length = 0;
    void *held;
    char *to;

    for (uint32_t i = 0; i < model->object_count; i++)
        length += objects[i].name_length;
    if (zt_arena_take(&model->storage->arena, length, &held, NULL) != ZT_OK)
        return;
    to = held;
    for (uint32_t i = 0; i < model->object_count; i++) {
        memcpy(to, objects[i].name, objects[i].name_length);
        objects[i].name = to;
        to += objects[i].name_length;
    }
    assert((size_t)(to - (char *)held) == length);
    free(model->storage->manifest);
    model->storage->manifest = NULL;
}

void zt_builder_abandon(struct zt_builder *builder)
{
    free(builder->objects);
    free(builder->components);
    free(builder->dimensions);
    free(builder->shards);
    zt_model_free(builder->model);
    memset(builder, 0, sizeof(*builder));
}

/* --- what several readers add in the same way --- */

void zt_component_set_encoding(struct zt_component *component, struct zt_text encoding)
{
    if (encoding.bytes == NULL)
        encoding = zt_text_from("raw");
    component->encoding_name = encoding.bytes;
    component->encoding_length = (uint32_t)encoding.length;
    component->encoding = ZT_ENCODING_UNKNOWN;
    component->decoded_length = ZT_LENGTH_UNKNOWN;
    if (zt_text_is(encoding, "zstd")) {
        component->encoding = ZT_ENCODING_ZSTD;
    } else if (zt_text_is(encoding, "raw")) {
        component->encoding = ZT_ENCODING_RAW;
        component->decoded_length = component->length;
    }
}

static enum zt_status add_object(struct zt_builder *builder, const struct zt_tensor *tensor,
                                 struct zt_error *error)
{
    struct zt_object *object;
    enum zt_status status = zt_builder_object(builder, &object, error);

    if (status != ZT_OK)
        return status;
    object->name = tensor->name.bytes;
    object->name_length = (uint32_t)tensor->name.length;
    object->format = "dense";
    object->format_length = 5;
    object->layout = ZT_LAYOUT_DENSE;
    for (unsigned i = 0; i < tensor->rank && status == ZT_OK; i++)
        status = zt_builder_dimension(builder, tensor->shape[i], error);
    return status;
}

enum zt_status zt_tensor_add(struct zt_builder *builder, const struct zt_tensor *tensor,
                             struct zt_error *error)
{
    struct zt_component *component;
    enum zt_status status;

    assert(tensor->rank <= ZT_RANK_MAX);
    assert(tensor->name.length <= UINT32_MAX);
    status = add_object(builder, tensor, error);
    if (status == ZT_OK)
        status = zt_builder_component(builder, &component, error);
    if (status != ZT_OK)
        return status;
    component->name = "data";
    component->name_length = 4;
    component->dtype = (uint8_t)tensor->dtype;
    component->logical = (uint8_t)tensor->logical;
    component->type = zt_logical_name(tensor->logical);
    component->type_length = component->type != NULL ? (uint32_t)strlen(component->type) : 0;
    component->offset = tensor->offset;
    component->length = tensor->length;
    zt_component_set_encoding(component, (struct zt_text){NULL, 0});
    assert(zt_last_object(builder)->component_count == 1);
    return ZT_OK;
}

void zt_error_within(struct zt_error *error, struct zt_text object, struct zt_text component)
{
    if (error != NULL && !error->has_object && error->component[0] == '\0')
        zt_error_at(error, object, component);
}
