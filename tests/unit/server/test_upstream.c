/* An upstream, over HTTP: lookups that are shared and remembered, and ranges of files through
 * redirects. */
#include "remote_world.h"

#include "upstream/kind.h"
#include "upstream/state.h"
#include "upstream/upstream.h"

#define COMMIT      "0123456789abcdef0123456789abcdef01234567"
#define SHA256_TEXT "0000000000000000000000000000000000000000000000000000000000000001"
#define TOKEN       "hf_secret"
#define ANSWER_SIZE 2048

/* A Hub, and the store to which it redirects. Answers are written before they start. */
struct hub {
    struct service hub;
    struct service store;
    struct remote *remote;
    struct upstream *upstream;
    const struct upstream_kind *kind; /* NULL: a Hub's */
    char answers[4][ANSWER_SIZE];
    struct step steps[4];
};

static const char info[] = "{\"sha\":\"" COMMIT "\",\"lastModified\":\"1970-01-01T00:01:00Z\"}";

static void set_answer(struct hub *hub, unsigned step, const char *status, const char *fields,
                       const char *body)
{
    snprintf(hub->answers[step], ANSWER_SIZE, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s",
             status, fields, strlen(body), body);
    hub->steps[step].answer = hub->answers[step];
}

static void start_upstream(struct hub *hub, const char *url)
{
    const struct upstream_options options = {.name = "hub",
                                             .kind = hub->kind != NULL ? hub->kind : &upstream_hub,
                                             .url = url,
                                             .token = TOKEN,
                                             .remote = hub->remote};
    struct zt_error error;

    assert_ok(upstream_new(&options, &hub->upstream, &error));
}

static void start(struct hub *hub, unsigned hub_steps, const struct step *store_steps,
                  unsigned store_count)
{
    service_start(&hub->hub, hub->steps, hub_steps);
    service_start(&hub->store, store_steps, store_count);
    hub->remote = start_remote(8);
    start_upstream(hub, hub->hub.origin);
}

static void stop(struct hub *hub)
{
    upstream_interrupt(hub->upstream);
    remote_stop(hub->remote);
    upstream_free(hub->upstream);
    service_stop(&hub->hub);
    service_stop(&hub->store);
}

static const struct step no_store[] = {
    {"HTTP/1.1 500 N\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0}};

static enum zt_status find_main(struct hub *hub, struct zt_error *error)
{
    char commit[UPSTREAM_COMMIT_SIZE];
    int64_t modified_ns;
    const enum zt_status status = upstream_find_commit(
        hub->upstream, "org/model", zt_text_from("main"), commit, &modified_ns, error);

    if (status == ZT_OK) {
        assert_string_equal(commit, COMMIT);
        assert_int_equal(modified_ns, INT64_C(60000000000));
    }
    return status;
}

/* --- lookups --- */

TEST(commit_is_found_behind_a_renamed_repository)
{
    struct hub hub = {.upstream = NULL};

    set_answer(&hub, 0, "307 R", "Location: /api/models/new/model/revision/main\r\n", "moved");
    set_answer(&hub, 1, "200 K", "", info);
    start(&hub, 2, no_store, 1);
    assert_ok(find_main(&hub, NULL));
    assert_non_null(strstr(hub.hub.requests[0], "GET /api/models/org/model/revision/main?"));
    assert_non_null(strstr(hub.hub.requests[1], "GET /api/models/new/model/revision/main "));
    assert_non_null(strstr(hub.hub.requests[1], "authorization: Bearer " TOKEN));
    stop(&hub);
}

TEST(api_is_not_followed_to_another_host)
{
    struct hub hub = {.upstream = NULL};
    struct zt_error error;

    set_answer(&hub, 0, "307 R", "Location: http://localhost:1/x\r\n", "");
    start(&hub, 1, no_store, 1);
    assert_int_equal(find_main(&hub, &error), ZT_UNAVAILABLE);
    assert_string_equal(error.rule, UPSTREAM_REFUSED);
    assert_int_equal(hub.hub.request_count, 1);
    stop(&hub);
}

TEST(absence_is_remembered_until_the_token_changes)
{
    struct hub hub = {.upstream = NULL};

    set_answer(&hub, 0, "404 N", "X-Error-Code: RepoNotFound\r\n", "{}");
    set_answer(&hub, 1, "200 K", "", info);
    start(&hub, 2, no_store, 1);
    assert_int_equal(find_main(&hub, NULL), ZT_NOT_FOUND);
    assert_int_equal(find_main(&hub, NULL), ZT_NOT_FOUND);
    assert_int_equal(hub.hub.request_count, 1);
    assert_ok(upstream_set_token(hub.upstream, NULL, NULL));
    assert_ok(find_main(&hub, NULL));
    assert_null(strstr(hub.hub.requests[1], "authorization:"));
    assert_int_equal(upstream_set_token(hub.upstream, "a\nb", NULL), ZT_ARGUMENT);
    stop(&hub);
}

static void *find_in_thread(void *hub)
{
    assert_ok(find_main(hub, NULL));
    return NULL;
}

TEST(callers_for_the_same_name_share_one_request)
{
    struct hub hub = {.upstream = NULL};
    struct upstream_report report;
    pthread_t threads[8];

    set_answer(&hub, 0, "200 K", "", info);
    hub.steps[0].delay_ms = 500;
    start(&hub, 1, no_store, 1);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_in_thread, &hub), 0);
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    upstream_report(hub.upstream, &report);
    assert_int_equal(report.lookups, 8);
    assert_int_equal(report.requests, hub.hub.request_count);
    assert_true(hub.hub.request_count < 8);
    assert_true(report.was_reached);
    stop(&hub);
}

