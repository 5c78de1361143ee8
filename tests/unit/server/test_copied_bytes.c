/* Ranges of local files in a part file: what is copied, and what is left to fetch. */
#include "tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "download/copied_bytes.h"

#define PIECE  ((uint64_t)65536)
#define PIECES 10
#define SIZE   (PIECES * PIECE + 5)

static uint8_t bytes[SIZE];
static uint8_t made[SIZE];
static struct piece_map map;
static struct copied_bytes copied;
static struct part_file file;
static int local;
static uint64_t watched;

static void watch(void *context, uint64_t now)
{
    assert_ptr_equal(context, &map);
    assert_true(now >= watched);
    watched = now;
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 2654435761U >> 24 | 1);
    local = memfd_create("local", MFD_CLOEXEC);
    file = (struct part_file){.descriptor = memfd_create("part", MFD_CLOEXEC)};
    assert_int_equal(write(local, bytes, SIZE), SIZE);
    assert_int_equal(ftruncate(file.descriptor, SIZE), 0);
    piece_map_init(&map, SIZE);
    watched = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    copied_bytes_free(&copied);
    close(local);
    close(file.descriptor);
    return 0;
}

#define PREPARED(name) TEST_WITH(name, begin, end)

static void add(uint64_t at, uint64_t length)
{
    struct zt_error error;

    assert_ok(copied_bytes_add(&copied, at, length, local, at, &error));
}

static void make(void)
{
    copied_bytes_make(&copied, &file, &map, watch, &map);
    assert_int_equal(pread(file.descriptor, made, SIZE, 0), SIZE);
}

/* The next run of missing pieces is this one, of these bytes. */
static void assert_run(uint32_t from, uint32_t end, uint64_t at, uint64_t until)
{
    uint32_t first;
    uint32_t last;
    uint64_t begins;
    uint64_t ends;

    assert_true(piece_map_find(&map, from, SIZE, &first, &last));
    assert_int_equal(first, from);
    assert_int_equal(copied_bytes_shorten(&copied, &map, first, last, &begins, &ends), end);
    assert_int_equal(begins, at);
    assert_int_equal(ends, until);
}

PREPARED(pieces_that_ranges_cover_together_are_here)
{
    add(2 * PIECE + 100, PIECE);
    add(PIECE - 10, PIECE + 110);
    make();
    assert_int_equal(map.states[1], PIECE_COPIED);
    assert_int_equal(map.states[2], PIECE_COPIED);
    assert_int_equal(map.here, 2);
    assert_memory_equal(made + PIECE - 10, bytes + PIECE - 10, 2 * PIECE + 110);
    assert_int_equal(watched, 2 * PIECE + 110);
    assert_run(0, 1, 0, PIECE - 10);
    assert_run(3, PIECES + 1, 3 * PIECE + 100, SIZE);
}

PREPARED(gaps_between_ranges_are_runs_of_their_own)
{
    add(0, 2 * PIECE + 7);
    add(2 * PIECE + 64, 3 * PIECE);
    add(5 * PIECE + 500, 5 * PIECE - 495);
    make();
    assert_int_equal(map.here, PIECES + 1 - 2);
    assert_run(2, 3, 2 * PIECE + 7, 2 * PIECE + 64);
    assert_run(5, 6, 5 * PIECE + 64, 5 * PIECE + 500);
    assert_int_equal(copied_bytes_state(&copied, &map, 5), PIECE_COPIED);
}

PREPARED(ranges_that_overlap_are_copied_once)
{
    for (unsigned i = 0; i < 3; i++)
        add(i * 1000, 3 * PIECE);
    make();
    assert_int_equal(watched, 3 * PIECE + 2000);
    assert_memory_equal(made, bytes, 3 * PIECE + 2000);
    assert_run(3, PIECES + 1, 3 * PIECE + 2000, SIZE);
}

PREPARED(pieces_that_were_here_are_not_written)
{
    piece_map_set(&map, 1, PIECE_HERE);
    add(0, 3 * PIECE);
    make();
    assert_int_equal(map.states[1], PIECE_HERE);
    assert_int_equal(made[PIECE], 0);
    assert_memory_equal(made + 2 * PIECE, bytes + 2 * PIECE, PIECE);
    assert_int_equal(watched, 2 * PIECE);
}

PREPARED(what_cannot_be_copied_is_fetched)
{
    assert_int_equal(ftruncate(local, (off_t)(4 * PIECE)), 0);
    add(0, PIECE);
    add(3 * PIECE, 2 * PIECE);
    make();
    assert_int_equal(map.here, 1);
    assert_run(1, PIECES + 1, PIECE, SIZE);
    assert_int_equal(copied_bytes_state(&copied, &map, 3), PIECE_HERE);
}

PREPARED(the_journal_leaves_copied_pieces_out)
{
    char text[PIECE_TEXT_SIZE];

    add(0, 3 * PIECE);
    make();
    piece_map_set(&map, 8, PIECE_HERE);
    piece_map_write(&map, text);
    assert_string_equal(text, "0001");
    assert_int_equal(map.here, 4);
    assert_int_equal(map.copied, 3);
}
