/* Sources: whole reads or ZT_IO, regular files only, one mapping for all threads. */
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zt/source.h"

static const char content[] = "0123456789abcdef";

static int make_file(char *path)
{
    int descriptor;

    strcpy(path, "/tmp/zt-test-source-XXXXXX");
    descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, content, 16), 16);
    return descriptor;
}

static void assert_reads(struct zt_source *source)
{
    char buffer[17] = {0};
    struct zt_error error;

    assert_int_equal(zt_source_size(source), 16);
    assert_ok(zt_source_read_at(source, 0, buffer, 16, &error));
    assert_memory_equal(buffer, content, 16);
    assert_ok(zt_source_read_at(source, 10, buffer, 6, &error));
    assert_memory_equal(buffer, "abcdef", 6);
    assert_ok(zt_source_read_at(source, 16, buffer, 0, &error));
    assert_memory_equal(zt_source_map(source), content, 16);
    assert_ptr_equal(zt_source_map(source), zt_source_map(source));
}

static void assert_refuses(struct zt_source *source, uint64_t offset, size_t length)
{
    char buffer[32];
    struct zt_error error;

    zt_error_clear(&error);
    assert_int_equal(zt_source_read_at(source, offset, buffer, length, &error), ZT_IO);
    assert_int_equal(error.status, ZT_IO);
    assert_true(error.offset == offset);
}

TEST(memory_source_fails_past_its_end)
{
    struct zt_source *source = memory_source(content, 16);

    assert_reads(source);
    assert_int_equal(zt_source_descriptor(source), -1);
    assert_refuses(source, 16, 1);
    assert_refuses(source, 15, 2);
    assert_refuses(source, UINT64_MAX, 2);
    zt_source_close(source);
    zt_source_close(NULL);
}

TEST(file_source_fails_past_its_end)
{
    char path[64];
    struct zt_source *source = NULL;

    close(make_file(path));
    assert_ok(zt_source_open_file(path, &source, NULL));
    unlink(path);
    assert_reads(source);
    assert_true(zt_source_descriptor(source) >= 0);
    assert_true(fcntl(zt_source_descriptor(source), F_GETFD) & FD_CLOEXEC);
    assert_refuses(source, 16, 1);
    assert_refuses(source, 15, 2);
    assert_refuses(source, UINT64_MAX, 2);
    zt_source_close(source);
}

TEST(file_source_reports_a_file_cut_short)
{
    char path[64];
    struct zt_source *source = NULL;
    int descriptor = make_file(path);
    char buffer[16];
    struct zt_error error;

    assert_ok(zt_source_from_descriptor(descriptor, &source, NULL));
    unlink(path);
    assert_int_equal(ftruncate(descriptor, 4), 0);
    assert_int_equal(zt_source_size(source), 16);
    assert_int_equal(zt_source_read_at(source, 0, buffer, 16, &error), ZT_IO);
    assert_true(error.offset == 4);
    zt_source_close(source);
}

TEST(empty_file_has_size_zero_and_no_map)
{
    char path[64];
    struct zt_source *source = NULL;
    int descriptor = make_file(path);

    unlink(path);
    assert_int_equal(ftruncate(descriptor, 0), 0);
    assert_ok(zt_source_from_descriptor(descriptor, &source, NULL));
    assert_int_equal(zt_source_size(source), 0);
    assert_null(zt_source_map(source));
    zt_source_close(source);
}

static void assert_not_opened(const char *path, int os_error)
{
    struct zt_source *source = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    assert_int_equal(zt_source_open_file(path, &source, &error), ZT_IO);
    assert_int_equal(error.status, ZT_IO);
    assert_int_equal(error.os_error, os_error);
    assert_null(strstr(error.message, path));
    assert_null(source);
}

TEST(open_refuses_anything_but_regular_files)
{
    char path[64];

    close(make_file(path));
    unlink(path);
    assert_not_opened(path, ENOENT);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_not_opened(path, EINVAL);
    unlink(path);
    assert_not_opened("/tmp", EISDIR);
    assert_not_opened("/dev/null", EINVAL);
}

TEST(refused_descriptor_stays_open)
{
    int pipes[2];
    struct zt_source *source = NULL;
    struct zt_error error;

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(zt_source_from_descriptor(pipes[0], &source, &error), ZT_IO);
    assert_true(fcntl(pipes[0], F_GETFD) >= 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void *map_it(void *source)
{
    return (void *)(uintptr_t)zt_source_map(source);
}

TEST(threads_that_map_at_once_get_one_mapping)
{
    char path[64];
    struct zt_source *source = NULL;
    pthread_t threads[8];
    void *maps[8];

    close(make_file(path));
    assert_ok(zt_source_open_file(path, &source, NULL));
    unlink(path);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, map_it, source), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], &maps[i]);
    for (int i = 0; i < 8; i++)
        assert_ptr_equal(maps[i], zt_source_map(source));
    zt_source_close(source);
}
