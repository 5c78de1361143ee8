/* Joining parts: which parts there are and which tensors they have is compared with what the index
 * or, for GGUF, the parts themselves state; then the parts are copied into one model. */
#include "zt/join.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "join/copy.h"
#include "join/index.h"
#include "join/split.h"
#include "model/name_sort.h"
#include "zt/digest.h"

#define NO_TEXT ((struct zt_text){NULL, 0})

struct joining {
    const struct zt_index *index; /* NULL for GGUF */
    struct zt_part *parts;        /* in the order of the index, or by their numbers */
    uint32_t *shards;             /* of each part; 0: the model's own file */
    size_t part_count;
    struct zt_model *model;
};

static enum zt_status fail_part(struct zt_error *error, const char *rule, struct zt_text part,
                                const char *message)
{
    return zt_fail(error, ZT_INVALID, rule, ZT_NO_OFFSET, "part %.*s %s", (int)part.length,
                   part.bytes, message);
}

/* --- the parts of an index --- */

static enum zt_status find_missing(const struct joining *joining, struct zt_error *error)
{
    const struct zt_index *index = joining->index;

    for (uint32_t i = 0; i < index->entry_count; i++) {
        const struct zt_index_entry *entry = &index->entries[i];
        const struct zt_text name = {entry->name, entry->name_length};

        if (joining->parts[entry->part].model != NULL)
            continue;
        zt_fail(error, ZT_INVALID, "index §Parts MissingPart", zt_index_position(index, entry),
                "part %.*s is missing", (int)index->parts[entry->part].length,
                index->parts[entry->part].bytes);
        zt_error_at(error, name, NO_TEXT);
        return ZT_INVALID;
    }
    return ZT_OK;
}

static enum zt_status order_by_index(struct joining *joining, const struct zt_part *parts,
                                     size_t count, struct zt_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t place = zt_index_part(joining->index, parts[i].name);

        if (place == joining->index->part_count)
            return fail_part(error, "index §Parts ExtraPart", parts[i].name,
                             "is not named by the index");
        assert(joining->parts[place].model == NULL);
        joining->parts[place] = parts[i];
        joining->shards[place] = place + 1;
    }
    return find_missing(joining, error);
}

static enum zt_status check_formats(const struct joining *joining, struct zt_error *error)
{
    const struct zt_model *first = joining->parts[0].model;

    assert(first != NULL);
    for (size_t i = 0; i < joining->part_count; i++) {
        const struct zt_part *part = &joining->parts[i];

        if ((part->model->format != ZT_FORMAT_SAFETENSORS &&
             part->model->format != ZT_FORMAT_PYTORCH) ||
            part->model->shard_count > 0)
            return fail_part(error, "index §Parts PartFormat", part->name,
                             "is neither safetensors nor PyTorch");
        if (part->model->format != first->format)
            return fail_part(error, "index §Parts PartFormat", part->name,
                             "has a different format from the parts before it");
    }
    return ZT_OK;
}

/* Every tensor of a part must be where the index puts it. */
static enum zt_status check_tensors(const struct joining *joining, uint32_t place,
                                    struct zt_error *error)
{
    const struct zt_index *index = joining->index;
    const struct zt_part *part = &joining->parts[place];

    assert(place < joining->part_count);
    for (uint32_t i = 0; i < part->model->object_count; i++) {
        const struct zt_text name = zt_object_name(&part->model->objects[i]);
        const struct zt_index_entry *entry = zt_index_find(index, name);

        if (entry != NULL && entry->part == place)
            continue;
        if (entry == NULL)
            fail_part(error, "index §Tensors UnknownTensor", part->name,
                      "has a tensor that the index does not name");
        else
            zt_fail(error, ZT_INVALID, "index §Tensors WrongPart", zt_index_position(index, entry),
                    "the tensor is in part %.*s, but the index puts it in %.*s",
                    (int)part->name.length, part->name.bytes, (int)index->parts[entry->part].length,
                    index->parts[entry->part].bytes);
        zt_error_at(error, name, NO_TEXT);
        return ZT_INVALID;
    }
    return ZT_OK;
}

