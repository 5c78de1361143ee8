/* The part file of a pull belongs to one process, and only that process's bytes get the final name,
 * whatever others do between two calls. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/part_paths.h"

static char folder[] = "/tmp/part_paths.XXXXXX";
static char path[64];
static struct part_paths paths;
/* Called before each lock is taken, as if by another process. */
static void (*meanwhile)(void);

int flock(int descriptor, int operation)
{
    if (meanwhile != NULL)
        meanwhile();
    return (int)syscall(SYS_flock, descriptor, operation);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_holds(const char *name, const char *text)
{
    char read[64] = "";
    FILE *file = fopen(name, "r");

    assert_non_null(file);
    assert_int_equal(fread(read, 1, sizeof(read) - 1, file), strlen(text));
    assert_string_equal(read, text);
    fclose(file);
}

static int begin(void **state)
{
    struct zt_error error;

    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/m.zt", folder);
    meanwhile = NULL;
    return part_paths_make(&paths, path, &error) == ZT_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    part_forget(&paths);
    unlink(path);
    rmdir(folder);
    part_paths_free(&paths);
    return 0;
}

static void one_descriptor_has_the_part_file(void **state)
{
    struct zt_error error;
    int first;
    int second;

    (void)state;
    assert_int_equal(part_open(&paths, &first, &error), ZT_OK);
    assert_int_equal(part_open(&paths, &second, &error), ZT_IO);
    assert_non_null(strstr(error.message, "another process"));
    close(first);
    assert_int_equal(part_open(&paths, &second, &error), ZT_OK);
    close(second);
}

static void publish_once(void)
{
    meanwhile = NULL;
    assert_int_equal(rename(paths.part, path), 0);
}

static void a_file_that_got_its_name_before_the_lock_is_not_written_again(void **state)
{
    struct zt_error error;
    int descriptor;

    (void)state;
    write_file(paths.part, "whole");
    meanwhile = publish_once;
    assert_int_equal(part_open(&paths, &descriptor, &error), ZT_OK);
    assert_int_equal(write(descriptor, "new", 3), 3);
    close(descriptor);
    assert_holds(path, "whole");
    assert_holds(paths.part, "new");
}

static void remove_part(void)
{
    unlink(paths.part);
}

static void a_name_that_never_stays_is_given_up(void **state)
{
    struct zt_error error;
    int descriptor;

    (void)state;
    meanwhile = remove_part;
    assert_int_equal(part_open(&paths, &descriptor, &error), ZT_IO);
}

static void what_is_no_regular_file_is_refused(void **state)
{
    struct zt_error error;
    int descriptor;

    (void)state;
    assert_int_equal(symlink("elsewhere", paths.part), 0);
    assert_int_equal(part_open(&paths, &descriptor, &error), ZT_IO);
    assert_non_null(strstr(error.message, "symbolic link"));
    unlink(paths.part);
    assert_int_equal(mkfifo(paths.part, 0600), 0);
    assert_int_equal(part_open(&paths, &descriptor, &error), ZT_IO);
    assert_non_null(strstr(error.message, "no regular file"));
}

static void only_the_file_that_was_locked_gets_the_name(void **state)
{
    struct zt_error error;
    int descriptor;

    (void)state;
    assert_int_equal(part_open(&paths, &descriptor, &error), ZT_OK);
    unlink(paths.part);
    assert_int_equal(part_publish(&paths, descriptor, &error), ZT_IO);
    write_file(paths.part, "of another process");
    assert_int_equal(part_publish(&paths, descriptor, &error), ZT_IO);
    assert_int_equal(access(path, F_OK), -1);
    close(descriptor);
}

static void a_part_is_blank_until_something_was_written(void **state)
{
    struct zt_error error;
    int descriptor;

    (void)state;
    assert_int_equal(part_open(&paths, &descriptor, &error), ZT_OK);
    assert_int_equal(ftruncate(descriptor, 1 << 20), 0);
    assert_true(part_is_blank(descriptor));
    assert_int_equal(pwrite(descriptor, "x", 1, 5000), 1);
    assert_false(part_is_blank(descriptor));
    assert_int_equal(part_publish(&paths, descriptor, &error), ZT_OK);
    assert_int_equal(access(path, F_OK), 0);
    close(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_descriptor_has_the_part_file, begin, end),
        cmocka_unit_test_setup_teardown(
            a_file_that_got_its_name_before_the_lock_is_not_written_again, begin, end),
        cmocka_unit_test_setup_teardown(a_name_that_never_stays_is_given_up, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(only_the_file_that_was_locked_gets_the_name, begin, end),
        cmocka_unit_test_setup_teardown(a_part_is_blank_until_something_was_written, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
