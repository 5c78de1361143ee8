/* Joining parts: what the one model has, and parts that do not belong together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_file.h"
#include "safetensors_file.h"
#include "tests.h"
#include "zt/join.h"

#define PARTS_MAX 4

/* Parts that are open, and what is beside them. */
struct fixture {
    struct zt_index *index;
    struct zt_source *own;
    struct zt_part parts[PARTS_MAX];
    struct container files[PARTS_MAX];
    size_t count;
};

static void add_file(struct fixture *fixture, const char *name)
{
    const size_t at = fixture->count++;
    const struct container *file = &fixture->files[at];
    struct zt_source *source = memory_source(file->bytes, file->length);

    fixture->parts[at] = (struct zt_part){zt_text_from(name), container_model(file), source};
}

static void add_safetensors(struct fixture *fixture, const char *name, const char *header,
                            size_t data_length)
{
    safetensors_make(&fixture->files[fixture->count], header, data_length);
    add_file(fixture, name);
}

static void set_index(struct fixture *fixture, const char *text)
{
    struct zt_error error;

    fixture->own = memory_source(text, strlen(text));
    assert_ok(zt_index_read(fixture->own, &fixture->index, &error));
}

static void free_all(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->count; i++) {
        zt_model_free((struct zt_model *)(uintptr_t)fixture->parts[i].model);
        zt_source_close((struct zt_source *)(uintptr_t)fixture->parts[i].source);
        container_free(&fixture->files[i]);
    }
    if (fixture->index != NULL)
        zt_source_close(fixture->own);
    zt_index_free(fixture->index);
    memset(fixture, 0, sizeof(*fixture));
}

static enum zt_status join(const struct fixture *fixture, struct zt_model **out_model,
                           struct zt_error *error)
{
    struct zt_source *own = fixture->index != NULL
                                ? fixture->own
                                : (struct zt_source *)(uintptr_t)fixture->parts[0].source;

    zt_error_clear(error);
    return zt_model_join(fixture->index, own, fixture->parts, fixture->count, out_model, error);
}

static struct zt_model *joined(const struct fixture *fixture)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    if (join(fixture, &model, &error) != ZT_OK)
        fail_msg("%s", error.message);
    return model;
}

/* All words, which a message must contain, are separated by |. */
static void assert_refused(struct fixture *fixture, const char *rule, const char *object,
                           const char *words)
{
    struct zt_model *model = NULL;
    struct zt_error error;
    char *copy = strdup(words);

    assert_int_equal(join(fixture, &model, &error), ZT_INVALID);
    assert_null(model);
    assert_string_equal(error.rule, rule);
    assert_string_equal(error.object, object);
    for (char *word = strtok(copy, "|"); word != NULL; word = strtok(NULL, "|"))
        if (strstr(error.message, word) == NULL)
            fail_msg("%s does not say %s", error.message, word);
    free(copy);
    free_all(fixture);
}

#define TENSOR(name, begin, end) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #end "],\"data_offsets\":[" #begin "," #end "]}"
#define FIRST  "m-00001-of-00002.safetensors"
#define SECOND "m-00002-of-00002.safetensors"

/* --- with an index --- */

static void add_two(struct fixture *fixture)
{
    add_safetensors(fixture, SECOND,
                    "{" TENSOR("a", 0, 4) ",\"c\":{\"dtype\":\"F16\",\"shape\":[1,2]"
                                          ",\"data_offsets\":[4,8]}}",
                    8);
    add_safetensors(fixture, FIRST, "{\"__metadata__\":{\"format\":\"pt\"}," TENSOR("b", 0, 5) "}",
                    5);
}

static const struct zt_component *data_of(const struct zt_model *model, const char *name)
{
    const struct zt_object *object = zt_model_find(model, zt_text_from(name));

    assert_non_null(object);
    assert_int_equal(object->component_count, 1);
    return zt_object_components(model, object);
}

