/* The index of a model in several files, and joining two parts by it. */
#include "fuzz.h"

#include <string.h>

#include "join/index.h"

/* Three tensors in two parts, which the seeds name. */
#define ENTRY(name, begin, end) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[" begin "," end "]}"
#define PART_A                                                              \
    "\x69\0\0\0\0\0\0\0{" ENTRY("a", "0", "2") "," ENTRY("b", "2", "4") "}" \
                                                                        "1234"
#define PART_B                                     \
    "\x35\0\0\0\0\0\0\0{" ENTRY("c", "0", "2") "}" \
                                               "12"

static struct zt_part open_part(const char *name, const char *bytes, size_t length)
{
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;

    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, NULL) == ZT_OK);
    FUZZ_ASSERT(zt_model_open(source, &model, NULL) == ZT_OK);
    return (struct zt_part){zt_text_from(name), model, source};
}

static void check_joined(const struct zt_index *index, const struct zt_model *model)
{
    FUZZ_ASSERT(model->object_count == 3 && index->entry_count == 3);
    FUZZ_ASSERT(model->shard_count == 2 && index->part_count == 2);
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        const struct zt_component *data = zt_object_components(model, object);
        const struct zt_index_entry *entry = zt_index_find(index, zt_object_name(object));

        FUZZ_ASSERT(object->component_count == 1 && entry != NULL);
        FUZZ_ASSERT(data->shard == entry->part + 1);
    }
}

static void join(const struct zt_index *index, struct zt_source *own, uint64_t length)
{
    static struct zt_part parts[2];
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status;

    if (parts[0].model == NULL) {
        parts[0] = open_part("p", PART_A, sizeof(PART_A) - 1);
        parts[1] = open_part("q", PART_B, sizeof(PART_B) - 1);
    }
    status = zt_model_join(index, own, parts, 2, &model, &error);
    if (status == ZT_OK)
        check_joined(index, model);
    else
        fuzz_failure(status, &error, length);
    zt_model_free(model);
}

static void check_index(const struct zt_index *index, uint64_t length)
{
    size_t count;
    const struct zt_text *parts = zt_index_parts(index, &count);

    FUZZ_ASSERT(count > 0 && count <= ZT_PARTS_MAX && index->entry_count >= count);
    for (size_t i = 0; i < count; i++) {
        FUZZ_ASSERT(parts[i].length > 0 && parts[i].bytes[0] != '.');
        FUZZ_ASSERT(memchr(parts[i].bytes, '/', parts[i].length) == NULL);
        FUZZ_ASSERT(memchr(parts[i].bytes, '\0', parts[i].length) == NULL);
        FUZZ_ASSERT(i == 0 || zt_text_compare(parts[i - 1], parts[i]) < 0);
        FUZZ_ASSERT(zt_index_part(index, parts[i]) == i);
    }
    for (uint32_t i = 0; i < index->entry_count; i++) {
        const struct zt_index_entry *entry = &index->entries[i];
        const struct zt_text name = {entry->name, entry->name_length};

        FUZZ_ASSERT(entry->part < count && zt_index_find(index, name) == entry);
        FUZZ_ASSERT(zt_index_position(index, entry) + name.length <= length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct zt_source *source = NULL;
    struct zt_index *index = NULL;
    struct zt_error error;
    enum zt_status status;

    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, &error) == ZT_OK);
    fuzz_hold_at_most(length);
    status = zt_index_read(source, &index, &error);
    FUZZ_ASSERT(fuzz_held());
    if (status == ZT_OK) {
        check_index(index, length);
        join(index, source, length);
    } else {
        fuzz_failure(status, &error, length);
    }
    zt_index_free(index);
    zt_source_close(source);
    return 0;
}
