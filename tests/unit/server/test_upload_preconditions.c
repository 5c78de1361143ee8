/* Preconditions of an upload against what stands under its name. */
#include <stdio.h>

#include "support.h"
#include "upload/shared/publication.h"

static struct generation current = {.etag = "\"one\"",
                                    .identity = {.modified_ns = INT64_C(1000000000500000000)}};

static bool hold(struct preconditions preconditions, const struct generation *generation)
{
    return model_preconditions_hold(&preconditions, generation);
}

static void without_preconditions_everything_holds(void **state)
{
    (void)state;
    assert_true(hold((struct preconditions){0}, NULL));
    assert_true(hold((struct preconditions){0}, &current));
}

static void if_none_match_star_only_creates(void **state)
{
    (void)state;
    assert_true(hold((struct preconditions){.if_none_match = "*"}, NULL));
    assert_false(hold((struct preconditions){.if_none_match = "*"}, &current));
}

static void if_none_match_refuses_the_version_named(void **state)
{
    (void)state;
    assert_false(hold((struct preconditions){.if_none_match = "\"zero\", \"one\""}, &current));
    assert_true(hold((struct preconditions){.if_none_match = "\"zero\""}, &current));
}

static void if_match_replaces_the_version_named_only(void **state)
{
    (void)state;
    assert_true(hold((struct preconditions){.if_match = "\"one\""}, &current));
    assert_true(hold((struct preconditions){.if_match = "\"zero\", \"one\""}, &current));
    assert_true(hold((struct preconditions){.if_match = "*"}, &current));
    assert_false(hold((struct preconditions){.if_match = "\"zero\""}, &current));
    assert_false(hold((struct preconditions){.if_match = "W/\"one\""}, &current));
    assert_false(hold((struct preconditions){.if_match = "*"}, NULL));
    assert_false(hold((struct preconditions){.if_match = "\"one\""}, NULL));
}

static void if_match_takes_the_tags_of_compressed_manifests(void **state)
{
    (void)state;
    assert_true(hold((struct preconditions){.if_match = "\"one-gzip\""}, &current));
    assert_true(hold((struct preconditions){.if_match = "\"one-zstd\""}, &current));
    assert_false(hold((struct preconditions){.if_match = "\"one-0\""}, &current));
}

static void both_fields_must_hold(void **state)
{
    (void)state;
    assert_false(
        hold((struct preconditions){.if_match = "\"one\"", .if_none_match = "*"}, &current));
    assert_false(
        hold((struct preconditions){.if_match = "\"one\"", .if_none_match = "\"one\""}, &current));
}

static void a_date_counts_only_without_if_match(void **state)
{
    const char *before;
    const char *after;

    (void)state;
    before = "Sat, 08 Sep 2001 00:00:00 GMT";
    after = "Mon, 10 Sep 2001 00:00:00 GMT";
    assert_false(hold((struct preconditions){.if_unmodified_since = before}, &current));
    assert_true(hold((struct preconditions){.if_unmodified_since = after}, &current));
    assert_true(hold((struct preconditions){.if_match = "\"one\"", .if_unmodified_since = before},
                     &current));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_preconditions_everything_holds),
        cmocka_unit_test(if_none_match_star_only_creates),
        cmocka_unit_test(if_none_match_refuses_the_version_named),
        cmocka_unit_test(if_match_replaces_the_version_named_only),
        cmocka_unit_test(if_match_takes_the_tags_of_compressed_manifests),
        cmocka_unit_test(both_fields_must_hold),
        cmocka_unit_test(a_date_counts_only_without_if_match),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
