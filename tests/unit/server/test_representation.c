/* Representations of many segments, cut to ranges, beside the same bytes in one piece. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "http/exchange/representation.h"

#define SEGMENTS 200000

static uint8_t *flat;
static struct segment *segments;
static struct representation representation;
static struct zt_source *source;

/* Of lengths 1 to 7, in memory and in a source that holds them in reverse order. */
static int set_up(void **state)
{
    uint64_t length = 0;

    (void)state;
    flat = malloc((size_t)SEGMENTS * 7);
    segments = calloc(SEGMENTS, sizeof(*segments));
    assert_non_null(flat);
    assert_non_null(segments);
    for (size_t i = 0; i < (size_t)SEGMENTS * 7; i++)
        flat[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_ok(zt_source_from_memory(flat, (size_t)SEGMENTS * 7, &source, NULL));
    for (size_t i = 0; i < SEGMENTS; i++) {
        segments[i].kind = i % 2 == 0 ? SEGMENT_MEMORY : SEGMENT_SOURCE;
        segments[i].length = 1 + i * 31 % 7;
        segments[i].bytes = flat + length;
        segments[i].source = source;
        segments[i].offset = length;
        length += segments[i].length;
    }
    representation_init(&representation);
    representation_segments(&representation, segments, SEGMENTS);
    assert_true(representation.length == length);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    zt_source_close(source);
    free(segments);
    free(flat);
    return 0;
}

static uint64_t check_segment(const struct segment *segment, uint64_t first, uint64_t at,
                              uint64_t start)
{
    assert_true(segment->length > 0);
    assert_true(segment->start == start + at);
    if (segment->kind == SEGMENT_MEMORY)
        assert_ptr_equal(segment->bytes, flat + first + at);
    else
        assert_true(segment->offset == first + at);
    return at + segment->length;
}

static void check_cut(uint64_t first, uint64_t length, uint64_t start)
{
    const size_t count = representation_count(&representation, first, length);
    struct segment *cut = calloc(count, sizeof(*cut));
    uint64_t at = 0;

    assert_non_null(cut);
    assert_int_equal(representation_cut(&representation, first, length, start, cut), count);
    for (size_t i = 0; i < count; i++)
        at = check_segment(&cut[i], first, at, start);
    assert_true(at == length);
    free(cut);
}

TEST(ranges_are_cut_out_exactly)
{
    uint64_t seed = 7;

    for (unsigned i = 0; i < 20000; i++) {
        uint64_t first;
        uint64_t left;
        uint64_t length;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        first = (seed >> 33) % representation.length;
        left = representation.length - first;
        length = 1 + (seed >> 20) % (left < 50 ? left : 50);

        check_cut(first, length, seed >> 50);
    }
}

TEST(the_ends_are_cut_out_exactly)
{
    check_cut(0, representation.length, 0);
    check_cut(0, 1, 0);
    check_cut(representation.length - 1, 1, 9);
    check_cut(1, representation.length - 2, 0);
}

TEST(one_segment_is_cut)
{
    struct representation small;
    struct segment cut;

    representation_init(&small);
    representation_memory(&small, "0123456789", 10);
    assert_int_equal(representation_count(&small, 3, 4), 1);
    assert_int_equal(representation_cut(&small, 3, 4, 100, &cut), 1);
    assert_memory_equal(cut.bytes, "3456", 4);
    assert_true(cut.start == 100 && cut.length == 4);
}

AROUND_ALL_TESTS(set_up, tear_down)
