/* What is remembered of a pull: which pieces of which version of which file. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "download/piece_map.h"

#define SIZE ((uint64_t)10 * 65536 + 5)

static char path[64];
static struct web_file file;
static struct piece_map map;
static const char *url;

static int begin(void **state)
{
    char text[PIECE_TEXT_SIZE];
    struct zt_error error;

    (void)state;
    snprintf(path, sizeof(path), "/tmp/pull_journal.%d", (int)getpid());
    file = (struct web_file){.size = SIZE, .etag = "\"v1\""};
    url = "http://h/m";
    piece_map_init(&map, SIZE);
    piece_map_set(&map, 1, PIECE_HERE);
    piece_map_set(&map, 9, PIECE_FLYING);
    piece_map_set(&map, 10, PIECE_HERE);
    piece_map_write(&map, text);
    assert_ok(piece_journal_write(path, url, &file, text, "", &error));
    piece_map_init(&map, SIZE);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

#define PREPARED(name) TEST_WITH(name, begin, end)

PREPARED(pieces_that_were_there_are_there_again)
{
    piece_journal_read(path, url, &file, &map);
    assert_int_equal(map.here, 2);
    assert_int_equal(piece_map_bytes(&map), 65536 + 5);
    assert_true(piece_map_has(&map, 65536, 65536));
    assert_true(piece_map_has(&map, SIZE - 5, 5));
    assert_false(piece_map_has(&map, 9 * 65536, 1));
}

PREPARED(another_version_url_or_size_has_none)
{
    strcpy(file.etag, "\"v2\"");
    piece_journal_read(path, url, &file, &map);
    assert_int_equal(map.here, 0);
    strcpy(file.etag, "\"v1\"");
    url = "http://h/n";
    piece_journal_read(path, url, &file, &map);
    assert_int_equal(map.here, 0);
    url = "http://h/m";
    file.size++;
    piece_journal_read(path, url, &file, &map);
    assert_int_equal(map.here, 0);
}

/* As after a crash of the machine: only what was synced counts. */
PREPARED(another_boot_has_what_was_synced)
{
    char text[4096] = "";
    char *boot;
    FILE *stream = fopen(path, "r+");
    size_t length;

    assert_non_null(stream);
    length = fread(text, 1, sizeof(text) - 1, stream);
    boot = strstr(text, "\"boot\":\"");
    assert_non_null(boot);
    boot[8] = boot[8] == 'x' ? 'y' : 'x';
    rewind(stream);
    assert_int_equal(fwrite(text, 1, length, stream), length);
    fclose(stream);
    piece_journal_read(path, url, &file, &map);
    assert_int_equal(map.here, 0);
}

/* The line's end says nothing, so a journal that lacks it alone is whole. */
PREPARED(every_prefix_of_a_journals_object_is_none)
{
    FILE *stream = fopen(path, "r");
    char text[4096];
    size_t length;

    assert_non_null(stream);
    length = fread(text, 1, sizeof(text), stream);
    fclose(stream);
    assert_true(length > 0 && text[length - 1] == '\n');
    length--;
    while (length-- > 0) {
        assert_int_equal(truncate(path, (off_t)length), 0);
        piece_journal_read(path, url, &file, &map);
        assert_int_equal(map.here, 0);
    }
}

PREPARED(the_next_run_begins_where_it_is_wanted_and_wraps)
{
    uint32_t first;
    uint32_t past;

    piece_journal_read(path, url, &file, &map);
    assert_true(piece_map_find(&map, 0, 1 << 20, &first, &past));
    assert_int_equal(first, 0);
    assert_int_equal(past, 1);
    assert_true(piece_map_find(&map, 4, 3 * 65536, &first, &past));
    assert_int_equal(first, 4);
    assert_int_equal(past, 7);
    assert_true(piece_map_find(&map, 10, 1, &first, &past));
    assert_int_equal(first, 0);
}

TEST(the_largest_file_has_a_bounded_number_of_pieces)
{
    piece_map_init(&map, UINT64_C(1) << 60);
    assert_in_range(map.count, 1, PIECES_MAX);
    assert_int_equal(piece_map_end(&map, map.count - 1), UINT64_C(1) << 60);
}

TEST(stream_is_one_piece_of_unknown_size)
{
    uint32_t first;
    uint32_t past;

    piece_map_init(&map, UINT64_MAX);
    assert_true(piece_map_find(&map, 0, 1, &first, &past));
    assert_int_equal(past, 1);
    assert_int_equal(piece_map_end(&map, 0), UINT64_MAX);
    assert_int_equal(piece_map_bytes(&map), 0);
    map.size = 5;
    piece_map_set(&map, 0, PIECE_HERE);
    assert_true(piece_map_is_whole(&map) && piece_map_has(&map, 1, 4));
}
