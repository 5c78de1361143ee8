/* Content negotiation: weights, stars, and members that are skipped. */
#include "tests.h"

#include "http/fields/negotiate.h"

static const enum coding all[] = {CODING_ZSTD, CODING_GZIP, CODING_IDENTITY};

static enum coding choose(const char *field)
{
    return negotiate_coding(field, all, 3);
}

TEST(absent_and_empty_fields_give_identity)
{
    assert_int_equal(choose(NULL), CODING_IDENTITY);
    assert_int_equal(choose(""), CODING_IDENTITY);
    assert_int_equal(choose(" , ,"), CODING_IDENTITY);
}

TEST(highest_weight_wins)
{
    assert_int_equal(choose("gzip"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=0.5, gzip;q=0.501"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=0.1,gzip;q=0.09"), CODING_ZSTD);
    assert_int_equal(choose("gzip;q=0.5, identity"), CODING_IDENTITY);
    assert_int_equal(choose("gzip;q=0.001"), CODING_GZIP);
    assert_int_equal(choose("deflate, gzip, br, zstd"), CODING_ZSTD);
    assert_int_equal(choose("br, deflate"), CODING_IDENTITY);
}

TEST(equal_weights_are_decided_by_the_offer)
{
    static const enum coding others[] = {CODING_IDENTITY, CODING_GZIP};

    assert_int_equal(choose("gzip, zstd"), CODING_ZSTD);
    assert_int_equal(choose("identity, gzip"), CODING_GZIP);
    assert_int_equal(choose("*"), CODING_ZSTD);
    assert_int_equal(negotiate_coding("*", others, 2), CODING_IDENTITY);
    assert_int_equal(negotiate_coding("gzip;q=0.2", others, 2), CODING_GZIP);
}

TEST(star_is_what_is_not_named)
{
    assert_int_equal(choose("zstd;q=0, *"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=0.2, *;q=0.3"), CODING_GZIP);
    assert_int_equal(choose("*;q=0.3, identity;q=0.4"), CODING_IDENTITY);
    assert_int_equal(choose("*;q=0, gzip;q=0.1"), CODING_GZIP);
}

TEST(refusing_everything_leaves_none)
{
    static const enum coding plain[] = {CODING_IDENTITY};

    assert_int_equal(choose("*;q=0"), CODING_NONE);
    assert_int_equal(choose("identity;q=0"), CODING_NONE);
    assert_int_equal(choose("br, identity;q=0"), CODING_NONE);
    assert_int_equal(choose("zstd;q=0, gzip;q=0.0, identity;q=0.000"), CODING_NONE);
    assert_int_equal(choose("identity;q=0, gzip"), CODING_GZIP);
    assert_int_equal(choose("identity;q=0, *"), CODING_ZSTD);
    assert_int_equal(choose("zstd;q=0, gzip;q=0"), CODING_IDENTITY);
    assert_int_equal(choose("*;q=0, identity"), CODING_IDENTITY);
    assert_int_equal(negotiate_coding("zstd, identity;q=0", plain, 1), CODING_NONE);
    assert_int_equal(negotiate_coding("zstd", plain, 1), CODING_IDENTITY);
}

TEST(names_are_read_in_any_case)
{
    assert_int_equal(choose("GZip;Q=1"), CODING_GZIP);
    assert_int_equal(choose("ZSTD"), CODING_ZSTD);
    assert_int_equal(choose("x-gzip"), CODING_GZIP);
    assert_int_equal(choose("X-GZIP ; q=0.3"), CODING_GZIP);
    assert_int_equal(choose("Identity;q=0"), CODING_NONE);
}

TEST(malformed_members_are_skipped)
{
    assert_int_equal(choose("zstd;q=2, gzip"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=1.001, gzip"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=0.1234, gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=, gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("zstd;q, gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=-1, gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("zstd q=1, gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("zs td, gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("zstd;;q=1, gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=\"1, gzip"), CODING_IDENTITY);
    assert_int_equal(choose("\"zstd, gzip\", gzip;q=0.1"), CODING_GZIP);
    assert_int_equal(choose("identity;q=0x, *;q=0"), CODING_NONE);
}

TEST(weights_are_read_to_the_last_digit)
{
    assert_int_equal(choose("zstd;q=1., gzip;q=0.999"), CODING_ZSTD);
    assert_int_equal(choose("zstd;q=0.998, gzip;q=0.999"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=0., gzip;q=0.001"), CODING_GZIP);
    assert_int_equal(choose("zstd;q=1.000,gzip;q=1"), CODING_ZSTD);
    assert_int_equal(choose("zstd\t; \tq=0.2 , gzip;q=0.3"), CODING_GZIP);
}

TEST(first_of_two_members_counts)
{
    assert_int_equal(choose("zstd;q=0, zstd, gzip;q=0.1"), CODING_GZIP);
}

static unsigned weight_of(const char *accept, bool explicit_only)
{
    return negotiate_media_type(accept, "application/x-npy", explicit_only);
}

TEST(media_type_takes_the_closest_range)
{
    assert_int_equal(weight_of(NULL, false), 1000);
    assert_int_equal(weight_of("", false), 0);
    assert_int_equal(weight_of("application/x-npy", false), 1000);
    assert_int_equal(weight_of("APPLICATION/X-NPY;q=0.25", false), 250);
    assert_int_equal(weight_of("*/*;q=0.1, application/*;q=0.2", false), 200);
    assert_int_equal(weight_of("application/x-npy;q=0, */*", false), 0);
    assert_int_equal(weight_of("text/html, */*;q=0.3", false), 300);
    assert_int_equal(weight_of("text/*", false), 0);
    assert_int_equal(weight_of("application/x-npy2", false), 0);
}

TEST(stars_do_not_name_a_media_type)
{
    assert_int_equal(weight_of("*/*", true), 0);
    assert_int_equal(weight_of("application/*", true), 0);
    assert_int_equal(weight_of("*/*, application/x-npy;q=0.7", true), 700);
}

TEST(parameters_of_a_media_type_are_skipped)
{
    assert_int_equal(weight_of("application/x-npy;v=\"1,\\\"2;q=0.1\";q=0.5", true), 500);
    assert_int_equal(
        weight_of("text/html;level=\"a, application/x-npy\", application/x-npy;q=0.4", true), 400);
    assert_int_equal(weight_of("application, /x-npy, application/, application/x-npy;q=0.6", true),
                     600);
}
