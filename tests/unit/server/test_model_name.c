/* Names of models: which texts are valid, and which paths name models. */
#include "tests.h"

#include <string.h>

#include "store/store.h"
#include "store/variant_index.h"

static bool valid(const char *name)
{
    return model_name_is_valid((struct zt_text){name, strlen(name)});
}

TEST(names_of_parts_are_valid)
{
    assert_true(valid("a"));
    assert_true(valid("bert-base"));
    assert_true(valid("meta-llama/Llama-3-8B"));
    assert_true(valid("0/1_2/A.b-c"));
}

static bool plain(const char *name)
{
    return model_name_is_plain((struct zt_text){name, strlen(name)});
}

TEST(what_is_read_may_have_names_that_are_not_uploaded)
{
    static const char *const names[] = {"-a",    "_a",          "a b",  "a\\b",
                                        "a%2Fb", "caf\xc3\xa9", "a:b",  "\xe6\x97\xa5/x,y",
                                        "a/ ",   "\"q\"",       "-*-x", "\xc2\xa0"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(valid(names[i]));
        assert_false(plain(names[i]));
    }
    assert_true(plain("0/1_2/A.b-c"));
    assert_false(plain("a/.b"));
    assert_false(plain("a//b"));
}

TEST(names_that_could_leave_the_root_are_refused)
{
    static const char *const names[] = {
        "",          "/",    "/a",    "a/",   "a//b",    "..",       "a/../b",
        ".a",        "a/.b", "a/./b", "a/..", "../a",    "a\n",      "\x7f",
        "a\xc2\x85", "\t",   "\xff",  "\xc3", "caf\xe9", "\xc0\xae", "\xed\xa0\x80"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_false(valid(names[i]));
    assert_false(model_name_is_valid((struct zt_text){"a\0b", 3}));
}

TEST(longer_names_are_refused)
{
    char name[MODEL_NAME_MAX + 2];

    memset(name, 'a', sizeof(name));
    assert_true(model_name_is_valid((struct zt_text){name, MODEL_NAME_MAX}));
    assert_false(model_name_is_valid((struct zt_text){name, MODEL_NAME_MAX + 1}));
    assert_true(model_name_is_plain((struct zt_text){name, MODEL_PLAIN_NAME_MAX}));
    assert_false(model_name_is_plain((struct zt_text){name, MODEL_PLAIN_NAME_MAX + 1}));
}

TEST(paths_split_into_name_and_rank)
{
    size_t length = 0;
    unsigned rank = 9;

    assert_true(model_path_split("a/b.tar.zt", &length, &rank));
    assert_int_equal(length, 7);
    assert_int_equal(rank, 0);
    assert_true(model_path_split("x.npy", &length, &rank));
    assert_int_equal(rank, 5);
    assert_string_equal(model_extension(1), ".safetensors");
}

TEST(extension_of_an_index_is_all_that_follows_the_name)
{
    size_t length = 0;
    unsigned rank = 0;

    assert_true(model_path_split("a/m.v2.safetensors.index.json", &length, &rank));
    assert_int_equal(length, strlen("a/m.v2"));
    assert_true(model_rank_is_index(rank));
    assert_true(model_path_split("pytorch_model.bin.index.json", &length, &rank));
    assert_int_equal(length, strlen("pytorch_model"));
    assert_string_equal(model_extension(rank), ".bin.index.json");
    assert_null(model_extension(rank + 1));
    assert_true(model_path_split("m.safetensors", &length, &rank));
    assert_false(model_rank_is_index(rank));
    assert_false(model_path_split("m.index.json", &length, &rank));
    assert_false(model_path_split(".safetensors.index.json", &length, &rank));
    assert_false(model_path_split("a/.bin.index.json", &length, &rank));
    assert_true(model_path_split("M.SafeTensors.Index.Json", &length, &rank));
    assert_int_equal(length, 1);
    assert_true(model_rank_is_index(rank));
    assert_true(model_path_has_bad_name("my\tmodel.safetensors.index.json"));
    assert_false(model_path_has_bad_name("m.json"));
}

TEST(an_index_with_a_variant_has_the_name_of_its_parts)
{
    static const struct {
        const char *path;
        const char *name;
    } cases[] = {
        {"model.safetensors.index.fp16.json", "model.fp16"},
        {"model.safetensors.fp16.index.json", "model.fp16"},
        {"a/diffusion_pytorch_model.v2.safetensors.index.non_ema.json",
         "a/diffusion_pytorch_model.v2.non_ema"},
        {"pytorch_model.bin.index.fp16.json", "pytorch_model.fp16"},
        {"a.b/pytorch_model.bin.fp16.index.json", "a.b/pytorch_model.fp16"},
        {"model.fp16.safetensors.index.json", "model.fp16"},
        {"model.safetensors.index.json", "model"},
    };
    static const char *const no_models[] = {
        "model.safetensors.index.index.json", "model.safetensors.index..json",
        ".safetensors.index.fp16.json",       "safetensors.index.fp16.json",
        "model.gguf.index.fp16.json",         "model.index.fp16.json",
        "model.safetensors.fp16.json",        "a.safetensors/index.fp16.json"};
    char name[MODEL_NAME_MAX + 1];
    char path[MODEL_PATH_SIZE];
    size_t length;
    unsigned rank;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(model_path_split(cases[i].path, &length, &rank));
        assert_true(model_rank_is_index(rank));
        assert_true(model_path_is_index(zt_text_from(cases[i].path)));
        assert_true(model_path_name(cases[i].path, name));
        assert_string_equal(name, cases[i].name);
        assert_true(model_file_path(name, rank, path));
        assert_string_equal(path, cases[i].path);
        assert_false(model_path_has_noncanonical_extension(cases[i].path));
    }
    for (size_t i = 0; i < sizeof(no_models) / sizeof(no_models[0]); i++) {
        assert_false(model_path_split(no_models[i], &length, &rank));
        assert_false(model_path_is_index(zt_text_from(no_models[i])));
    }
    assert_true(model_path_has_noncanonical_extension("m.Safetensors.index.fp16.json"));
    assert_false(model_file_path("a.b/model", rank + VARIANT_INDEX_FORMS, path));
    assert_false(model_file_path("a.b/model", VARIANT_INDEX_RANK, path));
}

