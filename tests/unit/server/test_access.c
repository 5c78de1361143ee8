/* Who a request comes from: tokens, certificates, and what is remembered of JSON Web Tokens. */
#include "signed_tokens.h"
#include "tests.h"

#include "access/access.h"
#include "access/jwks.h"
#include "access/token_memory.h"
#include "base/clock.h"

/* printf %s one | sha256sum */
#define ONE "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"

static const char *const web_names[] = {"other", "web", NULL};
static const char *const no_names[] = {NULL};

static struct access access_of_test;
static char issuer[] = "https://issuer";
static char audience[] = "models";
static EVP_PKEY *ec;

static int setup(void **state)
{
    char error[256];
    char key_set[TOKEN_SIZE] = "{\"keys\":[";

    (void)state;
    ec = EVP_EC_gen("P-256");
    append_ec(key_set, ec, "e", "");
    strcat(key_set, "]}");
    access_of_test = (struct access){.needs_client = true, .has_certificates = true};
    access_of_test.grants =
        grants_parse(zt_text_from("one read " ONE "\nweb write mtls:web\npods read jwt:pod-*\n"),
                     "tokens", error, sizeof(error));
    access_of_test.keys = jwks_parse(zt_text_from(key_set), "keys", error, sizeof(error));
    access_of_test.issuer = issuer;
    access_of_test.audience = audience;
    assert_non_null(access_of_test.grants);
    assert_non_null(access_of_test.keys);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    grants_free(access_of_test.grants);
    jwks_free(access_of_test.keys);
    EVP_PKEY_free(ec);
    return 0;
}

static const struct grant *identify(const char *token, const char *const *names,
                                    struct token_memory *memory, enum access_failure *out_failure)
{
    struct credentials credentials = {.names = names};

    credentials.authorization = token != NULL ? AUTHORIZATION_BEARER : AUTHORIZATION_ABSENT;
    if (token != NULL)
        credentials.token = zt_text_from(token);
    return access_identify(&access_of_test, &credentials, memory, out_failure);
}

static void assert_client(const char *token, const char *const *names, const char *expected)
{
    enum access_failure failure;
    const struct grant *grant = identify(token, names, NULL, &failure);

    assert_non_null(grant);
    assert_string_equal(grant->name, expected);
}

static void assert_refused(const char *token, const char *const *names,
                           enum access_failure expected)
{
    enum access_failure failure = ACCESS_FAILURES;

    assert_null(identify(token, names, NULL, &failure));
    assert_int_equal(failure, expected);
}

static char *token_until(const char *subject, int64_t expires_s)
{
    char claims[512];

    snprintf(claims, sizeof(claims), "{\"iss\":\"%s\",\"aud\":\"%s\",\"sub\":\"%s\",\"exp\":%lld}",
             issuer, audience, subject, (long long)expires_s);
    return token_of(ec, ES256, claims);
}

static int64_t now_s(void)
{
    return clock_wall_ns() / CLOCK_NS_PER_S;
}

AROUND_ALL_TESTS(setup, teardown)

TEST(each_proof_finds_its_client)
{
    assert_client("one", no_names, "one");
    assert_client(NULL, web_names, "web");
    assert_client(token_until("pod-1", now_s() + 1000), NULL, "pods");
}

TEST(reasons_of_refusals_are_told_apart)
{
    static const char *const strangers[] = {"stranger", NULL};

    assert_refused(NULL, no_names, ACCESS_UNNAMED_CERTIFICATE);
    assert_refused(NULL, NULL, ACCESS_NO_CREDENTIALS);
    assert_refused(NULL, strangers, ACCESS_UNKNOWN_CERTIFICATE);
    assert_refused("two", NULL, ACCESS_UNKNOWN_TOKEN);
    assert_refused("a.b.c", NULL, ACCESS_UNKNOWN_TOKEN);
    assert_refused(token_until("pod-1", now_s() - 1000), NULL, ACCESS_EXPIRED_TOKEN);
    assert_refused(token_until("job-1", now_s() + 1000), NULL, ACCESS_UNKNOWN_SUBJECT);
    access_of_test.audience = issuer;
    assert_refused(token_until("pod-1", now_s() + 1000), NULL, ACCESS_FOREIGN_TOKEN);
    access_of_test.audience = audience;
}

TEST(token_counts_rather_than_the_certificate)
{
    assert_client("one", web_names, "one");
    assert_refused("two", web_names, ACCESS_UNKNOWN_TOKEN);
}

TEST(certificates_count_only_if_the_server_asks_for_them)
{
    access_of_test.has_certificates = false;
    assert_refused(NULL, web_names, ACCESS_NO_CREDENTIALS);
    access_of_test.has_certificates = true;
}

TEST(without_a_tokens_file_any_certificate_may_read_and_write)
{
    struct grants *grants = access_of_test.grants;
    enum access_failure failure;
    const struct grant *grant;

    access_of_test.grants = NULL;
    grant = identify(NULL, web_names, NULL, &failure);
    assert_non_null(grant);
    assert_null(grant->name);
    assert_int_equal(grant->scope, SCOPE_WRITE);
    assert_refused("one", NULL, ACCESS_UNKNOWN_TOKEN);
    assert_refused(NULL, no_names, ACCESS_UNNAMED_CERTIFICATE);
    access_of_test.grants = grants;
}

TEST(valid_token_is_remembered_until_it_expires)
{
    struct token_memory *memory = token_memory_new();
    const char *token = token_until("pod-1", now_s() + 1000);
    enum access_failure failure;
    struct token_hash hash;
    const struct grant *grant;

    assert_true(token_hash_make(zt_text_from(token), &hash));
    assert_null(token_memory_find(memory, &hash, now_s()));
    grant = identify(token, NULL, memory, &failure);
    assert_non_null(grant);
    assert_ptr_equal(token_memory_find(memory, &hash, now_s()), grant);
    assert_ptr_equal(token_memory_find(memory, &hash, now_s() + 900), grant);
    assert_null(token_memory_find(memory, &hash, now_s() + 1001));
    token_memory_free(memory);
}

TEST(refused_tokens_are_not_remembered)
{
    struct token_memory *memory = token_memory_new();
    const char *token = token_until("job-1", now_s() + 1000);
    enum access_failure failure;
    struct token_hash hash;

    assert_true(token_hash_make(zt_text_from(token), &hash));
    assert_null(identify(token, NULL, memory, &failure));
    assert_null(token_memory_find(memory, &hash, now_s()));
    token_memory_free(memory);
}

TEST(memory_tells_tokens_of_one_place_apart)
{
    struct token_memory *memory = token_memory_new();
    const struct grant first = {.name = "first"};
    const struct grant second = {.name = "second"};
    const struct token_hash one = {{7, 1, 2, 3}};
    const struct token_hash other = {{7, 1, 2, 4}};

    token_memory_keep(memory, &one, &first, 100);
    assert_null(token_memory_find(memory, &other, 50));
    token_memory_keep(memory, &other, &second, 100);
    assert_ptr_equal(token_memory_find(memory, &other, 50), &second);
    assert_null(token_memory_find(memory, &one, 50));
    assert_null(token_memory_find(memory, &other, 100));
    assert_null(token_memory_find(NULL, &other, 50));
    token_memory_free(memory);
}
