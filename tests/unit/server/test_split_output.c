/* Several output files appear together or not at all. A conversion that fails leaves every older
 * file unchanged. */
#include "tests.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conversion/output_file.h"
#include "conversion/split_output.h"
#include "written.h"

/* Larger than "a" and "c", smaller than "b" of written_plain. */
#define PART_BYTES 50
#define PARTS      2
#define FILES      (PARTS + 1)

static const char *const names[FILES] = {
    "m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors", "m.safetensors.index.json"};

static char folder[] = "/tmp/split_output.XXXXXX";
static struct written plain;
static struct split_replacing replacing;
static char *failed;
static struct zt_error error;

/* --- a file system that fails --- */

static const char *refused;      /* the name that no new file gets */
static const char *taken;        /* the name that another process gives to a file of its own */
static bool refuses_folder_sync; /* once */
static bool had_index;           /* when the first part got its name */
static bool has_named;

static void write_file(const char *path, const char *text);

static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

int rename(const char *from, const char *to)
{
    if (ends_with(from, ".partial")) {
        had_index = has_named ? had_index : access(in_folder(names[PARTS]), F_OK) == 0;
        has_named = true;
        if (taken != NULL) {
            unlink(in_folder(taken));
            write_file(in_folder(taken), "of another process");
        }
        if (refused != NULL && ends_with(to, refused)) {
            errno = EPERM;
            return -1;
        }
    }
    return (int)syscall(SYS_rename, from, to);
}

int fsync(int descriptor)
{
    struct stat status;

    if (refuses_folder_sync && fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
        refuses_folder_sync = false;
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, descriptor);
}

/* --- files --- */

static void write_file(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");

    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static void assert_holds(const char *name, const char *text)
{
    char read[64] = "";
    FILE *stream = fopen(in_folder(name), "r");

    if (stream == NULL)
        fail_msg("%s does not exist", name);
    (void)!fread(read, 1, sizeof(read) - 1, stream);
    assert_string_equal(read, text);
    fclose(stream);
}

static unsigned count_files(void)
{
    DIR *files = opendir(folder);
    const struct dirent *entry;
    unsigned count = 0;

    assert_non_null(files);
    while ((entry = readdir(files)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(files);
    return count;
}

static void write_older_files(void)
{
    for (size_t i = 0; i < FILES; i++)
        write_file(in_folder(names[i]), names[i]);
}

static void assert_older_files(void)
{
    for (size_t i = 0; i < FILES; i++)
        assert_holds(names[i], names[i]);
    assert_int_equal(count_files(), FILES);
}

static int begin(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    written_plain(&plain);
    replacing = (struct split_replacing){0};
    refused = taken = NULL;
    refuses_folder_sync = has_named = false;
    failed = NULL;
    zt_error_clear(&error);
    return 0;
}

static int end(void **state)
{
    char command[64];

    (void)state;
    free(failed);
    written_free(&plain);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command); /* NOLINT(cert-env33-c) */
}

AROUND_EACH_TEST(begin, end)

static enum zt_status split(void)
{
    struct zt_projection *projection;
    struct split_plan plan;
    struct zt_conversion whole = {.source = plain.model, .files = &plain.source};
    char path[PATH_MAX];
    enum zt_status status;

    snprintf(path, sizeof(path), "%s", in_folder("m.safetensors"));
    assert_ok(zt_model_project(plain.model, ZT_TARGET_SAFETENSORS, &projection, &error));
    whole.projection = projection;
    assert_ok(split_plan_make(plain.model, projection, PART_BYTES, &plan, &error));
    assert_int_equal(plan.count, PARTS);
    status = split_output_write(&plan, &whole, path, &replacing, &failed, &error);
    split_plan_free(&plan);
    zt_projection_free(projection);
    return status;
}

/* --- several files --- */

TEST(older_files_are_replaced)
{
    write_older_files();
    assert_ok(split());
    assert_true(replacing.has_happened);
    assert_int_equal(count_files(), FILES);
    for (size_t i = 0; i < FILES; i++) {
        struct stat status;

        assert_int_equal(stat(in_folder(names[i]), &status), 0);
        assert_true((size_t)status.st_size > strlen(names[i]));
    }
}

/* A program that is killed here leaves no index of old and new parts. */
TEST(no_index_names_both_old_and_new_parts)
{
    write_older_files();
    assert_ok(split());
    assert_false(had_index);
}

TEST(failure_restores_older_files)
{
    for (size_t i = 0; i < FILES; i++) {
        write_older_files();
        refused = names[i];
        assert_int_equal(split(), ZT_IO);
        assert_true(ends_with(failed, names[i]));
        assert_older_files();
        free(failed);
        failed = NULL;
    }
}

TEST(failed_sync_restores_older_files)
{
    write_older_files();
    refuses_folder_sync = true;
    assert_int_equal(split(), ZT_IO);
    assert_older_files();
}

TEST(failure_keeps_links)
{
    char target[PATH_MAX];

    snprintf(target, sizeof(target), "%s", in_folder("linked"));
    write_file(target, "linked");
    assert_int_equal(symlink(target, in_folder(names[0])), 0);
    refused = names[1];
    assert_int_equal(split(), ZT_IO);
    assert_int_equal(readlink(in_folder(names[0]), target, sizeof(target)),
                     strlen(in_folder("linked")));
    assert_holds("linked", "linked");
    assert_int_equal(count_files(), 2);
}

TEST(failure_leaves_no_new_file)
{
    write_file(in_folder(names[0]), "older");
    refused = names[2];
    assert_int_equal(split(), ZT_IO);
    assert_holds(names[0], "older");
    assert_int_equal(count_files(), 1);
}

TEST(failure_keeps_files_of_other_processes)
{
    refused = names[2];
    taken = names[0];
    assert_int_equal(split(), ZT_IO);
    assert_holds(names[0], "of another process");
    assert_int_equal(count_files(), 1);
}

/* --- one file --- */

TEST(one_file_without_synced_folder_is_reported_as_written)
{
    struct output_file file;

    assert_ok(output_file_open(in_folder("one"), &file, &error));
    assert_ok(output_file_write(&file, "new", 3, &error));
    refuses_folder_sync = true;
    assert_int_equal(output_file_publish(&file, &error), ZT_IO);
    assert_holds("one", "new");
    assert_non_null(strstr(error.message, "it was written"));
}
