/* Between the paths of a split GGUF's parts and the path that stands for all of them. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "parts/split_path.h"

TEST(paths_of_parts_lead_to_one_path_and_back)
{
    char path[MODEL_PATH_SIZE];
    struct split_name name;
    char *part;
    size_t length = 0;
    unsigned rank = 0;

    assert_true(split_path_of_part("a/m-x-00002-of-00013.gguf", path));
    assert_string_equal(path, "a/m-x-*-of-00013.gguf");
    assert_true(split_path_read(path, &name));
    assert_int_equal(name.stem.length, strlen("a/m-x"));
    assert_int_equal(name.count, 13);
    part = split_part_path(&name, 2);
    assert_string_equal(part, "a/m-x-00002-of-00013.gguf");
    free(part);
    assert_true(catalog_path_split(path, &length, &rank));
    assert_int_equal(rank, SPLIT_RANK);
    assert_true(split_path_of_part("m-00001-of-00002.GGUF", path));
    assert_string_equal(path, "m-*-of-00002.GGUF");
    assert_true(split_path_read(path, &name));
    part = split_part_path(&name, 2);
    assert_string_equal(part, "m-00002-of-00002.GGUF");
    free(part);
    assert_true(catalog_path_split("m.zt", &length, &rank));
    assert_int_equal(rank, 0);
}

TEST(other_paths_are_no_parts)
{
    static const char *const paths[] = {"m-00001-of-00002.safetensors", "m-00003-of-00002.gguf",
                                        "m-00000-of-00002.gguf",        "m-1-of-2.gguf",
                                        "-00001-of-00002.gguf",         "a/-00001-of-00002.gguf",
                                        "m-00001-of-01025.gguf",        "m.gguf"};
    char path[MODEL_PATH_SIZE];

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_false(split_path_of_part(paths[i], path));
}

TEST(paths_that_stand_for_no_parts_are_refused)
{
    static const char *const paths[] = {"m.gguf",
                                        "m-*-of-00000.gguf",
                                        "m-*-of-99999999999999999999.gguf",
                                        "m-*-of-00002.zt",
                                        "m-*-of-.gguf",
                                        "-*-of-00002.gguf",
                                        "m-*-of-00002.gguf/x"};
    struct split_name name;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_false(split_path_read(paths[i], &name));
}
