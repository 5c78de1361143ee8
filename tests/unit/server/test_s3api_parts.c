/* Where parts of a multipart upload are written, and how they are joined. */
#include "tests.h"

#include <string.h>

#include "s3/write/s3api_parts.h"

#define ASIDE UINT64_MAX

/* A part that begins, and the offset that it gets. */
struct step {
    uint32_t number;
    uint64_t length;
    uint64_t offset; /* or ASIDE */
};

struct arrival {
    const char *name;
    struct step steps[6]; /* a number of 0 ends them */
};

static const struct arrival arrivals[] = {
    {"in order", {{1, 8, 0}, {2, 8, 8}, {3, 3, 16}}},
    {"from the middle", {{3, 8, ASIDE}, {1, 8, 0}, {2, 8, 8}, {4, 1, 24}}},
    {"the short last part first", {{3, 2, ASIDE}, {2, 8, 8}, {1, 8, 0}, {3, 2, 16}}},
    {"the short last part second", {{2, 8, ASIDE}, {3, 2, 16}, {1, 8, 0}}},
    {"part 1 after the short last one", {{2, 2, ASIDE}, {1, 8, 0}}},
    {"a retry is no witness of another part", {{3, 2, ASIDE}, {3, 2, ASIDE}, {2, 8, 8}}},
    {"longer than the unit", {{1, 5, 0}, {2, 8, ASIDE}, {3, 5, 10}}},
    {"empty parts teach nothing", {{1, 0, ASIDE}, {2, 0, ASIDE}, {2, 8, ASIDE}, {1, 8, 0}}},
    {"the last number", {{1, 8, 0}, {S3API_PARTS_MAX, 8, 8 * (S3API_PARTS_MAX - 1)}}},
    {"past the end of any file", {{1, INT64_MAX, ASIDE}, {2, UINT64_MAX, ASIDE}, {1, 8, 0}}},
};

TEST(part_is_placed_once_the_unit_is_known)
{
    for (size_t i = 0; i < sizeof(arrivals) / sizeof(arrivals[0]); i++) {
        struct s3api_placement placement = {.unit = 0};

        for (const struct step *step = arrivals[i].steps; step->number != 0; step++) {
            uint64_t offset = ASIDE;
            const bool is_placed =
                s3api_placement_find(&placement, step->number, step->length, &offset);

            print_message("%s: part %u\n", arrivals[i].name, step->number);
            assert_int_equal(is_placed, step->offset != ASIDE);
            assert_int_equal(offset, step->offset);
        }
    }
}

static void put(struct s3api_parts *table, struct s3api_part part)
{
    assert_true(s3api_parts_reserve(table, 1));
    s3api_parts_put(table, &part);
}

TEST(table_is_sorted_and_counts_replaced_parts_once)
{
    struct s3api_parts table = {.count = 0};

    for (uint32_t number = 40; number > 0; number -= 2)
        put(&table, (struct s3api_part){.number = number, .length = number});
    put(&table, (struct s3api_part){.number = 8, .length = 100});
    assert_int_equal(table.count, 20);
    assert_int_equal(table.bytes, 420 - 8 + 100);
    for (size_t i = 0; i < table.count; i++)
        assert_int_equal(table.parts[i].number, 2 * (i + 1));
    assert_int_equal(s3api_parts_find(&table, 8)->length, 100);
    assert_null(s3api_parts_find(&table, 7));
    assert_null(s3api_parts_find(&table, 41));
    assert_int_equal(s3api_parts_seek(&table, 7), 3);
    assert_int_equal(s3api_parts_seek(&table, 41), 20);
    s3api_parts_free(&table);
}

struct joining {
    const char *name;
    enum s3api_join join;
    struct s3api_part parts[4];
    uint32_t listed[4];
};

/* A part where it belongs, and one in its own file. */
#define PLACED(n, at, size)                             \
    {                                                   \
        .number = (n), .offset = (at), .length = (size) \
    }
#define KEPT_ASIDE(n, size)                           \
    {                                                 \
        .number = (n), .version = 1, .length = (size) \
    }

static const struct joining joinings[] = {
    {"equal parts",
     S3API_JOIN_IN_PLACE,
     {PLACED(1, 0, 8), PLACED(2, 8, 8), PLACED(3, 16, 1)},
     {1, 2, 3}},
    {"one aside",
     S3API_JOIN_IN_PLACE,
     {PLACED(1, 0, 8), KEPT_ASIDE(2, 8), PLACED(3, 16, 1)},
     {1, 2, 3}},
    {"a longer one aside",
     S3API_JOIN_COPY,
     {PLACED(1, 0, 8), KEPT_ASIDE(2, 9), PLACED(3, 16, 1)},
     {1, 2, 3}},
    {"the longer one is the last",
     S3API_JOIN_IN_PLACE,
     {PLACED(1, 0, 8), KEPT_ASIDE(2, 9)},
     {1, 2}},
    {"a short one in the middle",
     S3API_JOIN_COPY,
     {PLACED(1, 0, 8), PLACED(2, 8, 7), PLACED(3, 16, 1)},
     {1, 2, 3}},
    {"a gap in the numbers", S3API_JOIN_COPY, {PLACED(1, 0, 8), PLACED(3, 16, 8)}, {1, 3}},
    {"the last one is not listed",
     S3API_JOIN_COPY,
     {PLACED(1, 0, 8), PLACED(2, 8, 8), PLACED(3, 16, 1)},
     {1, 2}},
    {"one aside is not listed", S3API_JOIN_IN_PLACE, {PLACED(1, 0, 8), KEPT_ASIDE(2, 8)}, {1}},
    {"all aside", S3API_JOIN_COPY, {KEPT_ASIDE(1, 8), KEPT_ASIDE(2, 8)}, {1, 2}},
};

TEST(joining_in_place_loses_no_part)
{
    for (size_t i = 0; i < sizeof(joinings) / sizeof(joinings[0]); i++) {
        const struct joining *joining = &joinings[i];
        struct s3api_parts table = {.count = 0};
        struct s3api_part list[4];
        size_t count = 0;

        print_message("%s\n", joining->name);
        for (size_t j = 0; j < 4 && joining->parts[j].number != 0; j++)
            put(&table, joining->parts[j]);
        for (; count < 4 && joining->listed[count] != 0; count++)
            list[count] = *s3api_parts_find(&table, joining->listed[count]);
        assert_int_equal(s3api_parts_plan(&table, list, count), joining->join);
        s3api_parts_free(&table);
    }
}

TEST(etag_is_recognised_with_and_without_quotes)
{
    const struct s3api_part part = {.number = 1, .length = 255, .xxh3 = 0xabc};
    static const char *const right[] = {"\"0000000000000abc00000000000000ff-1\"",
                                        "0000000000000abc00000000000000ff-1",
                                        "W/\"0000000000000abc00000000000000ff-1\""};
    static const char *const wrong[] = {"",
                                        "\"",
                                        "\"\"",
                                        "W/",
                                        "0000000000000abc00000000000000ff",
                                        "\"0000000000000abc00000000000000ff-1",
                                        "0000000000000abd00000000000000ff-1"};
    char etag[S3API_PART_ETAG_SIZE];

    s3api_part_etag(&part, etag);
    assert_string_equal(etag, right[0]);
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        assert_true(s3api_part_has_etag(&part, zt_text_from(right[i])));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(s3api_part_has_etag(&part, zt_text_from(wrong[i])));
}
