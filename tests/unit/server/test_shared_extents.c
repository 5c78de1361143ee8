/* Sharing extents, on any file system: what is compared, and that no byte changes. Whether extents
 * are shared is seen from outside (tests/http/test_versions_extents.py). */
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/versions/shared_extents.h"

#define BYTES ((size_t)3 << 20)

struct files {
    int descriptors[2];
    uint8_t *bytes[2];
};

/* Makes two unnamed files; the second one differs from `from` on. */
static struct files make_files(size_t from)
{
    struct files files;

    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/ztserve-extents-XXXXXX";

        files.descriptors[i] = mkstemp(path);
        assert_true(files.descriptors[i] >= 0);
        unlink(path);
        files.bytes[i] = malloc(BYTES);
        assert_non_null(files.bytes[i]);
        for (size_t j = 0; j < BYTES; j++)
            files.bytes[i][j] = (uint8_t)(j * 31 + (j >> 11) + (j >= from && i == 1));
        assert_int_equal(pwrite(files.descriptors[i], files.bytes[i], BYTES, 0), BYTES);
    }
    return files;
}

static struct shared_extents *open_files(const struct files *files)
{
    struct zt_source *sources[2];

    for (int i = 0; i < 2; i++)
        assert_ok(zt_source_from_descriptor(dup(files->descriptors[i]), &sources[i], NULL));
    return shared_extents_new(sources[0], sources[1]);
}

static void check_and_free(struct files *files)
{
    uint8_t *found = malloc(BYTES);

    assert_non_null(found);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pread(files->descriptors[i], found, BYTES, 0), BYTES);
        assert_memory_equal(found, files->bytes[i], BYTES);
        free(files->bytes[i]);
        close(files->descriptors[i]);
    }
    free(found);
}

TEST(sharing_changes_no_bytes_and_says_if_it_cannot)
{
    const size_t differences[] = {BYTES, BYTES - 1, (size_t)2 << 20, 70000, 0};
    const atomic_bool stop = false;

    for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
        struct files files = make_files(differences[i]);
        struct shared_extents *sharing = open_files(&files);
        uint64_t most = UINT64_MAX;

        assert_non_null(sharing);
        if (shared_extents_run(sharing, &most, &stop) == SHARED_EXTENTS_DONE)
            assert_in_range(shared_extents_bytes(sharing), 0, differences[i]);
        else
            assert_int_equal(shared_extents_bytes(sharing), 0);
        shared_extents_free(sharing);
        check_and_free(&files);
    }
}

TEST(files_without_equal_blocks_are_compared_in_turns_up_to_their_first_differences)
{
    const atomic_bool stop = false;
    struct files files = make_files(0);
    struct shared_extents *sharing = open_files(&files);
    enum shared_extents_answer answer = SHARED_EXTENTS_MORE;
    uint64_t read = 0;
    unsigned calls = 0;

    while (answer == SHARED_EXTENTS_MORE) {
        uint64_t most = 1 << 20;

        answer = shared_extents_run(sharing, &most, &stop);
        read += (1 << 20) - most;
        assert_true(++calls < 100);
    }
    assert_int_equal(answer, SHARED_EXTENTS_DONE);
    assert_int_equal(shared_extents_bytes(sharing), 0);
    assert_in_range(read, 1, BYTES / 2);
    shared_extents_free(sharing);
    check_and_free(&files);
}

TEST(sharing_stops_when_it_is_told_to_or_has_read_enough)
{
    const atomic_bool stop = true;
    const atomic_bool go = false;
    struct files files = make_files(0);
    struct shared_extents *sharing = open_files(&files);
    uint64_t most = UINT64_MAX;

    assert_int_equal(shared_extents_run(sharing, &most, &stop), SHARED_EXTENTS_MORE);
    assert_true(most == UINT64_MAX);
    most = 1;
    assert_int_equal(shared_extents_run(sharing, &most, &go), SHARED_EXTENTS_MORE);
    assert_true(most == 0);
    shared_extents_free(sharing);
    check_and_free(&files);
}

TEST(sources_that_are_no_files_share_nothing)
{
    struct files files = make_files(BYTES);
    struct zt_source *file;
    struct zt_source *memory;

    assert_ok(zt_source_from_descriptor(dup(files.descriptors[0]), &file, NULL));
    assert_ok(zt_source_from_memory(files.bytes[0], BYTES, &memory, NULL));
    assert_null(shared_extents_new(memory, file));
    check_and_free(&files);
}