TEST(joined_model_has_the_tensors_of_all_parts)
{
    struct fixture fixture = {0};
    uint64_t sizes[2];
    uint64_t offset;
    struct zt_model *model;
    const struct zt_object *object;

    add_two(&fixture);
    set_index(&fixture,
              "{\"weight_map\":{\"a\":\"" SECOND "\",\"b\":\"" FIRST "\",\"c\":\"" SECOND "\"}}\n");
    model = joined(&fixture);
    sizes[0] = fixture.files[1].length;
    sizes[1] = fixture.files[0].length;
    offset = data_of(fixture.parts[0].model, "c")->offset;
    /* It borrows nothing. */
    free_all(&fixture);
    assert_int_equal(model->format, ZT_FORMAT_SAFETENSORS);
    assert_string_equal(model->format_name, "safetensors");
    assert_int_equal(model->object_count, 3);
    assert_int_equal(model->component_count, 3);
    assert_int_equal(model->shard_count, 2);
    assert_int_equal(model->shards[0].name_length, strlen(FIRST));
    assert_memory_equal(model->shards[0].name, FIRST, strlen(FIRST));
    assert_memory_equal(model->shards[1].name, SECOND, strlen(SECOND));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(model->shards[i].kind, ZT_SHARD_PART);
        assert_int_equal(model->shards[i].size_bytes, sizes[i]);
        assert_null(model->shards[i].digest);
    }
    assert_int_equal(data_of(model, "a")->shard, 2);
    assert_int_equal(data_of(model, "b")->shard, 1);
    assert_int_equal(data_of(model, "c")->shard, 2);
    assert_int_equal(data_of(model, "c")->offset, offset);
    assert_int_equal(data_of(model, "c")->length, 4);
    object = zt_model_find(model, zt_text_from("c"));
    assert_int_equal(object->rank, 2);
    assert_int_equal(zt_object_shape(model, object)[0], 1);
    assert_int_equal(zt_object_shape(model, object)[1], 2);
    assert_memory_equal(object->format, "dense", 5);
    assert_memory_equal(model->attributes.bytes,
                        "\xa1\x66"
                        "format\x62pt",
                        11);
    assert_int_equal(model->manifest_offset, 0);
    assert_int_equal(model->manifest_length, model->file_size);
    zt_model_free(model);
}

TEST(empty_name_is_a_text_of_no_bytes)
{
    struct fixture fixture = {0};
    struct zt_model *model;

    add_safetensors(&fixture, "p", "{" TENSOR("", 0, 4) "}", 4);
    set_index(&fixture, "{\"weight_map\":{\"\":\"p\"}}");
    model = joined(&fixture);
    assert_non_null(model->objects[0].name);
    assert_int_equal(model->objects[0].name_length, 0);
    zt_model_free(model);
    free_all(&fixture);
}

static uint64_t hash_of(const char *index, const char *metadata)
{
    struct fixture fixture = {0};
    struct zt_model *model;
    uint64_t hash;
    char header[128];

    snprintf(header, sizeof(header), "{\"__metadata__\":{\"v\":\"%s\"}," TENSOR("a", 0, 4) "}",
             metadata);
    add_safetensors(&fixture, "p", header, 4);
    set_index(&fixture, index);
    model = joined(&fixture);
    hash = model->manifest_hash;
    zt_model_free(model);
    free_all(&fixture);
    return hash;
}

TEST(hash_covers_the_index_and_every_part)
{
    const uint64_t hash = hash_of("{\"weight_map\":{\"a\":\"p\"}}", "1");

    assert_true(hash == hash_of("{\"weight_map\":{\"a\":\"p\"}}", "1"));
    assert_true(hash != hash_of("{\"weight_map\":{\"a\":\"p\"}}", "2"));
    assert_true(hash != hash_of("{\"weight_map\":{\"a\":\"p\"} }", "1"));
}

TEST(join_refuses_parts_that_the_index_does_not_describe)
{
    struct fixture fixture = {0};

    add_two(&fixture);
    set_index(&fixture,
              "{\"weight_map\":{\"a\":\"" FIRST "\",\"b\":\"" FIRST "\",\"c\":\"" SECOND "\"}}");
    assert_refused(&fixture, "index §Tensors WrongPart", "a", FIRST "|" SECOND);
    add_two(&fixture);
    set_index(&fixture, "{\"weight_map\":{\"a\":\"" SECOND "\",\"b\":\"" FIRST "\"}}");
    assert_refused(&fixture, "index §Tensors UnknownTensor", "c", SECOND);
    add_two(&fixture);
    set_index(&fixture, "{\"weight_map\":{\"a\":\"" SECOND "\",\"b\":\"" FIRST "\",\"c\":\"" SECOND
                        "\",\"d\":\"" FIRST "\"}}");
    assert_refused(&fixture, "index §Tensors MissingTensor", "d", FIRST);
    add_two(&fixture);
    set_index(&fixture, "{\"weight_map\":{\"a\":\"" SECOND "\",\"b\":\"" FIRST "\",\"c\":\"" SECOND
                        "\",\"d\":\"third\"}}");
    assert_refused(&fixture, "index §Parts MissingPart", "d", "third");
    add_two(&fixture);
    set_index(&fixture, "{\"weight_map\":{\"b\":\"" FIRST "\"}}");
    assert_refused(&fixture, "index §Parts ExtraPart", "", SECOND);
}

