/* Joining the parts of a split GGUF. The first four bytes are the length of the first part; the
 * second part is what follows it. */
#include "fuzz.h"

#include "base/little_endian.h"
#include "formats/formats.h"
#include "zt/join.h"

static bool open_part(const char *name, const uint8_t *bytes, size_t length,
                      struct zt_part *out_part)
{
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;

    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, NULL) == ZT_OK);
    if (gguf_open(source, &model, NULL) != ZT_OK) {
        zt_source_close(source);
        return false;
    }
    *out_part = (struct zt_part){zt_text_from(name), model, source};
    return true;
}

static void close_part(const struct zt_part *part)
{
    zt_model_free((struct zt_model *)(uintptr_t)part->model);
    zt_source_close((struct zt_source *)(uintptr_t)part->source);
}

static void check_joined(const struct zt_part *parts, const struct zt_model *model)
{
    FUZZ_ASSERT(model->shard_count == 1);
    FUZZ_ASSERT(model->object_count == parts[0].model->object_count + parts[1].model->object_count);
    FUZZ_ASSERT(!zt_gguf_split_of(model, &(struct zt_gguf_split){0}));
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        const struct zt_component *data = zt_object_components(model, object);
        const struct zt_part *part = &parts[data->shard];
        const struct zt_object *from = zt_model_find(part->model, zt_object_name(object));

        FUZZ_ASSERT(from != NULL && object->rank == from->rank);
        FUZZ_ASSERT(data->offset == zt_object_components(part->model, from)->offset);
        FUZZ_ASSERT(i == 0 ||
                    zt_text_compare(zt_object_name(object - 1), zt_object_name(object)) < 0);
    }
}

static void join(const struct zt_part *parts, uint64_t length)
{
    struct zt_gguf_split split;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status = zt_model_join(NULL, (struct zt_source *)(uintptr_t)parts[0].source,
                                          parts, 2, &model, &error);

    if (status != ZT_OK) {
        fuzz_failure(status, &error, length);
        return;
    }
    FUZZ_ASSERT(zt_gguf_split_of(parts[0].model, &split) && split.count == 2);
    /* The model's own file is the part with number 0, whichever comes first here. */
    if (split.number == 0)
        check_joined(parts, model);
    else
        check_joined((const struct zt_part[]){parts[1], parts[0]}, model);
    zt_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct zt_part parts[2];
    size_t first;

    if (length < 4 || zt_load_le32(bytes) > length - 4)
        return 0;
    first = zt_load_le32(bytes);
    if (!open_part("one", bytes + 4, first, &parts[0]))
        return 0;
    if (open_part("two", bytes + 4 + first, length - 4 - first, &parts[1])) {
        join(parts, length);
        close_part(&parts[1]);
    }
    close_part(&parts[0]);
    return 0;
}