/* The model is sorted, and has no tensor that the index does not name. */
static enum zt_status check_complete(const struct joining *joining, struct zt_error *error)
{
    const struct zt_index *index = joining->index;

    assert(joining->model->object_count <= index->entry_count);
    if (joining->model->object_count == index->entry_count)
        return ZT_OK;
    for (uint32_t i = 0; i < index->entry_count; i++) {
        const struct zt_index_entry *entry = &index->entries[i];
        const struct zt_text name = {entry->name, entry->name_length};

        if (zt_model_find(joining->model, name) != NULL)
            continue;
        zt_fail(error, ZT_INVALID, "index §Tensors MissingTensor", zt_index_position(index, entry),
                "part %.*s does not have the tensor that the index puts there",
                (int)index->parts[entry->part].length, index->parts[entry->part].bytes);
        zt_error_at(error, name, NO_TEXT);
        return ZT_INVALID;
    }
    assert(!"fewer objects than entries, so one is missing");
    return ZT_INVALID;
}

/* --- the parts of a split GGUF --- */

/* A part whose name states a number must have that number. */
static enum zt_status check_name(const struct zt_part *part, const struct zt_gguf_split *split,
                                 struct zt_error *error)
{
    static const char extension[] = ".gguf";
    const size_t extension_length = strlen(extension);
    struct zt_text name = part->name;
    uint32_t number;
    uint32_t count;
    size_t stem;

    if (name.length > extension_length &&
        strncasecmp(name.bytes + name.length - extension_length, extension, extension_length) == 0)
        name.length -= extension_length;
    if (!zt_part_name_split(name, &stem, &number, &count) ||
        (number == split->number + 1 && count == split->count))
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, "gguf §Split PartName", ZT_NO_OFFSET,
                   "part %.*s says that it is number %" PRIu64 " of %" PRIu32,
                   (int)part->name.length, part->name.bytes, (uint64_t)split->number + 1,
                   split->count);
}

static enum zt_status place_split(struct joining *joining, const struct zt_part *part,
                                  const struct zt_gguf_split *first, struct zt_error *error)
{
    struct zt_gguf_split split;

    if (!zt_gguf_split_of(part->model, &split))
        return fail_part(error, "gguf §Split Keys", part->name, "does not state its part number");
    if (split.count != first->count)
        return zt_fail(error, ZT_INVALID, "gguf §Split Count", ZT_NO_OFFSET,
                       "part %.*s is one of %" PRIu32 ", another one of %" PRIu32,
                       (int)part->name.length, part->name.bytes, split.count, first->count);
    if (split.tensor_count != first->tensor_count)
        return zt_fail(error, ZT_INVALID, "gguf §Split TensorCount", ZT_NO_OFFSET,
                       "part %.*s states %" PRIu64 " tensors in total, another part %" PRIu64,
                       (int)part->name.length, part->name.bytes, split.tensor_count,
                       first->tensor_count);
    assert(split.number < joining->part_count);
    if (joining->parts[split.number].model != NULL)
        return fail_part(error, "gguf §Split ExtraPart", part->name,
                         "has the number of another part");
    joining->parts[split.number] = *part;
    return check_name(part, &split, error);
}

/* Shards are numbered in the order of their names. */
static void number_shards(struct joining *joining)
{
    for (size_t i = 1; i < joining->part_count; i++) {
        joining->shards[i] = 1;
        for (size_t k = 1; k < joining->part_count; k++)
            joining->shards[i] +=
                zt_text_compare(joining->parts[k].name, joining->parts[i].name) < 0;
    }
}

static enum zt_status order_by_number(struct joining *joining, const struct zt_part *parts,
                                      size_t count, const struct zt_gguf_split *first,
                                      struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (size_t i = 0; i < count && status == ZT_OK; i++)
        status = place_split(joining, &parts[i], first, error);
    for (size_t i = 0; i < joining->part_count && status == ZT_OK; i++)
        if (joining->parts[i].model == NULL)
            status = zt_fail(error, ZT_INVALID, "gguf §Split MissingPart", ZT_NO_OFFSET,
                             "part %zu of %zu is missing next to %.*s", i + 1, joining->part_count,
                             (int)parts[0].name.length, parts[0].name.bytes);
    if (status == ZT_OK)
        number_shards(joining);
    return status;
}

