/* Preconditions of an upload against what stands under its name. */
#include <stdio.h>

#include "tests.h"
#include "upload/shared/current_model.h"

static struct generation current = {.etag = "\"one\"",
                                    .identity = {.modified_ns = INT64_C(1000000000500000000)}};

static bool hold(struct preconditions preconditions, const struct generation *generation)
{
    return model_preconditions_hold(&preconditions, generation);
}

TEST(without_preconditions_everything_holds)
{
    assert_true(hold((struct preconditions){0}, NULL));
    assert_true(hold((struct preconditions){0}, &current));
}

TEST(if_none_match_star_only_creates)
{
    assert_true(hold((struct preconditions){.if_none_match = "*"}, NULL));
    assert_false(hold((struct preconditions){.if_none_match = "*"}, &current));
}

TEST(if_none_match_refuses_the_version_named)
{
    assert_false(hold((struct preconditions){.if_none_match = "\"zero\", \"one\""}, &current));
    assert_true(hold((struct preconditions){.if_none_match = "\"zero\""}, &current));
}

TEST(if_match_replaces_the_version_named_only)
{
    assert_true(hold((struct preconditions){.if_match = "\"one\""}, &current));
    assert_true(hold((struct preconditions){.if_match = "\"zero\", \"one\""}, &current));
    assert_true(hold((struct preconditions){.if_match = "*"}, &current));
    assert_false(hold((struct preconditions){.if_match = "\"zero\""}, &current));
    assert_false(hold((struct preconditions){.if_match = "W/\"one\""}, &current));
    assert_false(hold((struct preconditions){.if_match = "*"}, NULL));
    assert_false(hold((struct preconditions){.if_match = "\"one\""}, NULL));
}

TEST(if_match_takes_the_tags_of_compressed_manifests)
{
    assert_true(hold((struct preconditions){.if_match = "\"one-gzip\""}, &current));
    assert_true(hold((struct preconditions){.if_match = "\"one-zstd\""}, &current));
    assert_false(hold((struct preconditions){.if_match = "\"one-0\""}, &current));
}

TEST(both_fields_must_hold)
{
    assert_false(
        hold((struct preconditions){.if_match = "\"one\"", .if_none_match = "*"}, &current));
    assert_false(
        hold((struct preconditions){.if_match = "\"one\"", .if_none_match = "\"one\""}, &current));
}

TEST(a_date_counts_only_without_if_match)
{
    const char *before;
    const char *after;

    before = "Sat, 08 Sep 2001 00:00:00 GMT";
    after = "Mon, 10 Sep 2001 00:00:00 GMT";
    assert_false(hold((struct preconditions){.if_unmodified_since = before}, &current));
    assert_true(hold((struct preconditions){.if_unmodified_since = after}, &current));
    assert_true(hold((struct preconditions){.if_match = "\"one\"", .if_unmodified_since = before},
                     &current));
}
