/* Names of models: which texts are valid, and which paths name models. */
#include "support.h"

#include <string.h>

#include "store/store.h"

static bool valid(const char *name)
{
    return model_name_is_valid((struct zt_text){name, strlen(name)});
}

static void names_of_parts_are_valid(void **state)
{
    (void)state;
    assert_true(valid("a"));
    assert_true(valid("bert-base"));
    assert_true(valid("meta-llama/Llama-3-8B"));
    assert_true(valid("0/1_2/A.b-c"));
}

static bool plain(const char *name)
{
    return model_name_is_plain((struct zt_text){name, strlen(name)});
}

static void what_is_read_may_have_names_that_are_not_uploaded(void **state)
{
    static const char *const names[] = {"-a",    "_a",          "a b",  "a\\b",
                                        "a%2Fb", "caf\xc3\xa9", "a:b",  "\xe6\x97\xa5/x,y",
                                        "a/ ",   "\"q\"",       "-*-x", "\xc2\xa0"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(valid(names[i]));
        assert_false(plain(names[i]));
    }
    assert_true(plain("0/1_2/A.b-c"));
    assert_false(plain("a/.b"));
    assert_false(plain("a//b"));
}

static void names_that_could_leave_the_root_are_refused(void **state)
{
    static const char *const names[] = {
        "",          "/",    "/a",    "a/",   "a//b",    "..",       "a/../b",
        ".a",        "a/.b", "a/./b", "a/..", "../a",    "a\n",      "\x7f",
        "a\xc2\x85", "\t",   "\xff",  "\xc3", "caf\xe9", "\xc0\xae", "\xed\xa0\x80"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_false(valid(names[i]));
    assert_false(model_name_is_valid((struct zt_text){"a\0b", 3}));
}

static void longer_names_are_refused(void **state)
{
    char name[MODEL_NAME_MAX + 2];

    (void)state;
    memset(name, 'a', sizeof(name));
    assert_true(model_name_is_valid((struct zt_text){name, MODEL_NAME_MAX}));
    assert_false(model_name_is_valid((struct zt_text){name, MODEL_NAME_MAX + 1}));
    assert_true(model_name_is_plain((struct zt_text){name, MODEL_PLAIN_NAME_MAX}));
    assert_false(model_name_is_plain((struct zt_text){name, MODEL_PLAIN_NAME_MAX + 1}));
}

static void paths_split_into_name_and_rank(void **state)
{
    size_t length = 0;
    unsigned rank = 9;

    (void)state;
    assert_true(model_path_split("a/b.tar.zt", &length, &rank));
    assert_int_equal(length, 7);
    assert_int_equal(rank, 0);
    assert_true(model_path_split("x.npy", &length, &rank));
    assert_int_equal(rank, 5);
    assert_string_equal(model_extension(1), ".safetensors");
}

static void extension_of_an_index_is_all_that_follows_the_name(void **state)
{
    size_t length = 0;
    unsigned rank = 0;

    (void)state;
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
    assert_true(model_path_is_misfit("my\tmodel.safetensors.index.json"));
    assert_false(model_path_is_misfit("m.json"));
}

static void paths_that_are_no_models_do_not_split(void **state)
{
    static const char *const paths[] = {
        "a", "a.txt", ".zt", "a/.zt", "a.zt/b", "a\n.zt", "a.zt.", ".a.zt", "m-*-of-00002.gguf"};
    size_t length = 77;
    unsigned rank = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_false(model_path_split(paths[i], &length, &rank));
    assert_int_equal(length, 77);
    assert_int_equal(rank, 77);
}

static void files_meant_to_be_models_are_recognised(void **state)
{
    (void)state;
    assert_true(model_path_is_misfit("my\tmodel.zt"));
    assert_true(model_path_is_misfit("a/\xff.npz"));
    assert_true(model_path_is_misfit("\x7f.SafeTensors"));
    assert_false(model_path_is_misfit("my model.zt"));
    assert_false(model_path_is_misfit("x.SafeTensors"));
    assert_true(model_path_is_misfit(".zt"));
    assert_false(model_path_is_misfit("m.zt"));
    assert_false(model_path_is_misfit("my notes.txt"));
    assert_false(model_path_is_misfit("a b.zt/c"));
    assert_false(model_path_is_misfit("zt"));
}

static void extensions_have_any_case(void **state)
{
    size_t length = 0;
    unsigned rank = 0;

    (void)state;
    assert_true(model_path_split("UPPER.NPY", &length, &rank));
    assert_int_equal(length, 5);
    assert_string_equal(model_extension(rank), ".npy");
    assert_true(model_path_is_odd("UPPER.NPY"));
    assert_false(model_path_is_odd("UPPER.npy"));
    assert_false(model_path_is_odd("a\n.NPY"));
    assert_true(model_path_is_vague("m.BIN"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_meant_to_be_models_are_recognised),
        cmocka_unit_test(names_of_parts_are_valid),
        cmocka_unit_test(what_is_read_may_have_names_that_are_not_uploaded),
        cmocka_unit_test(extensions_have_any_case),
        cmocka_unit_test(names_that_could_leave_the_root_are_refused),
        cmocka_unit_test(longer_names_are_refused),
        cmocka_unit_test(paths_split_into_name_and_rank),
        cmocka_unit_test(extension_of_an_index_is_all_that_follows_the_name),
        cmocka_unit_test(paths_that_are_no_models_do_not_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
