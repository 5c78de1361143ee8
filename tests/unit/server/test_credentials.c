/* Credentials: from where they come, and what mistakes get. How they are renewed:
 * test_credential_renewal.c. */
#include "credential_world.h"
#include "tests.h"

AROUND_EACH_TEST(begin, end)

/* --- environment --- */

TEST(environment_comes_first)
{
    setenv("AWS_ACCESS_KEY_ID", "K", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "S/+=", 1);
    put_file(".aws/credentials",
             "[default]\naws_access_key_id=other\naws_secret_access_key=other\n");
    assert_found("environment", "K", "S/+=", "");
    assert_false(credentials_refused(credentials));
    credentials_free(credentials);
    setenv("AWS_SESSION_TOKEN", "T", 1);
    assert_found("environment", "K", "S/+=", "T");
    assert_int_equal(asked(), 0);
}

TEST(half_a_pair_is_refused)
{
    setenv("AWS_ACCESS_KEY_ID", "K", 1);
    assert_refused("AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not");
    unsetenv("AWS_ACCESS_KEY_ID");
    setenv("AWS_SECRET_ACCESS_KEY", "S", 1);
    assert_refused("AWS_SECRET_ACCESS_KEY is set, AWS_ACCESS_KEY_ID is not");
    setenv("AWS_ACCESS_KEY_ID", "", 1);
    assert_refused("AWS_SECRET_ACCESS_KEY is set, AWS_ACCESS_KEY_ID is not");
}

