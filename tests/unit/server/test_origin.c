/* Which pages may write, and under which names requests may come. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "http/fields/origin.h"

struct row {
    const char *origin;
    const char *fetch_site;
    const char *host;
    enum origin_verdict verdict;
};

/* The rules of a server on loopback without tokens, with these lists. */
static struct origin_rules rules_with(const char *origins, const char *hosts)
{
    static struct config config;
    struct origin_rules rules;

    config_defaults(&config);
    snprintf(config.cors.origins, sizeof(config.cors.origins), "%s", origins);
    snprintf(config.hosts, sizeof(config.hosts), "%s", hosts);
    origin_rules_load(&config, false, &rules);
    return rules;
}

static void assert_verdicts(const struct origin_rules *rules, bool is_write, const struct row *rows,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct origin_claim claim = {is_write, rows[i].origin, rows[i].fetch_site,
                                           rows[i].host};

        if (origin_check(rules, &claim) != rows[i].verdict)
            fail_msg("row %zu of %zu has another verdict", i, count);
    }
}

#define ASSERT_VERDICTS(rules, is_write, rows) \
    assert_verdicts(rules, is_write, rows, sizeof(rows) / sizeof(rows[0]))

TEST(a_write_of_a_foreign_page_is_recognised)
{
    static const struct row rows[] = {
        {NULL, NULL, "localhost:8080", ORIGIN_ACCEPTED},
        {NULL, "none", "localhost:8080", ORIGIN_ACCEPTED},
        {"http://localhost:8080", "same-origin", "localhost:8080", ORIGIN_ACCEPTED},
        {"http://LOCALHOST:8080", NULL, "localhost:8080", ORIGIN_ACCEPTED},
        {"http://localhost", NULL, "localhost:80", ORIGIN_ACCEPTED},
        {"http://localhost", NULL, "localhost", ORIGIN_ACCEPTED},
        {"https://localhost", NULL, "localhost:443", ORIGIN_ACCEPTED},
        {"http://[::1]:8080", NULL, "[::1]:8080", ORIGIN_ACCEPTED},
        {"http://localhost:3000", "same-site", "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://evil.example", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://evil.example", "cross-site", "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://localhost:8080.evil.example", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://localhost:80801", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {"null", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {"", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://", NULL, "", ORIGIN_FOREIGN_HOST},
        {"file://localhost:8080", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://localhost:8080, http://evil.example", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
        {NULL, "cross-site", "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://localhost:8080", "cross-site", "localhost:8080", ORIGIN_CROSS_SITE},
        {"http://localhost:8080", NULL, NULL, ORIGIN_CROSS_SITE},
    };
    const struct origin_rules rules = rules_with("", "");

    ASSERT_VERDICTS(&rules, true, rows);
}

TEST(listed_pages_may_write_and_all_with_a_star)
{
    static const struct row listed[] = {
        {"https://a.example", "cross-site", "localhost", ORIGIN_ACCEPTED},
        {"https://b.example:8443", NULL, "localhost", ORIGIN_ACCEPTED},
        {"https://b.example", NULL, "localhost", ORIGIN_CROSS_SITE},
        {"http://a.example", NULL, "localhost", ORIGIN_CROSS_SITE},
        {"https://a.exampl", NULL, "localhost", ORIGIN_CROSS_SITE},
        {"https://a.example,https://b.example:8443", NULL, "localhost", ORIGIN_CROSS_SITE},
        {NULL, "cross-site", "localhost", ORIGIN_CROSS_SITE},
    };
    static const struct row any[] = {
        {"https://evil.example", "cross-site", "localhost", ORIGIN_ACCEPTED},
        {"null", NULL, "localhost", ORIGIN_ACCEPTED},
    };
    struct origin_rules rules = rules_with("https://a.example,https://b.example:8443", "");

    ASSERT_VERDICTS(&rules, true, listed);
    rules = rules_with("*", "");
    ASSERT_VERDICTS(&rules, true, any);
}

TEST(pages_without_tls_are_foreign_to_a_server_with_it)
{
    static const struct row rows[] = {
        {"https://localhost:8080", NULL, "localhost:8080", ORIGIN_ACCEPTED},
        {"http://localhost:8080", NULL, "localhost:8080", ORIGIN_CROSS_SITE},
    };
    struct origin_rules rules = rules_with("", "");

    rules.has_tls = true;
    ASSERT_VERDICTS(&rules, true, rows);
}

TEST(a_read_is_never_refused_because_of_its_page)
{
    static const struct row rows[] = {
        {"http://evil.example", "cross-site", "localhost", ORIGIN_ACCEPTED},
        {NULL, NULL, "evil.example", ORIGIN_ACCEPTED},
    };
    const struct origin_rules rules = rules_with("", "");

    ASSERT_VERDICTS(&rules, false, rows);
}

TEST(a_write_on_loopback_must_use_a_local_name)
{
    static const struct row rows[] = {
        {NULL, NULL, "localhost", ORIGIN_ACCEPTED},
        {NULL, NULL, "LocalHost:1", ORIGIN_ACCEPTED},
        {NULL, NULL, "models.localhost", ORIGIN_ACCEPTED},
        {NULL, NULL, "localhost.", ORIGIN_ACCEPTED},
        {NULL, NULL, "Models.Localhost.:8080", ORIGIN_ACCEPTED},
        {NULL, NULL, "localhost..", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, ".", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "127.0.0.1:8080", ORIGIN_ACCEPTED},
        {NULL, NULL, "127.8.9.10", ORIGIN_ACCEPTED},
        {NULL, NULL, "[::1]:8080", ORIGIN_ACCEPTED},
        {NULL, NULL, "[::ffff:127.0.0.1]", ORIGIN_ACCEPTED},
        {NULL, NULL, "models:8080", ORIGIN_ACCEPTED},
        {NULL, NULL, NULL, ORIGIN_ACCEPTED},
        {NULL, NULL, "evil.example", ORIGIN_FOREIGN_HOST},
        {"http://evil.example:8080", "same-origin", "evil.example:8080", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "127.0.0.1.evil.example", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "localhost.evil.example", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "notlocalhost.example", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "com.", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "10.0.0.1", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "[2001:db8::1]", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, ":8080", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "", ORIGIN_FOREIGN_HOST},
    };
    const struct origin_rules rules = rules_with("", "");

    ASSERT_VERDICTS(&rules, true, rows);
}

TEST(with_tokens_or_on_another_address_any_host_may_be_named)
{
    static const struct row rows[] = {{NULL, NULL, "models.example.org", ORIGIN_ACCEPTED}};
    struct config config;
    struct origin_rules rules;

    config_defaults(&config);
    origin_rules_load(&config, true, &rules);
    ASSERT_VERDICTS(&rules, true, rows);
    snprintf(config.listen, sizeof(config.listen), "0.0.0.0:8080");
    origin_rules_load(&config, false, &rules);
    ASSERT_VERDICTS(&rules, true, rows);
}

TEST(listed_hosts_are_the_only_ones_for_reads_too)
{
    static const struct row rows[] = {
        {NULL, NULL, "models.example.org", ORIGIN_ACCEPTED},
        {NULL, NULL, "MODELS.example.org:8080", ORIGIN_ACCEPTED},
        {NULL, NULL, "other.example:8443", ORIGIN_ACCEPTED},
        {NULL, NULL, "[::1]:8080", ORIGIN_ACCEPTED},
        {NULL, NULL, "other.example", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "other.example:80", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "localhost", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "127.0.0.1", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "models", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, "", ORIGIN_FOREIGN_HOST},
        {NULL, NULL, NULL, ORIGIN_FOREIGN_HOST},
    };
    const struct origin_rules rules = rules_with("", "models.example.org,other.example:8443,[::1]");

    ASSERT_VERDICTS(&rules, false, rows);
    ASSERT_VERDICTS(&rules, true, rows);
}
