/* Memory that runs out while an index is read and parts are joined: the n-th allocation fails, for
 * every n. Nothing leaks. */
#include "survives.h"

#include <string.h>

#include "gguf_file.h"
#include "safetensors_file.h"
#include "tests.h"
#include "zt/join.h"

#define U8(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"

/* Two parts, and the text of their index; NULL for GGUF. */
struct model_files {
    struct container containers[2];
    struct zt_part parts[2];
    const char *index;
};

static void open_parts(struct model_files *files)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct container *container = &files->containers[i];
        struct zt_source *source;

        source = memory_source(container->bytes, container->length);
        files->parts[i] = (struct zt_part){zt_text_from(i == 0 ? "p2" : "p1"),
                                           container_model(container), source};
    }
}

static void close_parts(struct model_files *files)
{
    for (unsigned i = 0; i < 2; i++) {
        zt_model_free((struct zt_model *)(uintptr_t)files->parts[i].model);
        zt_source_close((struct zt_source *)(uintptr_t)files->parts[i].source);
        container_free(&files->containers[i]);
    }
}

static enum zt_status join_by_index(void *context)
{
    const struct model_files *files = context;
    struct zt_source *own = NULL;
    struct zt_index *index = NULL;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status = zt_source_from_memory(files->index, strlen(files->index), &own, &error);

    if (status == ZT_OK)
        status = zt_index_read(own, &index, &error);
    if (status == ZT_OK)
        status = zt_model_join(index, own, files->parts, 2, &model, &error);
    zt_model_free(model);
    zt_index_free(index);
    zt_source_close(own);
    return status;
}

static enum zt_status join_split(void *context)
{
    const struct model_files *files = context;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status =
        zt_model_join(NULL, (struct zt_source *)(uintptr_t)files->parts[0].source, files->parts, 2,
                      &model, &error);

    zt_model_free(model);
    return status;
}

TEST(joining_by_an_index_survives_failing_allocations)
{
    struct model_files files = {.index = "{\"weight_map\":{\"b\":\"p1\",\"a\":\"p2\"}}"};

    safetensors_make(&files.containers[0], U8("a"), 4);
    safetensors_make(&files.containers[1], U8("b"), 4);
    open_parts(&files);
    assert_survives(join_by_index, &files);
    close_parts(&files);
}

static void make_split(struct container *container, uint64_t number, const char *tensor)
{
    struct gguf_file file = {0};

    gguf_begin(&file);
    gguf_put_key(&file, "split.no", 2);
    gguf_put(&file, number, 2);
    gguf_put_key(&file, "split.count", 2);
    gguf_put(&file, 2, 2);
    gguf_put_key(&file, "split.tensors.count", 5);
    gguf_put(&file, 2, 4);
    gguf_put_tensor(&file, tensor, 1, (const uint64_t[1]){32}, 8);
    gguf_put_offset(&file, 0);
    gguf_finish(&file, 32, 34, container);
}

TEST(joining_a_split_survives_failing_allocations)
{
    struct model_files files = {.index = NULL};

    make_split(&files.containers[0], 0, "b");
    make_split(&files.containers[1], 1, "a");
    open_parts(&files);
    assert_survives(join_split, &files);
    close_parts(&files);
}
