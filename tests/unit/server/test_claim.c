/* Claims of a resumable upload: one holder, and only a body that is still arriving gives way. */
#include "tests.h"

#include "upload/tus/claim.h"

TEST(one_request_holds_the_claim)
{
    struct claim claim;
    uint64_t first;
    uint64_t second;

    claim_init(&claim);
    first = claim_take(&claim);
    assert_int_not_equal(first, 0);
    assert_int_equal(claim_take(&claim), 0);
    assert_int_equal(claim_take_for_body(&claim), 0);
    assert_int_equal(claim_seize(&claim), 0);
    claim_end(&claim, first);
    second = claim_take(&claim);
    assert_int_not_equal(second, first);
    claim_end(&claim, first);
    assert_int_equal(claim_take(&claim), 0);
    claim_end(&claim, second);
    claim_free(&claim);
}

TEST(arriving_body_gives_way_to_the_end_only)
{
    struct claim claim;
    uint64_t body;
    uint64_t end;

    claim_init(&claim);
    body = claim_take_for_body(&claim);
    assert_int_not_equal(body, 0);
    assert_int_equal(claim_take_for_body(&claim), 0);
    end = claim_seize(&claim);
    assert_int_not_equal(end, 0);
    assert_false(claim_begin_store(&claim, body));
    assert_false(claim_confirm(&claim, body));
    claim_end(&claim, body);
    assert_int_equal(claim_take(&claim), 0);
    claim_end(&claim, end);
    claim_free(&claim);
}

TEST(whole_body_gives_way_no_longer)
{
    struct claim claim;
    uint64_t body;

    claim_init(&claim);
    body = claim_take_for_body(&claim);
    assert_true(claim_begin_store(&claim, body));
    claim_end_store(&claim, body);
    assert_true(claim_confirm(&claim, body));
    assert_int_equal(claim_seize(&claim), 0);
    claim_end(&claim, body);
    assert_int_not_equal(claim_seize(&claim), 0);
    claim_free(&claim);
}

TEST(only_a_silent_body_loses_its_claim)
{
    struct claim claim;
    uint64_t body;

    claim_init(&claim);
    body = claim_take_for_body(&claim);
    claim_end_silent(&claim);
    assert_true(claim_begin_store(&claim, body));
    claim.last_progress_ms -= 60000;
    claim_end_silent(&claim);
    claim_end_store(&claim, body);
    claim_end_silent(&claim);
    assert_true(claim_begin_store(&claim, body));
    claim_end_store(&claim, body);
    claim.last_progress_ms -= 60000;
    claim_end_silent(&claim);
    assert_false(claim_begin_store(&claim, body));
    claim_free(&claim);
}

TEST(silence_ends_no_publication)
{
    struct claim claim;
    uint64_t body;

    claim_init(&claim);
    body = claim_take_for_body(&claim);
    assert_true(claim_confirm(&claim, body));
    claim.last_progress_ms -= 60000;
    claim_end_silent(&claim);
    assert_int_equal(claim_take(&claim), 0);
    claim_end(&claim, body);
    claim_free(&claim);
}