TEST(paths_that_are_no_models_do_not_split)
{
    static const char *const paths[] = {
        "a", "a.txt", ".zt", "a/.zt", "a.zt/b", "a\n.zt", "a.zt.", ".a.zt", "m-*-of-00002.gguf"};
    size_t length = 77;
    unsigned rank = 77;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_false(model_path_split(paths[i], &length, &rank));
    assert_int_equal(length, 77);
    assert_int_equal(rank, 77);
}

TEST(files_meant_to_be_models_are_recognised)
{
    assert_true(model_path_has_bad_name("my\tmodel.zt"));
    assert_true(model_path_has_bad_name("a/\xff.npz"));
    assert_true(model_path_has_bad_name("\x7f.SafeTensors"));
    assert_false(model_path_has_bad_name("my model.zt"));
    assert_false(model_path_has_bad_name("x.SafeTensors"));
    assert_true(model_path_has_bad_name(".zt"));
    assert_false(model_path_has_bad_name("m.zt"));
    assert_false(model_path_has_bad_name("my notes.txt"));
    assert_false(model_path_has_bad_name("a b.zt/c"));
    assert_false(model_path_has_bad_name("zt"));
}

TEST(extensions_have_any_case)
{
    size_t length = 0;
    unsigned rank = 0;

    assert_true(model_path_split("UPPER.NPY", &length, &rank));
    assert_int_equal(length, 5);
    assert_string_equal(model_extension(rank), ".npy");
    assert_true(model_path_has_noncanonical_extension("UPPER.NPY"));
    assert_false(model_path_has_noncanonical_extension("UPPER.npy"));
    assert_false(model_path_has_noncanonical_extension("a\n.NPY"));
    assert_true(model_path_needs_sniffing("m.BIN"));
}
