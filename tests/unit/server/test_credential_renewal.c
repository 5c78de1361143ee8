/* Credentials that are renewed: before they expire, when they are refused, when their file
 * changes. */
#include "credential_world.h"
#include "tests.h"

AROUND_EACH_TEST(begin, end)

TEST(profile_is_read_again_when_it_changes)
{
    put_file(".aws/credentials", "[default]\naws_access_key_id=DK\naws_secret_access_key=S\n");
    assert_found("profile", "DK", "S", "");
    put_file(".aws/credentials", "[default]\naws_access_key_id=N\naws_secret_access_key=M\n");
    assert_becomes("N");
    /* A file without keys changes nothing. */
    put_file(".aws/credentials", "[default]\n");
    pause_ms(10 * quick.check_interval_ms);
    assert_has("profile", "N", "M", "");
}

TEST(service_that_is_away_is_asked_again)
{
    struct credential credential;

    set_web_identity("a");
    PLAY({"", 503, ""}, {"", 200, assumed("WI", in_seconds(3600))});
    assert_int_equal(find(), ZT_UNAVAILABLE);
    assert_string_equal(error.message,
                        "AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE: the token service at "
                        "https://sts.eu-west-1.amazonaws.com answered 503");
    assert_non_null(credentials);
    assert_string_equal(credentials_source(credentials), "web identity");
    assert_false(credentials_get(credentials, &credential));
    assert_becomes("WI");
}

TEST(short_lived_ones_are_renewed_halfway)
{
    set_web_identity("a");
    PLAY({"", 200, assumed("W1", in_seconds(4))}, {"", 200, assumed("W2", in_seconds(3600))});
    assert_found("web identity", "W1", "s&", "t==");
    set_web_identity("b");
    assert_becomes("W2");
    assert_non_null(strstr(world.requests[1], "WebIdentityToken=b"));
}

TEST(long_lived_ones_are_left_alone)
{
    set_web_identity("a");
    PLAY({"", 200, assumed("W1", in_seconds(601))});
    assert_found("web identity", "W1", "s&", "t==");
    pause_ms(10 * quick.check_interval_ms);
    assert_int_equal(asked(), 1);
}

TEST(expired_ones_are_not_given)
{
    struct credential credential;

    set_web_identity("a");
    PLAY({"", 200, assumed("W1", in_seconds(5))});
    assert_found("web identity", "W1", "s&", "t==");
    AWAIT(!credentials_get(credentials, &credential));
}

TEST(refused_ones_are_renewed_once_and_not_for_ever)
{
    set_web_identity("a");
    PLAY({"", 200, assumed("W1", in_seconds(3600))}, {"", 200, assumed("W2", in_seconds(3600))});
    assert_found("web identity", "W1", "s&", "t==");
    /* Of a moment ago: those before may have been meant. */
    assert_true(credentials_refused(credentials));
    assert_int_equal(asked(), 1);
    AWAIT(!credentials_refused(credentials) || asked() == 2);
    assert_becomes("W2");
    AWAIT(!credentials_refused(credentials));
    assert_int_equal(asked(), 2);
}

TEST(service_that_hangs_stops_nobody)
{
    set_web_identity("a");
    PLAY({"", 200, assumed("W1", in_seconds(2))}, {"", 1, ""});
    assert_found("web identity", "W1", "s&", "t==");
    AWAIT(asked() >= 2);
    assert_has("web identity", "W1", "s&", "t==");
    credentials_free(credentials);
    credentials = NULL;
    end_hanging();
}