#define ENTRY(path) "[{\"type\":\"file\",\"path\":\"" path "\",\"size\":1}]"

TEST(list_is_read_from_all_pages_or_not_at_all)
{
    struct hub hub = {.upstream = NULL};
    struct upstream_listing *listing = NULL;
    struct zt_error error;

    set_answer(&hub, 0, "200 K", "Link: </api/next?cursor=2>; rel=\"next\"\r\n", ENTRY("b"));
    set_answer(&hub, 1, "200 K", "", ENTRY("a"));
    set_answer(&hub, 2, "200 K", "Link: <http://other.example/>; rel=\"next\"\r\n", ENTRY("b"));
    start(&hub, 3, no_store, 1);
    assert_ok(upstream_list(hub.upstream, "org/model", COMMIT, &listing, &error));
    assert_int_equal(listing->count, 2);
    assert_string_equal(listing->files[0].path, "a");
    upstream_listing_free(listing);
    assert_non_null(strstr(hub.hub.requests[0], "/tree/" COMMIT "?recursive=true "));
    assert_non_null(strstr(hub.hub.requests[1], "GET /api/next?cursor=2 "));
    assert_int_equal(upstream_list(hub.upstream, "org/model", COMMIT, &listing, &error),
                     ZT_UNAVAILABLE);
    assert_int_equal(hub.hub.request_count, 3);
    stop(&hub);
}

#define DIGEST_OF(commit)                                                  \
    "HTTP/1.1 200 K\r\nContent-Length: 3\r\nX-Repo-Commit: " commit "\r\n" \
    "Repr-Digest: sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:\r\n\r\n"

/* second: the answer for the second file, which has no digest of use. */
static void list_without_digests(const struct upstream_kind *kind, const char *body,
                                 const char *second)
{
    struct hub hub = {.kind = kind};
    struct upstream_listing *listing = NULL;

    set_answer(&hub, 0, "200 K", "", body);
    hub.steps[1].answer = DIGEST_OF(COMMIT);
    hub.steps[2].answer = second;
    start(&hub, 3, no_store, 1);
    assert_ok(upstream_list(hub.upstream, "org/model", COMMIT, &listing, NULL));
    assert_non_null(strstr(hub.hub.requests[1], "HEAD /org/model/resolve/" COMMIT "/a "));
    assert_non_null(strstr(hub.hub.requests[1], "want-repr-digest: sha-256=10"));
    assert_int_equal(listing->files[0].digest_kind, UPSTREAM_SHA256);
    assert_int_equal(listing->files[0].digest[0], 0xBA);
    assert_int_equal(listing->files[1].digest_kind, UPSTREAM_NO_DIGEST);
    upstream_listing_free(listing);
    stop(&hub);
}

