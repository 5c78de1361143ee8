/* What answers of an upstream mean. */
#include "tests.h"

#include "remote/remote.h"
#include "upstream/judge.h"

TEST(each_status_means_one_thing)
{
    static const struct {
        struct judge_case judged;
        enum zt_status status;
        const char *rule;
        const char *words;
    } rows[] = {
        {{401, "", false, false}, ZT_NOT_FOUND, NULL, "or needs a token"},
        {{401, "RepoNotFound", false, false}, ZT_NOT_FOUND, NULL, "or needs a token"},
        {{401, "", true, false}, ZT_UNAVAILABLE, UPSTREAM_REFUSED, "refuses the configured token"},
        {{401, "", false, true}, ZT_UNAVAILABLE, UPSTREAM_REFUSED, "demands a token"},
        {{401, "GatedRepo", false, false}, ZT_UNAVAILABLE, UPSTREAM_REFUSED, "no token is"},
        {{403, "GatedRepo", true, true}, ZT_UNAVAILABLE, UPSTREAM_REFUSED, "token has none"},
        {{403, "", true, false}, ZT_UNAVAILABLE, UPSTREAM_REFUSED, "denies access"},
        {{404, "RepoNotFound", true, false}, ZT_NOT_FOUND, NULL, "does not exist"},
        {{404, "", false, false}, ZT_NOT_FOUND, NULL, "does not exist"},
        {{410, "", false, false}, ZT_NOT_FOUND, NULL, "does not exist"},
        {{404, "RevisionNotFound", false, false}, ZT_STALE, NULL, "this revision"},
        {{404, "RevisionNotFound", false, true}, ZT_STALE, UPSTREAM_REFUSED, "this revision"},
        {{404, "EntryNotFound", false, true}, ZT_STALE, UPSTREAM_REFUSED, "the file any more"},
        {{404, "RepoNotFound", false, true}, ZT_UNAVAILABLE, UPSTREAM_REFUSED, "any more (404)"},
        {{429, "", false, false}, ZT_UNAVAILABLE, UPSTREAM_AWAY, "limits requests"},
        {{408, "", false, true}, ZT_UNAVAILABLE, UPSTREAM_AWAY, "error (408)"},
        {{500, "", false, true}, ZT_UNAVAILABLE, UPSTREAM_AWAY, "error (500)"},
        {{503, "", false, true}, ZT_UNAVAILABLE, UPSTREAM_AWAY, "error (503)"},
        {{451, "", false, true}, ZT_UNAVAILABLE, UPSTREAM_REFUSED, "refuses the request (451)"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct zt_error error;

        if (judge_status(&rows[i].judged, &error) != rows[i].status ||
            strstr(error.message, rows[i].words) == NULL)
            fail_msg("%u %s: %s", rows[i].judged.status, rows[i].judged.error_code, error.message);
        if (rows[i].rule == NULL)
            assert_null(error.rule);
        else
            assert_string_equal(error.rule, rows[i].rule);
    }
}

#define SHA256_TEXT "0000000000000000000000000000000000000000000000000000000000000001"
#define OTHER_TEXT  "0000000000000000000000000000000000000000000000000000000000000002"
#define SHA1_TEXT   "0000000000000000000000000000000000000000"

TEST(headers_of_another_file_are_noticed)
{
    static const struct {
        const char *what;
        struct remote_head head;
        bool is_own;
        bool is_same;
    } rows[] = {
        {"nothing stated", {.status = 200, .linked_size = UINT64_MAX}, true, true},
        {"the same",
         {.status = 302,
          .linked_size = 9,
          .linked_etag = "\"" SHA256_TEXT "\"",
          .etag = "\"x\"",
          .repo_commit = "c"},
         true,
         true},
        {"ETag of a redirect",
         {.status = 302, .linked_size = UINT64_MAX, .etag = "\"" OTHER_TEXT "\""},
         true,
         true},
        {"weak ETag",
         {.status = 200, .linked_size = 9, .etag = "W/\"" SHA256_TEXT "\""},
         true,
         true},
        {"ETag of another length",
         {.status = 200, .linked_size = 9, .etag = "\"" SHA1_TEXT "\""},
         true,
         true},
        {"other ETag",
         {.status = 200, .linked_size = 9, .etag = "\"" OTHER_TEXT "\""},
         true,
         false},
        {"other ETag of a store",
         {.status = 200, .linked_size = UINT64_MAX, .etag = "\"" OTHER_TEXT "\""},
         false,
         true},
        {"other linked ETag",
         {.status = 302, .linked_size = 9, .linked_etag = OTHER_TEXT},
         true,
         false},
        {"other size", {.status = 302, .linked_size = 8}, true, false},
        {"other commit", {.status = 302, .linked_size = 9, .repo_commit = "d"}, true, false},
        {"other size of a range",
         {.status = 206, .linked_size = UINT64_MAX, .has_range = true, .range_size = 10},
         false,
         false},
    };
    struct upstream_place place = {.commit = "c", .size_bytes = 9, .digest_kind = UPSTREAM_SHA256};

    place.digest[31] = 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (judge_is_same_file(&place, &rows[i].head, rows[i].is_own) != rows[i].is_same)
            fail_msg("%s", rows[i].what);
}

TEST(digest_is_read_from_one_member)
{
    static const struct {
        const char *text;
        bool is_read;
    } rows[] = {
        {"sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:", true},
        {"sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa00:", false},
        {"sha-512=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:", false},
        {"sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", false},
        {"sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAF=0=:", false},
        {"sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:,sha=:AA=:", false},
        {"", false},
    };
    uint8_t sha256[32] = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (judge_read_digest(rows[i].text, sha256) != rows[i].is_read)
            fail_msg("%s", rows[i].text);
    assert_true(judge_read_digest(rows[0].text, sha256));
    assert_int_equal(sha256[0], 0xBA);
    assert_int_equal(sha256[31], 0xAD);
}