static enum zt_status check_tensor_count(const struct joining *joining, struct zt_error *error)
{
    struct zt_gguf_split split = {0};

    if (!zt_gguf_split_of(joining->parts[0].model, &split))
        assert(!"each part has been looked at");
    if (joining->model->object_count == split.tensor_count)
        return ZT_OK;
    return zt_fail(error, ZT_INVALID, "gguf §Split TensorCount", ZT_NO_OFFSET,
                   "the parts have %" PRIu32 " tensors in total, but %.*s states %" PRIu64,
                   joining->model->object_count, (int)joining->parts[0].name.length,
                   joining->parts[0].name.bytes, split.tensor_count);
}

/* --- the joined model --- */

static struct zt_text part_of(const struct joining *joining, const struct zt_object *object)
{
    const uint32_t shard =
        object->component_count > 0 ? zt_object_components(joining->model, object)->shard : 0;

    for (size_t i = 0; i < joining->part_count; i++)
        if (joining->shards[i] == shard)
            return joining->parts[i].name;
    return joining->parts[0].name;
}

static enum zt_status sort_objects(const struct joining *joining, struct zt_error *error)
{
    const struct zt_model *model = joining->model;
    const struct zt_named_array array = zt_objects_named(model->objects, model->object_count);
    enum zt_status status = zt_names_sort(&array, error);
    const size_t second = status == ZT_OK ? zt_names_duplicate(&array) : 0;
    struct zt_text one, other;

    if (second == 0)
        return status;
    assert(second < model->object_count);
    one = part_of(joining, &model->objects[second - 1]);
    other = part_of(joining, &model->objects[second]);
    zt_fail(error, ZT_INVALID,
            joining->index != NULL ? "index §Tensors DuplicateName" : "gguf §Split DuplicateName",
            ZT_NO_OFFSET, "parts %.*s and %.*s both have the tensor", (int)one.length, one.bytes,
            (int)other.length, other.bytes);
    zt_error_at(error, zt_names_at(&array, second), NO_TEXT);
    return ZT_INVALID;
}

static enum zt_status add_shards(const struct joining *joining, struct zt_error *error)
{
    struct zt_model *model = joining->model;
    struct zt_shard *shards = calloc(joining->part_count, sizeof(*shards));
    enum zt_status status = ZT_OK;

    if (shards == NULL)
        return zt_fail_memory(error, "a model");
    model->shards = shards;
    for (size_t i = 0; i < joining->part_count && status == ZT_OK; i++) {
        const struct zt_part *part = &joining->parts[i];
        struct zt_shard *shard;

        if (joining->shards[i] == 0)
            continue;
        assert(joining->shards[i] <= joining->part_count);
        shard = &shards[joining->shards[i] - 1];
        shard->kind = ZT_SHARD_PART;
        shard->size_bytes = zt_source_size(part->source);
        shard->name_length = (uint32_t)part->name.length;
        status = zt_text_keep(model, part->name, &shard->name, error);
        model->shard_count++;
    }
    return status;
}

/* All parts of safetensors have the same metadata if transformers wrote them; of others, the first
 * that has some stands for all. */
static enum zt_status add_attributes(const struct joining *joining, struct zt_error *error)
{
    struct zt_model *model = joining->model;
    struct zt_buffer without = {0};
    struct zt_text map = {NULL, 0};
    enum zt_status status = ZT_OK;

    if (joining->index == NULL) {
        zt_split_attributes(joining->parts[0].model, &without);
        map = (struct zt_text){(const char *)without.bytes, without.length};
    }
    for (size_t i = 0; joining->index != NULL && map.length == 0 && i < joining->part_count; i++)
        map = joining->parts[i].model->attributes;
    if (without.failed)
        status = zt_fail_memory(error, "a model");
    if (status == ZT_OK && map.length > 0) {
        model->attributes.length = map.length;
        status = zt_text_keep(model, map, &model->attributes.bytes, error);
    }
    zt_buffer_free(&without);
    return status;
}

