/* Between the paths of a split GGUF's parts and the path that stands for all of them. */
#include "support.h"

#include <string.h>

#include "catalog/split_path.h"

static void paths_of_parts_lead_to_one_path_and_back(void **state)
{
    char path[MODEL_PATH_SIZE];
    char part[MODEL_PATH_SIZE];
    size_t length = 0;
    uint32_t count = 0;
    unsigned rank = 0;

    (void)state;
    assert_true(split_path_of_part("a/m-x-00002-of-00013.gguf", path));
    assert_string_equal(path, "a/m-x-*-of-00013.gguf");
    assert_true(split_path_read(path, &length, &count));
    assert_int_equal(length, strlen("a/m-x"));
    assert_int_equal(count, 13);
    split_path_part(path, 2, part);
    assert_string_equal(part, "a/m-x-00002-of-00013.gguf");
    assert_true(catalog_path_split(path, &length, &rank));
    assert_int_equal(rank, SPLIT_RANK);
    assert_true(split_path_of_part("m-00001-of-00002.GGUF", path));
    assert_string_equal(path, "m-*-of-00002.GGUF");
    split_path_part(path, 2, part);
    assert_string_equal(part, "m-00002-of-00002.GGUF");
    assert_true(catalog_path_split("m.zt", &length, &rank));
    assert_int_equal(rank, 0);
}

static void other_paths_are_no_parts(void **state)
{
    static const char *const paths[] = {"m-00001-of-00002.safetensors", "m-00003-of-00002.gguf",
                                        "m-00000-of-00002.gguf",        "m-1-of-2.gguf",
                                        "-00001-of-00002.gguf",         "a/-00001-of-00002.gguf",
                                        "m-00001-of-01025.gguf",        "m.gguf"};
    char path[MODEL_PATH_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_false(split_path_of_part(paths[i], path));
}

static void paths_that_stand_for_no_parts_are_refused(void **state)
{
    static const char *const paths[] = {"m.gguf",
                                        "m-*-of-00000.gguf",
                                        "m-*-of-99999999999999999999.gguf",
                                        "m-*-of-00002.zt",
                                        "m-*-of-.gguf",
                                        "-*-of-00002.gguf",
                                        "m-*-of-00002.gguf/x"};
    size_t length;
    uint32_t count;

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_false(split_path_read(paths[i], &length, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_of_parts_lead_to_one_path_and_back),
        cmocka_unit_test(other_paths_are_no_parts),
        cmocka_unit_test(paths_that_stand_for_no_parts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
