/* Opening the parts of a model in a folder, whatever the folder is. */

#include "parts/joined_parts.h"
#include "safetensors_file.h"
#include "tests.h"

#define FILES_MAX 4
#define ONE       "f/m-00001-of-00002.safetensors"
#define TWO       "f/m-00002-of-00002.safetensors"

static const char index_text[] = "{\"weight_map\":{\"a\":\"m-00001-of-00002.safetensors\","
                                 "\"b\":\"m-00002-of-00002.safetensors\"}}";

/* A folder of files in memory that counts what it is asked. */
struct memory_folder {
    struct part_folder base;
    const char *paths[FILES_MAX];
    struct container files[FILES_MAX];
    size_t count;
    unsigned opened;
    unsigned refreshed;
    unsigned stale; /* so many openings fail with ZT_STALE */
    enum zt_status failure;
};

static enum zt_status open_file(struct part_folder *base, const char *path,
                                struct zt_source **out_source, struct file_identity *out_identity,
                                struct zt_error *error)
{
    struct memory_folder *folder = (struct memory_folder *)base;

    folder->opened++;
    if (folder->stale > 0) {
        folder->stale--;
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "another version");
    }
    if (folder->failure != ZT_OK)
        return zt_fail(error, folder->failure, NULL, ZT_NO_OFFSET, "cannot be opened");
    for (size_t i = 0; i < folder->count; i++)
        if (strcmp(folder->paths[i], path) == 0) {
            out_identity->inode = i + 1;
            return zt_source_from_memory(folder->files[i].bytes, folder->files[i].length,
                                         out_source, error);
        }
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no such file");
}

static void refresh(struct part_folder *base, const char *path)
{
    (void)path;
    ((struct memory_folder *)base)->refreshed++;
}

static bool is_no_second(const char *path)
{
    return strcmp(path, TWO) != 0;
}

static const struct part_folder_ops ops = {.open = open_file, .refresh = refresh};
static const struct part_folder_ops narrow = {.open = open_file, .may_be_part = is_no_second};

static struct memory_folder folder;
static struct joined_parts parts;
static struct zt_error error;

static void add(const char *path, const char *header, size_t data_length)
{
    folder.paths[folder.count] = path;
    safetensors_make(&folder.files[folder.count++], header, data_length);
}

static int begin(void **state)
{
    (void)state;
    folder = (struct memory_folder){.base = {.ops = &ops}};
    add(ONE, "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
    add(TWO, "{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
    zt_error_clear(&error);
    return 0;
}

static int end(void **state)
{
    (void)state;
    joined_parts_free(&parts);
    for (size_t i = 0; i < FILES_MAX; i++)
        container_free(&folder.files[i]);
    return 0;
}

static enum zt_status open_index(const char *text)
{
    struct zt_source *index = NULL;
    enum zt_status status;

    assert_int_equal(zt_source_from_memory(text, strlen(text), &index, &error), ZT_OK);
    status = joined_parts_open_index(&folder.base, zt_text_from("f/"), index, &parts, &error);
    zt_source_close(index);
    return status;
}

static void assert_nothing_is_open(void)
{
    assert_null(parts.model);
    for (uint32_t i = 0; i < parts.count; i++) {
        assert_null(parts.items[i].source);
        assert_null(parts.items[i].model);
    }
}

AROUND_EACH_TEST(begin, end)

TEST(an_index_opens_each_part_once)
{
    assert_int_equal(open_index(index_text), ZT_OK);
    assert_int_equal(parts.model->object_count, 2);
    assert_int_equal(parts.count, 2);
    assert_int_equal(parts.own, 0);
    assert_int_equal(folder.opened, 2);
    assert_string_equal(parts.items[1].path, TWO);
    assert_int_equal(parts.items[1].identity.inode, 2);
    assert_int_equal(parts.items[1].size_bytes, folder.files[1].length);
    assert_non_null(parts.items[1].source);
    assert_null(parts.items[1].model);
}

TEST(a_missing_part_ends_opening_and_leaves_the_paths)
{
    folder.paths[0] = "f/x";
    assert_int_equal(open_index(index_text), ZT_INVALID);
    assert_true(joined_parts_lack_a_part(&error));
    assert_string_equal(error.message, "part m-00001-of-00002.safetensors is missing");
    assert_int_equal(folder.opened, 1);
    assert_int_equal(parts.count, 2);
    assert_string_equal(parts.items[0].path, ONE);
    assert_int_equal(parts.items[0].size_bytes, UINT64_MAX);
    assert_nothing_is_open();
}

TEST(a_folder_that_skips_missing_parts_learns_the_tensor)
{
    folder.base.skips_missing_parts = true;
    folder.paths[0] = "f/x";
    assert_int_equal(open_index(index_text), ZT_INVALID);
    assert_true(joined_parts_lack_a_part(&error));
    assert_string_equal(error.message, "part m-00001-of-00002.safetensors is missing");
    assert_int_equal(error.object_length, 1);
    assert_int_equal(folder.opened, 2);
    assert_nothing_is_open();
}

TEST(a_stale_version_is_looked_up_once_more)
{
    folder.stale = 1;
    assert_int_equal(open_index(index_text), ZT_OK);
    assert_int_equal(folder.refreshed, 1);
    joined_parts_free(&parts);
    folder.stale = 2;
    assert_int_equal(open_index(index_text), ZT_STALE);
    assert_int_equal(folder.refreshed, 2);
    assert_nothing_is_open();
}

TEST(a_part_that_cannot_be_opened_is_named)
{
    folder.failure = ZT_UNAVAILABLE;
    assert_int_equal(open_index(index_text), ZT_UNAVAILABLE);
    assert_string_equal(error.message, "part m-00001-of-00002.safetensors: cannot be opened");
}

TEST(a_part_beside_the_series_of_the_index_is_refused)
{
    assert_int_equal(open_index("{\"weight_map\":{\"a\":\"m-00001-of-00002.safetensors\"}}"),
                     ZT_INVALID);
    assert_true(joined_parts_have_another_part(&error));
    assert_string_equal(error.message,
                        "part m-00002-of-00002.safetensors is not named by the index");
    assert_nothing_is_open();
}

TEST(a_folder_may_refuse_a_name_before_anything_is_opened)
{
    folder.base.ops = &narrow;
    assert_int_equal(open_index(index_text), ZT_INVALID);
    assert_string_equal(error.rule, "index §Parts PartName");
    assert_int_equal(folder.opened, 0);
    assert_int_equal(parts.count, 0);
}

TEST(files_that_are_only_named_like_a_split_are_none)
{
    struct split_name name;

    folder.paths[0] = "f/m-00001-of-00002.gguf";
    folder.paths[1] = "f/m-00002-of-00002.gguf";
    assert_true(split_path_read("f/m-*-of-00002.gguf", &name));
    assert_int_equal(joined_parts_open_split(&folder.base, &name, NULL, NULL, &parts, &error),
                     ZT_INVALID);
    assert_false(parts.has_split_part);
    assert_int_equal(parts.own, 1);
    assert_int_equal(parts.count, 2);
    assert_nothing_is_open();
}