TEST(digests_that_a_list_lacks_are_asked_for)
{
    list_without_digests(&upstream_ztserve,
                         "[{\"type\":\"file\",\"path\":\"a\",\"size\":3},"
                         "{\"type\":\"file\",\"path\":\"b\",\"size\":3}]",
                         "HTTP/1.1 404 N\r\nContent-Length: 3\r\n\r\n");
    /* A ztserve that is not known to be one. */
    list_without_digests(
        &upstream_hub,
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":3,\"oid\":\"" COMMIT "\",\"lfs\":null},"
        "{\"type\":\"file\",\"path\":\"b\",\"size\":3,\"oid\":\"" COMMIT "\",\"lfs\":null}]",
        DIGEST_OF("1123456789abcdef0123456789abcdef01234567"));
}

TEST(upstream_that_is_away_is_not_waited_for_again)
{
    struct hub hub = {.remote = start_remote(2)};
    struct upstream_report report;
    struct zt_error error;
    int64_t begun_ms;

    start_upstream(&hub, "http://127.0.0.1:1");
    assert_int_equal(find_main(&hub, &error), ZT_UNAVAILABLE);
    assert_string_equal(error.rule, UPSTREAM_AWAY);
    (void)find_main(&hub, &error);
    upstream_report(hub.upstream, &report);
    assert_true(report.is_away && report.away_since_s > 0 && report.reason[0] != '\0');
    begun_ms = clock_ms();
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(find_main(&hub, &error), ZT_UNAVAILABLE);
    /* One a second at most. */
    begun_ms = clock_ms() - begun_ms;
    upstream_report(hub.upstream, &report);
    assert_true(report.requests < 12 + (uint64_t)begun_ms / 1000);
    upstream_set_offline(hub.upstream, true);
    assert_int_equal(find_main(&hub, &error), ZT_UNAVAILABLE);
    assert_non_null(strstr(error.message, "offline"));
    remote_stop(hub.remote);
    upstream_free(hub.upstream);
}

/* --- files --- */

struct range {
    struct cache_fetch fetch; /* first */
    uint8_t bytes[10];
    atomic_bool is_done;
    enum zt_status status;
    struct zt_error error;
    uint64_t arrived;
};

static void note_done(struct cache_fetch *fetch, enum zt_status status,
                      const struct zt_error *error)
{
    struct range *range = (struct range *)fetch;

    range->status = status;
    if (error != NULL)
        range->error = *error;
    atomic_store(&range->is_done, true);
}

static void note_arrived(struct cache_fetch *fetch, uint64_t length)
{
    struct range *range = (struct range *)fetch;

    assert_true(length > range->arrived && length < fetch->length);
    range->arrived = length;
}

/* Bytes 20 to 29 of a file of 100. */
static void begin_range(struct hub *hub, struct range *range)
{
    struct upstream_place place = {.repository = "org/model",
                                   .commit = COMMIT,
                                   .path = "sub/a b.bin",
                                   .etag = "",
                                   .size_bytes = 100,
                                   .digest_kind = UPSTREAM_SHA256};

    place.digest[31] = 1;
    memset(range, 0, sizeof(*range));
    range->fetch = (struct cache_fetch){.offset = 20,
                                        .length = 10,
                                        .bytes = range->bytes,
                                        .arrived = note_arrived,
                                        .done = note_done};
    upstream_fetch(hub->upstream, &place, &range->fetch);
}

static enum zt_status end_range(struct range *range)
{
    AWAIT(atomic_load(&range->is_done));
    return range->status;
}

static enum zt_status fetch_range(struct hub *hub, struct range *range)
{
    begin_range(hub, range);
    return end_range(range);
}

#define FOUND_FIELDS                                                                   \
    "X-Repo-Commit: " COMMIT "\r\nX-Linked-Size: 100\r\nX-Linked-ETag: \"" SHA256_TEXT \
    "\"\r\nLocation: http://localhost:%u/signed?Signature=%u\r\n"
#define PART_FIELDS "Content-Range: bytes 20-29/100\r\nETag: \"of-the-store\"\r\n"
#define PART        "HTTP/1.1 206 P\r\nContent-Length: 10\r\n" PART_FIELDS "\r\n0123456789"

