/* Fields that objects keep: by version, within a bound, and after a restart with a whole or a
 * damaged ledger. */
#include "tests.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"
#include "s3/s3api_meta.h"

#define FIELDS "content-type\ntext/x\nx-amz-meta-a\n1\n"

static const struct file_identity one = {.inode = 7, .size_bytes = 3, .modified_ns = 5};
static const struct file_identity other = {.inode = 8, .size_bytes = 3, .modified_ns = 5};

static struct config config;

static int make_folder(void **state)
{
    (void)state;
    memset(&config, 0, sizeof(config));
    snprintf(config.state.dir, sizeof(config.state.dir), "/tmp/ztserve-meta-XXXXXX");
    assert_non_null(mkdtemp(config.state.dir));
    return 0;
}

static int remove_folder(void **state)
{
    char command[sizeof(config.state.dir) + 16];

    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", config.state.dir);
    return system(command);
}

AROUND_EACH_TEST(make_folder, remove_folder)

static struct s3api_meta *open_meta(void)
{
    struct s3api_meta *meta = s3api_meta_new(&config);

    assert_non_null(meta);
    return meta;
}

/* NULL: the version has no fields. */
static void assert_fields(struct s3api_meta *meta, const char *path,
                          const struct file_identity *identity, const char *expected)
{
    char *fields = s3api_meta_find(meta, path, identity);

    if (expected == NULL)
        assert_null(fields);
    else
        assert_string_equal(fields, expected);
    free(fields);
}

TEST(fields_belong_to_one_version_of_a_path)
{
    struct s3api_meta *meta = open_meta();

    s3api_meta_keep(meta, "a", &one, FIELDS);
    assert_fields(meta, "a", &one, FIELDS);
    assert_fields(meta, "a", &other, NULL);
    assert_fields(meta, "b", &one, NULL);
    s3api_meta_keep(meta, "a", &other, "expires\nnow\n");
    assert_fields(meta, "a", &one, NULL);
    assert_fields(meta, "a", &other, "expires\nnow\n");
    s3api_meta_keep(meta, "a", &other, NULL);
    assert_fields(meta, "a", &other, NULL);
    s3api_meta_forget(meta, "a");
    s3api_meta_free(meta);
    s3api_meta_free(NULL);
}

static void fill(struct s3api_meta *meta)
{
    s3api_meta_keep(meta, "kept", &one, FIELDS);
    s3api_meta_keep(meta, "changed", &one, FIELDS);
    s3api_meta_keep(meta, "changed", &other, "expires\nnow\n");
    s3api_meta_keep(meta, "gone", &one, FIELDS);
    s3api_meta_forget(meta, "gone");
}

TEST(fields_survive_a_restart)
{
    struct s3api_meta *meta = open_meta();

    fill(meta);
    s3api_meta_free(meta);
    /* The second restart reads what the first has appended to. */
    for (unsigned i = 0; i < 2; i++) {
        meta = open_meta();
        assert_fields(meta, "kept", &one, FIELDS);
        assert_fields(meta, "changed", &one, NULL);
        assert_fields(meta, "changed", &other, "expires\nnow\n");
        assert_fields(meta, "gone", &one, NULL);
        s3api_meta_keep(meta, "more", &one, FIELDS);
        s3api_meta_free(meta);
    }
}

/* The only file of the ledger's folder. */
static void find_ledger(char *out_path, size_t size)
{
    char folder[sizeof(config.state.dir) + 16];
    const struct dirent *entry;
    DIR *stream;

    snprintf(folder, sizeof(folder), "%s/objects", config.state.dir);
    stream = opendir(folder);
    assert_non_null(stream);
    do {
        entry = readdir(stream);
        assert_non_null(entry);
    } while (entry->d_name[0] == '.');
    snprintf(out_path, size, "%s/%s", folder, entry->d_name);
    closedir(stream);
}

static void write_ledger(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Whatever is damaged, the server starts, and has only fields that were kept. */
TEST(a_damaged_ledger_loses_only_fields)
{
    struct s3api_meta *meta = open_meta();
    char path[sizeof(config.state.dir) + 300];
    char bytes[1024];
    size_t length;
    FILE *file;

    fill(meta);
    s3api_meta_free(meta);
    find_ledger(path, sizeof(path));
    file = fopen(path, "rb");
    assert_non_null(file);
    length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_true(length > 100 && length < sizeof(bytes));
    for (size_t at = 0; at < length; at++) {
        char *fields;

        bytes[at] ^= 4;
        write_ledger(path, bytes, at % 2 == 0 ? length : at);
        bytes[at] ^= 4;
        meta = open_meta();
        fields = s3api_meta_find(meta, "kept", &one);
        assert_true(fields == NULL || strcmp(fields, FIELDS) == 0);
        free(fields);
        s3api_meta_keep(meta, "new", &one, FIELDS);
        s3api_meta_free(meta);
        meta = open_meta();
        assert_fields(meta, "new", &one, FIELDS);
        s3api_meta_free(meta);
    }
}

TEST(the_fields_used_last_are_kept_within_the_bound)
{
    const size_t length = 60 << 10;
    const unsigned count = 2 * S3API_META_BYTES / length;
    struct s3api_meta *meta;
    char *fields = malloc(length + 16);
    char path[32];

    /* A bound of the disk is not what is tested here. */
    snprintf(config.state.dir + strlen(config.state.dir), 8, "/none/x");
    meta = open_meta();
    assert_non_null(fields);
    memset(fields, 'x', length);
    strcpy(fields, "a\n");
    fields[2] = 'x';
    strcpy(fields + length, "\n");
    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%u", i);
        s3api_meta_keep(meta, path, &one, fields);
        if (i > 0)
            assert_fields(meta, "0", &one, fields);
    }
    assert_fields(meta, "1", &one, NULL);
    assert_fields(meta, path, &one, fields);
    s3api_meta_free(meta);
    free(fields);
    config.state.dir[strlen(config.state.dir) - strlen("/none/x")] = '\0';
}