static void put_split(struct gguf_file *file, uint64_t number, uint64_t count, uint64_t tensors)
{
    gguf_put_key(file, "split.no", 2);
    gguf_put(file, number, 2);
    gguf_put_key(file, "split.count", 2);
    gguf_put(file, count, 2);
    gguf_put_key(file, "split.tensors.count", 5);
    gguf_put(file, tensors, 4);
}

TEST(join_refuses_other_formats)
{
    struct fixture fixture = {0};
    struct gguf_file file = {0};

    gguf_begin(&file);
    gguf_finish(&file, 32, 0, &fixture.files[0]);
    add_file(&fixture, "p");
    set_index(&fixture, "{\"weight_map\":{\"a\":\"p\"}}");
    assert_refused(&fixture, "index §Parts PartFormat", "", "part p");
}

/* --- split GGUF --- */

struct split {
    const char *name;
    uint64_t number;
    uint64_t count;
    uint64_t tensors;
    const char *tensor; /* NULL: none */
};

static void add_gguf(struct fixture *fixture, const struct split *split)
{
    struct gguf_file file = {0};

    gguf_begin(&file);
    if (split->number == 0) {
        gguf_put_key(&file, "general.name", 8);
        gguf_put_string(&file, "joined");
    }
    if (split->count > 0)
        put_split(&file, split->number, split->count, split->tensors);
    if (split->tensor != NULL) {
        gguf_put_tensor(&file, split->tensor, 1, (const uint64_t[1]){8}, 0);
        gguf_put_offset(&file, 0);
    }
    gguf_finish(&file, 32, split->tensor != NULL ? 32 : 0, &fixture->files[fixture->count]);
    add_file(fixture, split->name);
}

TEST(split_gguf_is_joined_by_its_numbers)
{
    struct fixture fixture = {0};
    struct zt_model *model;

    add_gguf(&fixture, &(struct split){"m-00001-of-00003.gguf", 0, 3, 2, NULL});
    add_gguf(&fixture, &(struct split){"m-00003-of-00003.gguf", 2, 3, 2, "a"});
    add_gguf(&fixture, &(struct split){"m-00002-of-00003.gguf", 1, 3, 2, "b"});
    model = joined(&fixture);
    assert_int_equal(model->file_size, fixture.files[0].length);
    assert_int_equal(model->manifest_length, fixture.files[0].length);
    free_all(&fixture);
    assert_int_equal(model->format, ZT_FORMAT_GGUF);
    assert_memory_equal(model->version.bytes, "3", 1);
    assert_int_equal(model->object_count, 2);
    assert_int_equal(model->shard_count, 2);
    assert_memory_equal(model->shards[0].name, "m-00002", 7);
    assert_memory_equal(model->shards[1].name, "m-00003", 7);
    assert_int_equal(data_of(model, "b")->shard, 1);
    assert_int_equal(data_of(model, "a")->shard, 2);
    assert_json(model->attributes, "{\"general.name\":\"joined\"}");
    zt_model_free(model);
}

TEST(tensors_of_the_first_part_are_in_the_own_file)
{
    struct fixture fixture = {0};
    struct zt_model *model;

    add_gguf(&fixture, &(struct split){"any", 0, 2, 2, "a"});
    add_gguf(&fixture, &(struct split){"other", 1, 2, 2, "b"});
    model = joined(&fixture);
    free_all(&fixture);
    assert_int_equal(data_of(model, "a")->shard, 0);
    assert_int_equal(data_of(model, "b")->shard, 1);
    zt_model_free(model);
}

static void refuse_splits(const struct split *splits, size_t count, const char *rule,
                          const char *object, const char *words)
{
    struct fixture fixture = {0};

    for (size_t i = 0; i < count; i++)
        add_gguf(&fixture, &splits[i]);
    assert_refused(&fixture, rule, object, words);
}

#define SPLITS(...)                      \
    (const struct split[]){__VA_ARGS__}, \
        sizeof((struct split[]){__VA_ARGS__}) / sizeof(struct split)