/* The Hub redirects to the store, whose port is known once it has started. */
static void start_redirecting(struct hub *hub, const struct step *store_steps, unsigned store_count)
{
    char fields[600];
    unsigned port;

    service_start(&hub->store, store_steps, store_count);
    port = (unsigned)strtoul(strrchr(hub->store.origin, ':') + 1, NULL, 10);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(fields, sizeof(fields), FOUND_FIELDS, port, i);
        set_answer(hub, i, "302 F", fields, "found");
    }
    service_start(&hub->hub, hub->steps, 4);
    hub->remote = start_remote(8);
    start_upstream(hub, hub->hub.origin);
}

TEST(range_comes_from_a_signed_address_without_the_token)
{
    static const struct step store[] = {
        {PART, THEN_KEEP, 0, 0},
        {PART, THEN_KEEP, 0, 0},
        {"HTTP/1.1 403 F\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0},
        {PART, THEN_KEEP, 0, 0}};
    struct hub hub = {.upstream = NULL};
    struct range range;

    start_redirecting(&hub, store, 4);
    assert_ok(fetch_range(&hub, &range));
    assert_memory_equal(range.bytes, "0123456789", 10);
    assert_non_null(strstr(hub.hub.requests[0], "GET /org/model/resolve/" COMMIT "/sub/a%20b.bin"));
    assert_non_null(strstr(hub.hub.requests[0], "authorization: Bearer " TOKEN));
    assert_non_null(strstr(hub.store.requests[0], "GET /signed?Signature=0"));
    assert_non_null(strstr(hub.store.requests[0], "range: bytes=20-29"));
    assert_null(strcasestr(hub.store.requests[0], "authorization"));
    /* The address is kept, until it does not work any more. */
    assert_ok(fetch_range(&hub, &range));
    assert_int_equal(hub.hub.request_count, 1);
    assert_ok(fetch_range(&hub, &range));
    assert_int_equal(hub.hub.request_count, 2);
    assert_non_null(strstr(hub.store.requests[3], "GET /signed?Signature=1"));
    stop(&hub);
}

#define CUT  "HTTP/1.1 206 P\r\nContent-Length: 10\r\n" PART_FIELDS "\r\n01234"
#define REST "HTTP/1.1 206 P\r\nContent-Length: 5\r\nContent-Range: bytes 25-29/100\r\n\r\n56789"

/* A name may lead to several addresses, one after another. */
TEST(upstream_that_answered_from_outside_leads_to_no_address_inside)
{
    static const enum reach reaches[] = {REACH_LOOPBACK, REACH_PUBLIC, REACH_PRIVATE};
    static const bool may_lead[] = {true, false, false};
    struct hub hub = {.upstream = NULL};
    struct upstream_request request;
    struct zt_error error;

    hub.remote = start_remote(1);
    start_upstream(&hub, "http://hub.invalid");
    for (unsigned i = 0; i < 3; i++) {
        memset(&request, 0, sizeof(request));
        request.upstream = hub.upstream;
        request.address = hub.upstream->base;
        request.exchange.status = ZT_OK;
        request.exchange.reached = reaches[i];
        request.exchange.head.status = 302;
        strcpy(request.exchange.head.location, "http://127.0.0.1/x");
        upstream_note(hub.upstream, &request.exchange, true);
        assert_int_equal(upstream_request_redirect(&request, &error) == ZT_OK, may_lead[i]);
    }
    upstream_interrupt(hub.upstream);
    remote_stop(hub.remote);
    upstream_free(hub.upstream);
}

TEST(cut_range_is_continued_where_it_was_cut)
{
    static const struct step store[] = {
        {CUT, THEN_CLOSE, 0, 0},
        {REST, THEN_KEEP, 0, 0},
        /* The same, and the address expires between them. */
        {CUT, THEN_CLOSE, 0, 0},
        {"HTTP/1.1 403 F\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0},
        {REST, THEN_KEEP, 0, 0}};
    struct hub hub = {.upstream = NULL};
    struct range range;

    start_redirecting(&hub, store, 5);
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(fetch_range(&hub, &range));
        assert_memory_equal(range.bytes, "0123456789", 10);
        assert_true(range.arrived >= 5);
    }
    assert_non_null(strstr(hub.store.requests[1], "range: bytes=25-29"));
    assert_non_null(strstr(hub.store.requests[4], "range: bytes=25-29"));
    assert_non_null(strstr(hub.store.requests[4], "GET /signed?Signature=1"));
    stop(&hub);
}

TEST(answers_for_other_bytes_are_refused)
{
    static const struct {
        const char *status;
        const char *fields;
        enum zt_status outcome;
        const char *rule;
    } rows[] = {
        {"206 P", "Content-Range: bytes 20-29/101\r\n", ZT_STALE, NULL},
        {"206 P", "Content-Range: bytes 21-30/100\r\n", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"206 P", "", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"200 K", "", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"206 P", PART_FIELDS "Content-Encoding: gzip\r\n", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"206 P", "Content-Range: bytes 20-29/100\r\nETag: \"1" SHA256_TEXT "\"\r\n", ZT_OK, NULL},
        {"206 P",
         "Content-Range: bytes 20-29/100\r\n"
         "ETag: \"1111111111111111111111111111111111111111111111111111111111111111\"\r\n",
         ZT_STALE, NULL},
        {"206 P", "Content-Range: bytes 20-29/100\r\nX-Repo-Commit: main\r\n", ZT_STALE, NULL},
        {"404 N", "X-Error-Code: EntryNotFound\r\n", ZT_STALE, NULL},
        {"403 N", "X-Error-Code: GatedRepo\r\n", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"302 F", "X-Linked-Size: 99\r\nLocation: /x\r\n", ZT_STALE, NULL},
        {"302 F", "", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"302 F", "Location: /again\r\n", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"302 F", "Location: http://169.254.169.254/x\r\n", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"302 F", "Location: http://2130706433/x\r\n", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
        {"302 F", "Location: file:///etc/passwd\r\n", ZT_UNAVAILABLE, UPSTREAM_REFUSED},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hub hub = {.upstream = NULL};
        struct range range;

        set_answer(&hub, 0, rows[i].status, rows[i].fields, "0123456789");
        start(&hub, 1, no_store, 1);
        if (fetch_range(&hub, &range) != rows[i].outcome)
            fail_msg("%zu: %s: %s", i, rows[i].fields, range.error.message);
        if (rows[i].rule != NULL)
            assert_string_equal(range.error.rule, rows[i].rule);
        assert_null(strstr(range.error.message, TOKEN));
        stop(&hub);
    }
}

TEST(pause_that_the_upstream_asks_for_holds_all_requests)
{
    struct hub hub = {.upstream = NULL};
    struct upstream_report report;
    struct range ranges[2];
    int64_t begun_ms;

    set_answer(&hub, 0, "429 B", "Retry-After: 3\r\n", "");
    set_answer(&hub, 1, "206 P", PART_FIELDS, "0123456789");
    start(&hub, 2, no_store, 1);
    begun_ms = clock_ms();
    begin_range(&hub, &ranges[0]);
    AWAIT((upstream_report(hub.upstream, &report),
           report.pause_ms > 0 || atomic_load(&ranges[0].is_done)));
    assert_true(report.pause_ms > 0);
    assert_ok(fetch_range(&hub, &ranges[1]));
    assert_true(clock_ms() - begun_ms >= 2990);
    assert_ok(end_range(&ranges[0]));
    upstream_report(hub.upstream, &report);
    assert_int_equal(report.fetched_bytes, 20);
    assert_int_equal(report.requests, 3);
    stop(&hub);
}

TEST(only_matching_repositories_are_its_own)
{
    const struct zt_text globs[] = {zt_text_from("org/*"), zt_text_from("gpt?")};
    struct upstream_options options = {.name = "hub",
                                       .kind = &upstream_hub,
                                       .url = "https://hub.example/base/",
                                       .globs = globs,
                                       .glob_count = 2};
    struct upstream *upstream;

    assert_ok(upstream_new(&options, &upstream, NULL));
    assert_true(upstream_matches(upstream, zt_text_from("org/model")));
    assert_true(upstream_matches(upstream, zt_text_from("gpt2")));
    assert_false(upstream_matches(upstream, zt_text_from("other/model")));
    upstream_free(upstream);
    options.url = "https://hub.example/?a=b";
    assert_int_equal(upstream_new(&options, &upstream, NULL), ZT_ARGUMENT);
    options.url = "hub.example";
    assert_int_equal(upstream_new(&options, &upstream, NULL), ZT_ARGUMENT);
}