/* The hash changes if any part is replaced by another one. */
static enum zt_status set_manifest(const struct joining *joining, const struct zt_source *own,
                                   struct zt_error *error)
{
    struct zt_model *model = joining->model;
    const struct zt_model *first = joining->parts[0].model;
    struct zt_buffer hashed = {0};
    enum zt_status status = ZT_OK;

    model->file_size = zt_source_size(own);
    model->manifest_offset = joining->index != NULL ? 0 : first->manifest_offset;
    model->manifest_length =
        joining->index != NULL ? joining->index->length : first->manifest_length;
    if (joining->index != NULL)
        zt_buffer_append_le64(&hashed, joining->index->hash);
    for (size_t i = 0; i < joining->part_count; i++) {
        const struct zt_part *part = &joining->parts[i];

        zt_buffer_append_le64(&hashed, zt_xxh3(part->name.bytes, part->name.length));
        zt_buffer_append_le64(&hashed, zt_source_size(part->source));
        zt_buffer_append_le64(&hashed, part->model->manifest_hash);
    }
    if (hashed.failed)
        status = zt_fail_memory(error, "a model");
    else
        model->manifest_hash = zt_xxh3(hashed.bytes, hashed.length);
    zt_buffer_free(&hashed);
    return status;
}

static enum zt_status assemble(struct joining *joining, const struct zt_source *own,
                               struct zt_error *error)
{
    struct zt_model *model = NULL;
    enum zt_status status =
        zt_models_copy(joining->parts, joining->part_count, joining->shards, &model, error);

    joining->model = model;
    if (status == ZT_OK)
        status = sort_objects(joining, error);
    if (status == ZT_OK)
        status = joining->index != NULL ? check_complete(joining, error)
                                        : check_tensor_count(joining, error);
    if (status == ZT_OK)
        status = add_shards(joining, error);
    if (status == ZT_OK)
        status = add_attributes(joining, error);
    return status == ZT_OK ? set_manifest(joining, own, error) : status;
}

/* --- the whole --- */

static enum zt_status check_index(struct joining *joining, const struct zt_part *parts,
                                  size_t count, struct zt_error *error)
{
    enum zt_status status = order_by_index(joining, parts, count, error);

    if (status == ZT_OK)
        status = check_formats(joining, error);
    for (uint32_t i = 0; i < joining->part_count && status == ZT_OK; i++)
        status = check_tensors(joining, i, error);
    return status;
}

/* How many parts there should be. */
static enum zt_status count_parts(const struct zt_index *index, const struct zt_part *parts,
                                  size_t count, struct zt_gguf_split *out_first, size_t *out_count,
                                  struct zt_error *error)
{
    if (index != NULL) {
        *out_count = index->part_count;
        return ZT_OK;
    }
    assert(count > 0);
    if (!zt_gguf_split_of(parts[0].model, out_first))
        return fail_part(error, "gguf §Split Keys", parts[0].name,
                         "does not state its part number");
    if (out_first->count > ZT_PARTS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "%" PRIu32 " parts, more than %d",
                       out_first->count, ZT_PARTS_MAX);
    *out_count = out_first->count;
    return ZT_OK;
}

enum zt_status zt_model_join(const struct zt_index *index, struct zt_source *own,
                             const struct zt_part *parts, size_t part_count,
                             struct zt_model **out_model, struct zt_error *error)
{
    struct joining joining = {.index = index};
    struct zt_gguf_split first = {0};
    enum zt_status status =
        count_parts(index, parts, part_count, &first, &joining.part_count, error);

    if (status != ZT_OK)
        return status;
    assert(joining.part_count > 0);
    joining.parts = calloc(joining.part_count, sizeof(*joining.parts));
    joining.shards = calloc(joining.part_count, sizeof(*joining.shards));
    if (joining.parts == NULL || joining.shards == NULL)
        status = zt_fail_memory(error, "a model");
    if (status == ZT_OK)
        status = index != NULL ? check_index(&joining, parts, part_count, error)
                               : order_by_number(&joining, parts, part_count, &first, error);
    if (status == ZT_OK)
        status = assemble(&joining, own, error);
    free(joining.parts);
    free(joining.shards);
    if (status != ZT_OK) {
        zt_model_free(joining.model);
        return status;
    }
    *out_model = joining.model;
    return ZT_OK;
}
