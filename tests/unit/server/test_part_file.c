/* The part file of a pull belongs to one process, and only that process's bytes get the final name,
 * whatever others do between two calls. */
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "download/part_file.h"

static struct zt_error error;

static char folder[] = "/tmp/part_file.XXXXXX";
static char path[64];
static struct part_file file;
/* Called before each lock is taken, as if by another process. */
static void (*meanwhile)(void);

int flock(int descriptor, int operation)
{
    if (meanwhile != NULL)
        meanwhile();
    return (int)syscall(SYS_flock, descriptor, operation);
}

/* The error of syncing a folder; 0: none. */
static int folder_error;

int fsync(int descriptor)
{
    struct stat status;

    if (folder_error == 0 || fstat(descriptor, &status) != 0 || !S_ISDIR(status.st_mode))
        return (int)syscall(SYS_fsync, descriptor);
    errno = folder_error;
    return -1;
}

static void write_file(const char *name, const char *text)
{
    FILE *stream = fopen(name, "w");

    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static void assert_holds(const char *name, const char *text)
{
    char read[64] = "";
    FILE *stream = fopen(name, "r");

    assert_non_null(stream);
    assert_int_equal(fread(read, 1, sizeof(read) - 1, stream), strlen(text));
    assert_string_equal(read, text);
    fclose(stream);
}

static int begin(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/m.zt", folder);
    meanwhile = NULL;
    folder_error = 0;
    return part_file_init(&file, path, false, &error) == ZT_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    unlink(file.part);
    unlink(file.journal);
    unlink(path);
    rmdir(folder);
    if (file.descriptor >= 0)
        part_file_close(&file);
    part_file_free(&file);
    return 0;
}

#define PREPARED(name) TEST_WITH(name, begin, end)

PREPARED(one_descriptor_has_the_part_file)
{
    struct part_file second = file;

    assert_ok(part_file_open(&file, &error));
    assert_int_equal(part_file_open(&second, &error), ZT_IO);
    assert_non_null(strstr(error.message, "another process"));
    part_file_close(&file);
    assert_ok(part_file_open(&second, &error));
    part_file_close(&second);
}

static void publish_once(void)
{
    meanwhile = NULL;
    assert_int_equal(rename(file.part, path), 0);
}

PREPARED(a_file_that_got_its_name_before_the_lock_is_not_written_again)
{
    write_file(file.part, "whole");
    meanwhile = publish_once;
    assert_ok(part_file_open(&file, &error));
    assert_ok(part_file_write(&file, 0, "new", 3, &error));
    part_file_close(&file);
    assert_holds(path, "whole");
    assert_holds(file.part, "new");
}

static void remove_part(void)
{
    unlink(file.part);
}

PREPARED(a_name_that_never_stays_is_given_up)
{
    meanwhile = remove_part;
    assert_int_equal(part_file_open(&file, &error), ZT_IO);
}

PREPARED(what_is_no_regular_file_is_refused)
{
    assert_int_equal(symlink("elsewhere", file.part), 0);
    assert_int_equal(part_file_open(&file, &error), ZT_IO);
    assert_non_null(strstr(error.message, "symbolic link"));
    unlink(file.part);
    assert_int_equal(mkfifo(file.part, 0600), 0);
    assert_int_equal(part_file_open(&file, &error), ZT_IO);
    assert_non_null(strstr(error.message, "not a regular file"));
}

PREPARED(only_the_file_that_was_locked_gets_the_name)
{
    assert_ok(part_file_open(&file, &error));
    unlink(file.part);
    assert_int_equal(part_file_publish(&file, &error), ZT_IO);
    write_file(file.part, "of another process");
    assert_int_equal(part_file_publish(&file, &error), ZT_IO);
    assert_int_equal(access(path, F_OK), -1);
    part_file_close(&file);
}

PREPARED(part_file_of_another_process_is_not_removed)
{
    assert_ok(part_file_open(&file, &error));
    unlink(file.part);
    write_file(file.part, "of another process");
    write_file(file.journal, "too");
    part_file_remove(&file);
    assert_holds(file.part, "of another process");
    assert_holds(file.journal, "too");
    part_file_close(&file);
    unlink(file.part);
    unlink(file.journal);
}

PREPARED(file_without_synced_folder_is_reported_as_written)
{
    assert_ok(part_file_open(&file, &error));
    assert_ok(part_file_write(&file, 0, "new", 3, &error));
    write_file(file.journal, "pieces");
    folder_error = EIO;
    assert_int_equal(part_file_publish(&file, &error), ZT_IO);
    assert_non_null(strstr(error.message, "it was written"));
    assert_holds(path, "new");
    assert_int_equal(access(file.journal, F_OK), -1);
    part_file_close(&file);
}

PREPARED(file_system_that_cannot_sync_folders_is_accepted)
{
    assert_ok(part_file_open(&file, &error));
    folder_error = EINVAL;
    assert_ok(part_file_publish(&file, &error));
    part_file_close(&file);
}

PREPARED(a_part_is_blank_until_something_was_written)
{
    assert_ok(part_file_open(&file, &error));
    assert_ok(part_file_truncate(&file, 1 << 20, &error));
    assert_true(part_file_is_blank(&file));
    assert_ok(part_file_write(&file, 5000, "x", 1, &error));
    assert_false(part_file_is_blank(&file));
    assert_ok(part_file_publish(&file, &error));
    assert_int_equal(access(path, F_OK), 0);
    part_file_close(&file);
}