TEST(join_refuses_splits_that_do_not_belong_together)
{
    refuse_splits(SPLITS({"p1", 0, 2, 2, "a"}), "gguf §Split MissingPart", "", "part 2 of 2|p1");
    refuse_splits(SPLITS({"p1", 0, 2, 2, "a"}, {"p2", 0, 2, 2, "b"}), "gguf §Split ExtraPart", "",
                  "part p2");
    refuse_splits(SPLITS({"p1", 0, 2, 2, "a"}, {"p2", 1, 3, 2, "b"}), "gguf §Split Count", "",
                  "part p2");
    refuse_splits(SPLITS({"p1", 0, 2, 2, "a"}, {"p2", 1, 2, 3, "b"}), "gguf §Split TensorCount", "",
                  "part p2");
    refuse_splits(SPLITS({"p1", 0, 2, 3, "a"}, {"p2", 1, 2, 3, "b"}), "gguf §Split TensorCount", "",
                  "2 tensors|p1 states 3");
    refuse_splits(SPLITS({"p1", 0, 2, 2, "a"}, {"p2", 1, 2, 2, "a"}), "gguf §Split DuplicateName",
                  "a", "p1|p2");
    refuse_splits(SPLITS({"p1", 0, 2, 2, "a"}, {"p2", 1, 0, 2, "b"}), "gguf §Split Keys", "",
                  "part p2");
    refuse_splits(SPLITS({"m-00001-of-00002.gguf", 1, 2, 2, "a"}), "gguf §Split PartName", "",
                  "m-00001-of-00002.gguf|number 2 of 2");
    refuse_splits(SPLITS({"m-00001-of-00002.GGUF", 1, 2, 2, "a"}), "gguf §Split PartName", "",
                  "m-00001-of-00002.GGUF|number 2 of 2");
}

static bool has_split(const struct split *split, struct zt_gguf_split *out_split)
{
    struct fixture fixture = {0};
    bool has;

    add_gguf(&fixture, split);
    has = zt_gguf_split_of(fixture.parts[0].model, out_split);
    free_all(&fixture);
    return has;
}

static void check_name(const struct split *split, const char *name, const char *rule)
{
    struct fixture fixture = {0};
    struct zt_error error = {.status = ZT_OK};

    add_gguf(&fixture, split);
    assert_int_equal(zt_gguf_check_name(fixture.parts[0].model, zt_text_from(name), &error),
                     rule != NULL ? ZT_INVALID : ZT_OK);
    if (rule != NULL)
        assert_string_equal(error.rule, rule);
    free_all(&fixture);
}

TEST(a_part_is_named_as_that_part)
{
    const struct split first = {"p", 0, 2, 9, NULL};

    check_name(&first, "m-00001-of-00002.gguf", NULL);
    check_name(&first, "m.v1-00001-of-00002.GGUF", NULL);
    check_name(&first, "m-00002-of-00002.gguf", "gguf §Split PartName");
    check_name(&first, "m-00001-of-00003.gguf", "gguf §Split PartName");
    check_name(&first, "m.gguf", "gguf §Split PartName");
    check_name(&first, "m", "gguf §Split PartName");
    check_name(&(struct split){"p", 0, 1, 9, NULL}, "m.gguf", NULL);
    check_name(&(struct split){"p", 0, 0, 9, NULL}, "m.gguf", NULL);
}

TEST(only_one_of_several_is_a_split)
{
    struct zt_gguf_split split = {0};

    assert_true(has_split(&(struct split){"p", 4, 5, 9, NULL}, &split));
    assert_int_equal(split.number, 4);
    assert_int_equal(split.count, 5);
    assert_int_equal(split.tensor_count, 9);
    assert_false(has_split(&(struct split){"p", 0, 0, 9, NULL}, &split));
    assert_false(has_split(&(struct split){"p", 0, 1, 9, NULL}, &split));
    assert_false(has_split(&(struct split){"p", 5, 5, 9, NULL}, &split));
    assert_false(has_split(&(struct split){"p", 0, 5, (uint32_t)-1, NULL}, &split));
}

TEST(parts_are_bounded)
{
    struct fixture fixture = {0};
    struct zt_model *model = NULL;
    struct zt_error error;

    add_gguf(&fixture, &(struct split){"p", 0, ZT_PARTS_MAX + 1, 1, "a"});
    assert_int_equal(join(&fixture, &model, &error), ZT_LIMIT);
    assert_null(model);
    free_all(&fixture);
}