TEST(what_cannot_be_sent_is_refused_and_not_shown)
{
    char text[CREDENTIALS_SECRET_SIZE + 1];

    setenv("AWS_ACCESS_KEY_ID", "K", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret\r\nx-amz-evil: 1", 1);
    assert_refused("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN: the secret access "
                   "key has spaces, control characters or non-ASCII letters");
    memset(text, 's', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    setenv("AWS_SECRET_ACCESS_KEY", text, 1);
    assert_refused("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN: the secret access "
                   "key is longer than 256 bytes");
    text[sizeof(text) - 2] = '\0';
    setenv("AWS_SECRET_ACCESS_KEY", text, 1);
    assert_found("environment", "K", text, "");
}

/* --- profile --- */

static const char profiles[] = "# comment\r\n"
                               "aws_access_key_id = outside\n"
                               "[ default ]\r\n"
                               "aws_access_key_id = DK \r\n"
                               "aws_secret_access_key\t=\tD=S#1\r\n"
                               "region = x\n"
                               "s3 =\n"
                               "  aws_access_key_id = nested\n"
                               ";aws_session_token = no\n"
                               "[work]\n"
                               "aws_access_key_id=WK\n"
                               "aws_secret_access_key=WS\n"
                               "aws_session_token=WT\n"
                               "[half]\n"
                               "aws_access_key_id=HK\n"
                               "[role]\n"
                               "role_arn=x";

TEST(profile_is_read_from_the_home_folder)
{
    put_file(".aws/credentials", profiles);
    assert_found("profile", "DK", "D=S#1", "");
    credentials_free(credentials);
    setenv("AWS_PROFILE", "work", 1);
    assert_found("profile", "WK", "WS", "WT");
}

TEST(profile_is_read_from_a_named_file)
{
    setenv("AWS_SHARED_CREDENTIALS_FILE", put_file("named", profiles), 1);
    assert_found("profile", "DK", "D=S#1", "");
    credentials_free(credentials);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "~/named", 1);
    assert_found("profile", "DK", "D=S#1", "");
}

TEST(mistakes_about_profiles_name_the_variable)
{
    char message[512];

    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/x", 1);
    assert_refused("AWS_SHARED_CREDENTIALS_FILE: /nowhere/x: No such file or directory");
    setenv("AWS_SHARED_CREDENTIALS_FILE", put_file("named", "[other]\n"), 1);
    snprintf(message, sizeof(message),
             "AWS_SHARED_CREDENTIALS_FILE: no keys in section [default] of %s/named", home);
    assert_refused(message);
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    setenv("AWS_PROFILE", "role", 1);
    snprintf(message, sizeof(message),
             "AWS_PROFILE: no keys in section [role] of %s/.aws/credentials", home);
    assert_refused(message);
    put_file(".aws/credentials", profiles);
    assert_refused(message);
    setenv("AWS_PROFILE", "half", 1);
    snprintf(message, sizeof(message), "%s/.aws/credentials: no secret access key", home);
    assert_refused(message);
}

/* --- anonymous --- */

TEST(nobody_is_anonymous)
{
    assert_found("anonymous", "", "", "");
    assert_false(credentials_refused(credentials));
    put_file(".aws/credentials", "[work]\naws_access_key_id=WK\n");
    credentials_free(credentials);
    assert_found("anonymous", "", "", "");
    assert_int_equal(asked(), 0);
}

/* --- web identity --- */

TEST(web_identity_asks_the_token_service_of_the_region)
{
    set_web_identity(" \n aa.bb-c_+/= \r\n");
    PLAY({"POST https://sts.eu-west-1.amazonaws.com/" FORM
          "ztserve&WebIdentityToken=aa.bb-c_%2B%2F%3D",
          200, assumed("WI", in_seconds(3600))});
    assert_found("web identity", "WI", "s&", "t==");
    assert_played();
    assert_true(world.times_ms[0] > 0 && world.times_ms[0] <= 10000);
}

TEST(web_identity_asks_the_named_service)
{
    set_web_identity("a");
    setenv("AWS_ROLE_SESSION_NAME", "me@here", 1);
    setenv("AWS_ENDPOINT_URL", "http://engine:8000", 1);
    PLAY({"POST http://engine:8000/" FORM "me%40here&WebIdentityToken=a", 200,
          assumed("WI", in_seconds(3600))});
    assert_found("web identity", "WI", "s&", "t==");
    assert_played();
    credentials_free(credentials);
    world.used = 0;
    setenv("AWS_ENDPOINT_URL_STS", "https://sts:1/x/y?z=1", 1);
    PLAY({"POST https://sts:1/x/y?z=1" FORM "me%40here&WebIdentityToken=a", 200,
          assumed("WI", in_seconds(3600))});
    assert_found("web identity", "WI", "s&", "t==");
    assert_played();
}

TEST(mistakes_about_web_identity_name_the_variable)
{
    set_web_identity("a");
    unsetenv("AWS_ROLE_ARN");
    assert_refused("AWS_WEB_IDENTITY_TOKEN_FILE is set, AWS_ROLE_ARN is not");
    setenv("AWS_ROLE_ARN", "x\ny", 1);
    assert_refused("AWS_ROLE_ARN is not the name of a role");
    setenv("AWS_ROLE_ARN", "x", 1);
    setenv("AWS_ROLE_SESSION_NAME", "x", 1);
    assert_refused(
        "AWS_ROLE_SESSION_NAME does not have 2 to 64 characters of A-Z, a-z, 0-9 and _=,.@+-");
    unsetenv("AWS_ROLE_SESSION_NAME");
    setenv("AWS_ENDPOINT_URL_STS", "http://user:password@host", 1);
    assert_refused("AWS_ENDPOINT_URL_STS is not an address such as https://host:port/path");
    unsetenv("AWS_ENDPOINT_URL_STS");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/x", 1);
    assert_refused("AWS_WEB_IDENTITY_TOKEN_FILE: /nowhere/x: No such file or directory");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", put_file("token", " \n"), 1);
    assert_int_equal(find(), ZT_ARGUMENT);
    assert_non_null(strstr(error.message, "has no token"));
    assert_int_equal(asked(), 0);
}

TEST(role_alone_says_nothing)
{
    setenv("AWS_ROLE_ARN", "x", 1);
    assert_found("anonymous", "", "", "");
}

TEST(refusal_of_the_token_service_is_told)
{
    set_web_identity("a");
    PLAY({"", 403,
          "<ErrorResponse><Error><Code>AccessDenied</Code><Message>secret</Message></Error>"
          "</ErrorResponse>"},
         {"", 400, "<Error><Code>Invalid&#10;Token</Code></Error>"}, {"", 200, "<Other/>"},
         {"", 200, "{}"}, {"", 200, assumed("WI", "tomorrow")},
         {"", 200, assumed("WI", "2026-02-30T25:00:00Z")});
    assert_refused("AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE: the token service at "
                   "https://sts.eu-west-1.amazonaws.com answered 403 AccessDenied");
    assert_refused("AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE: the token service at "
                   "https://sts.eu-west-1.amazonaws.com answered 400");
    assert_refused("AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE: no access key id");
    assert_refused("AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE: the response has no credentials");
    for (unsigned i = 0; i < 2; i++)
        assert_refused("AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE: the expiration is not a time "
                       "such as 2026-01-31T23:59:59Z");
}

/* --- container --- */

static const char container_answer[] =
    "{\"RoleArn\":\"x\",\"AccessKeyId\":\"CK\",\"SecretAccessKey\":\"CS\",\"Token\":\"CT\","
    "\"Expiration\":\"2999-01-01T00:00:00.123+01:00\"}";

TEST(container_is_asked_at_its_address)
{
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials?a=b", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "plain", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", put_file("token", "Basic x\n"), 1);
    PLAY({"GET http://169.254.170.23/v1/credentials?a=b authorization: Basic x", 200,
          container_answer});
    assert_found("container", "CK", "CS", "CT");
    assert_played();
}

TEST(relative_path_is_of_the_usual_address)
{
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1", 1);
    PLAY({"GET http://169.254.170.2/v2/credentials/1", 200, container_answer});
    assert_found("container", "CK", "CS", "CT");
    assert_played();
}

TEST(mistakes_about_containers_name_the_variable)
{
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.20/", 1);
    assert_refused("AWS_CONTAINER_CREDENTIALS_FULL_URI must begin with https://, or name this "
                   "machine, 169.254.170.2 or 169.254.170.23");
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "ftp://x", 1);
    assert_refused("AWS_CONTAINER_CREDENTIALS_FULL_URI is not an address such as "
                   "https://host:port/path");
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "https://x/", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a\r\nb: c", 1);
    assert_refused("AWS_CONTAINER_AUTHORIZATION_TOKEN: has no token");
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "x", 1);
    assert_refused("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not a path that begins with /");
}

TEST(hostile_answers_of_containers_are_refused)
{
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/", 1);
    PLAY({"", 200, "[]"}, {"", 200, "{\"AccessKeyId\":1}"}, {"", 200, ""},
         {"", 200, "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\\r\\nc\"}"}, {"", 401, "x"});
    assert_refused("AWS_CONTAINER_CREDENTIALS: the response has no credentials");
    assert_refused("AWS_CONTAINER_CREDENTIALS: the response has no credentials");
    assert_refused("AWS_CONTAINER_CREDENTIALS: the response has no credentials");
    assert_refused("AWS_CONTAINER_CREDENTIALS: the secret access key has spaces, control "
                   "characters or non-ASCII letters");
    assert_refused("AWS_CONTAINER_CREDENTIALS: the container's credential service at "
                   "http://169.254.170.2 answered 401");
}

/* --- instance --- */

#define METADATA "http://169.254.169.254/latest/"
#define ROLES    METADATA "meta-data/iam/security-credentials/"

TEST(instance_is_asked_with_a_token)
{
    unsetenv("AWS_EC2_METADATA_DISABLED");
    PLAY({"PUT " METADATA "api/token x-aws-ec2-metadata-token-ttl-seconds: 21600", 200, "tok=="},
         {"GET " ROLES " x-aws-ec2-metadata-token: tok==", 200, "role-1\nother"},
         {"GET " ROLES "role-1 x-aws-ec2-metadata-token: tok==", 200, container_answer});
    assert_found("instance", "CK", "CS", "CT");
    assert_played();
    assert_int_equal(world.times_ms[0], 1000);
}

TEST(instance_without_a_role_is_anonymous)
{
    setenv("AWS_EC2_METADATA_DISABLED", "false", 1);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://[fd00:ec2::254]:80/", 1);
    PLAY({"PUT http://[fd00:ec2::254]:80/latest/api/token "
          "x-aws-ec2-metadata-token-ttl-seconds: 21600",
          200, "tok"},
         {"GET http://[fd00:ec2::254]:80/latest/meta-data/iam/security-credentials/ "
          "x-aws-ec2-metadata-token: tok",
          404, ""});
    assert_found("anonymous", "", "", "");
    assert_played();
}

TEST(other_services_at_that_address_are_no_instance)
{
    static const struct reply others[] = {
        {"", 0, ""}, {"", 404, ""}, {"", 200, ""}, {"", 200, "a b"}, {"", 200, "a\001"}};

    unsetenv("AWS_EC2_METADATA_DISABLED");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        world.used = 0;
        play(&others[i], 1);
        assert_found("anonymous", "", "", "");
        assert_int_equal(asked(), 1);
        credentials_free(credentials);
        credentials = NULL;
    }
    world.used = 0;
    PLAY({"", 200, "tok"}, {"", 200, "../../x"});
    assert_found("anonymous", "", "", "");
    assert_int_equal(asked(), 2);
}

TEST(silence_at_that_address_ends)
{
    const int64_t begun_ms = clock_ms();

    unsetenv("AWS_EC2_METADATA_DISABLED");
    PLAY({"", 1, ""});
    assert_found("anonymous", "", "", "");
    assert_true(clock_ms() - begun_ms < 30000);
}

/* --- files --- */

static unsigned files;
static char seen[3][512];

static void note_file(void *context, const char *path)
{
    (void)context;
    assert_true(files < 3);
    snprintf(seen[files++], sizeof(seen[0]), "%s", path);
}

TEST(files_that_are_read_again_are_named)
{
    char path[512];

    files = 0;
    snprintf(path, sizeof(path), "%s/.aws/credentials", home);
    credentials_files(note_file, NULL);
    assert_int_equal(files, 1);
    assert_string_equal(seen[0], path);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/x", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/y", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/z", 1);
    files = 0;
    credentials_files(note_file, NULL);
    assert_int_equal(files, 3);
    assert_string_equal(seen[0], "/x");
    assert_string_equal(seen[1], "/y");
    assert_string_equal(seen[2], "/z");
}
