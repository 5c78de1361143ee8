/* Keys as requests, lists page by page, and what answers of an object store mean. */
#include "fake_remote.h"
#include "tests.h"

#include "base/log.h"
#include "store/s3/percent.h"

#define ITEM(key)                                                                       \
    "<Contents><Key>" key "</Key><LastModified>2026-01-02T03:04:05.678Z</LastModified>" \
    "<ETag>\"e\"</ETag><Size>7</Size></Contents>"
#define WHOLE(items) \
    "<ListBucketResult>" items "<IsTruncated>false</IsTruncated></ListBucketResult>"
#define PART(items, token)                                       \
    "<ListBucketResult>" items "<IsTruncated>true</IsTruncated>" \
    "<NextContinuationToken>" token "</NextContinuationToken></ListBucketResult>"

struct seen {
    char keys[2048]; /* each followed by ';' */
    size_t count;
    struct listed_object last;
    char last_etag[BUCKET_ETAG_SIZE];
};

static struct seen seen;
static struct zt_error error;
static struct bucket bucket;
static struct object_version version;

static bool note(void *context, const struct listed_object *object)
{
    (void)context;
    seen.count++;
    seen.last = *object;
    snprintf(seen.last_etag, sizeof(seen.last_etag), "%s", object->etag);
    strcat(strcat(seen.keys, object->key), ";");
    return true;
}

static enum zt_status list(const char *prefix, const char *const *pages)
{
    fake_bucket(&bucket, prefix);
    for (size_t i = 0; pages[i] != NULL; i++)
        fake.pages[i] = pages[i];
    seen = (struct seen){.count = 0};
    return bucket_list(&bucket, "", BUCKET_USUAL_TIME, note, NULL, &error);
}

#define PAGES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* --- keys --- */

TEST(keys_are_encoded_as_they_are_signed)
{
    char path[BUCKET_PATH_SIZE];

    fake_bucket(&bucket, "p/");
    assert_true(bucket_path(&bucket, "a b+c=(1)~.zt", path));
    assert_string_equal(path, "/b/p/a%20b%2Bc%3D%281%29~.zt");
    assert_true(bucket_path(&bucket, "\x01\xc3\xbc%2f//../", path));
    assert_string_equal(path, "/b/p/%01%C3%BC%252f//../");
    bucket.path_style = false;
    assert_true(bucket_path(&bucket, "x", path));
    assert_string_equal(path, "/p/x");
}

TEST(the_longest_key_fits_and_no_longer_one)
{
    char path[BUCKET_PATH_SIZE];
    char key[BUCKET_KEY_SIZE + 1];

    fake_bucket(&bucket, "");
    memset(key, ' ', sizeof(key));
    key[1024] = '\0';
    assert_true(bucket_path(&bucket, key, path));
    assert_int_equal(strlen(path), 3 + 3 * 1024);
    key[1024] = ' ';
    key[1025] = '\0';
    assert_false(bucket_path(&bucket, key, path));
}

TEST(decoding_refuses_what_is_no_encoding)
{
    static const struct {
        const char *text;
        const char *decoded; /* NULL: refused */
    } cases[] = {
        {"a%2Fb", "a/b"}, {"a+b", "a+b"}, {"%c3%BC", "\xc3\xbc"}, {"%", NULL},
        {"%4", NULL},     {"%zz", NULL},  {"%00", NULL},          {"", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        size_t length = strlen(cases[i].text);

        strcpy(text, cases[i].text);
        assert_int_equal(percent_decode_key(text, &length), cases[i].decoded != NULL);
        if (cases[i].decoded != NULL)
            assert_string_equal(text, cases[i].decoded);
    }
}

TEST(lists_and_headers_tell_the_same_second)
{
    int64_t listed = 0;
    int64_t reported = 0;

    assert_true(bucket_time_of_list(zt_text_from("1994-11-06T08:49:37.999Z"), &listed));
    assert_true(bucket_time_of_header("Sun, 06 Nov 1994 08:49:37 GMT", &reported));
    assert_int_equal(listed, 784111777);
    assert_int_equal(reported, listed);
    assert_false(bucket_time_of_list(zt_text_from("1994-13-06T08:49:37Z"), &listed));
    assert_true(bucket_time_of_list(zt_text_from("1994-11-06T10:49:37+02:00"), &listed));
    assert_int_equal(listed, reported);
    assert_false(bucket_time_of_header("Sun, 06 Nox 1994 08:49:37 GMT", &reported));
    assert_false(bucket_time_of_header("", &reported));
    /* No nanoseconds that overflow. */
    assert_false(bucket_time_of_header("Fri, 31 Dec 9999 23:59:59 GMT", &reported));
    assert_false(bucket_time_of_list(zt_text_from("2262-12-31T23:59:59Z"), &listed));
}

TEST(etags_lose_their_quotes_and_never_break_a_header)
{
    char etag[BUCKET_ETAG_SIZE];

    assert_true(bucket_etag_read(zt_text_from("\"abc-3\""), etag));
    assert_string_equal(etag, "abc-3");
    assert_true(bucket_etag_read(zt_text_from("abc"), etag));
    assert_true(bucket_etag_read(zt_text_from("W/\"abc\""), etag));
    assert_string_equal(etag, "abc");
    assert_false(bucket_etag_read(zt_text_from("\"a\r\nx: y\""), etag));
    assert_false(bucket_etag_read(zt_text_from("\"\""), etag));
    assert_false(bucket_etag_read(zt_text_from("a\"b"), etag));
}

/* --- lists --- */

TEST(a_list_has_keys_below_the_prefix_sizes_and_whole_seconds)
{
    assert_int_equal(
        list("p/", PAGES(WHOLE(ITEM("p/a.zt") ITEM("p/&quot;&lt;") ITEM("q/other") ITEM("p/")))),
        ZT_OK);
    assert_string_equal(seen.keys, "a.zt;\"<;");
    assert_string_equal(seen.last_etag, "e");
    assert_int_equal(seen.last.size_bytes, 7);
    assert_int_equal(seen.last.modified_s, 1767323045);
    assert_string_equal(fake.last_path, "/b");
    assert_string_equal(fake.last_query, "list-type=2&max-keys=1000&prefix=p%2F");
}

TEST(pages_follow_the_token_encoded_once)
{
    assert_int_equal(list("", PAGES(PART(ITEM("a"), "x y&amp;/+"), WHOLE(ITEM("b")))), ZT_OK);
    assert_string_equal(seen.keys, "a;b;");
    assert_string_equal(fake.last_query, "continuation-token=x%20y%26%2F%2B&list-type=2&max-keys="
                                         "1000&prefix=");
}

TEST(objects_that_cannot_be_pinned_or_measured_are_left_out)
{
    assert_int_equal(
        list("", PAGES(WHOLE("<Contents><Key>a</Key><Size>1</Size></Contents>"
                             "<Contents><Key>b</Key><ETag>e</ETag><Size>-1</Size></Contents>"
                             "<Contents><ETag>e</ETag><Size>1</Size></Contents>" ITEM("c")))),
        ZT_OK);
    assert_string_equal(seen.keys, "c;");
}

TEST(a_key_that_xml_cannot_hold_hides_no_other)
{
    assert_int_equal(
        list("", PAGES(PART(ITEM("a"), "t"), PART(ITEM("b&#x01;.zt"), "b&#x01;.zt"),
                       PART("<EncodingType>url</EncodingType>" ITEM("b%01.zt") ITEM("%zz")
                                ITEM("c%2Fd"),
                            "b&#x01;.zt"),
                       PART("<EncodingType>url</EncodingType>" ITEM("e%7E"), "its own"),
                       WHOLE("<EncodingType>url</EncodingType>" ITEM("f")))),
        ZT_OK);
    assert_string_equal(seen.keys, "a;b\x01.zt;c/d;e~;f;");
    assert_string_equal(fake.last_query, "encoding-type=url&list-type=2&max-keys=1000&prefix=&start"
                                         "-after=e~");
    assert_int_equal(fake.lists, 5);
}

TEST(an_engine_that_encodes_nothing_loses_only_bad_keys)
{
    assert_int_equal(list("", PAGES(WHOLE(ITEM("b&#x01;.zt") ITEM("c\x02") ITEM("d")),
                                    WHOLE(ITEM("b&#x01;.zt") ITEM("c\x02") ITEM("d")))),
                     ZT_OK);
    assert_string_equal(seen.keys, "d;");
}

#define MORE(items)    "<ListBucketResult>" items "<IsTruncated>true</IsTruncated></ListBucketResult>"
#define LAST_CHARACTER "%F4%8F%BF%BF"

/* Pages without a token whose keys are all dropped; each with how the next begins. */
TEST(a_page_of_dropped_keys_is_stepped_over)
{
    static const struct {
        const char *page;
        unsigned times;
        const char *after;
    } cases[] = {
        /* It can be told, but has no ETag. */
        {MORE("<Contents><Key>c</Key><Size>1</Size></Contents>"), 1, "c"},
        {MORE(ITEM("c&#x01;x") ITEM("c&#x02;")), 1, "c%20"},
        {MORE(ITEM("c&#x01;x") ITEM("c?x")), 2, "c%25" LAST_CHARACTER},
        {MORE(ITEM("c&#x01;x") ITEM("c?x")), 3, "c%3F" LAST_CHARACTER},
        {MORE(ITEM("c&#x01;x") ITEM("c\xc3\xbc")), 4, "c" LAST_CHARACTER},
        {MORE("<EncodingType>url</EncodingType>" ITEM("c%2Fd%zz")), 1, "c%2Fd%20"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *pages[8] = {MORE(ITEM("a"))};
        char query[256];
        size_t count = 1;

        /* What XML cannot hold is asked for once more, encoded. */
        if (strstr(cases[i].page, "&#x01;") != NULL)
            pages[count++] = cases[i].page;
        for (unsigned time = 0; time < cases[i].times; time++)
            pages[count++] = cases[i].page;
        pages[count] = WHOLE(ITEM("d"));
        assert_int_equal(list("", pages), ZT_OK);
        assert_string_equal(seen.keys, "a;d;");
        snprintf(query, sizeof(query), "&start-after=%s", cases[i].after);
        assert_string_equal(strstr(fake.last_query, "&start-after="), query);
    }
    /* What never gets on ends. */
    assert_int_equal(
        list("", PAGES(MORE(ITEM("a&#x01;")), MORE(ITEM("a&#x01;")), MORE(ITEM("a&#x01;")),
                       MORE(ITEM("a&#x01;")), MORE(ITEM("a&#x01;")), MORE(ITEM("a&#x01;")))),
        ZT_UNAVAILABLE);
}

TEST(lists_that_do_not_end_or_are_none_are_no_whole_lists)
{
    assert_int_equal(list("", PAGES(PART(ITEM("a"), "t"), PART(ITEM("b"), "t"))), ZT_UNAVAILABLE);
    assert_int_equal(list("", PAGES(PART("", ""), PART("", ""))), ZT_UNAVAILABLE);
    assert_int_equal(list("", PAGES("<html></html>", "<html></html>")), ZT_UNAVAILABLE);
    assert_int_equal(list("", PAGES(PART(ITEM("a"), "t"), "<ListBucketResult>", "x")),
                     ZT_UNAVAILABLE);
    assert_int_equal(list("", PAGES("<Error><Code>InternalError</Code></Error>")), ZT_UNAVAILABLE);
}

/* --- answers --- */

static enum zt_status judge(unsigned status, const char *body, enum metric operation)
{
    struct bucket_object object = {.bytes = NULL};
    enum zt_status judged;

    fake_bucket(&bucket, "");
    fake.status = status;
    fake.body = body;
    zt_error_clear(&error);
    if (operation == METRIC_STORE_LIST)
        return bucket_check(&bucket, &error);
    if (operation == METRIC_STORE_WRITE)
        return bucket_put(&bucket, &(struct bucket_put){.key = "k", .bytes = "x", .length = 1},
                          &version, &error);
    judged = bucket_get(&bucket, "k", 100, BUCKET_USUAL_TIME, &object, &error);
    free(object.bytes);
    return judged;
}

TEST(what_will_not_go_away_is_said_in_one_line)
{
    static const struct {
        unsigned status;
        const char *code;
        const char *message_part;
    } cases[] = {
        {404, "NoSuchBucket", "the bucket does not exist: b"},
        {403, "InvalidAccessKeyId", "the access key is not known"},
        {403, "SignatureDoesNotMatch", "the secret does not match"},
        {403, "AccessDenied", "the credentials do not give access"},
        {403, "RequestTimeTooSkewed", "the clock of this machine"},
        {400, "AuthorizationHeaderMalformed", "the region is wrong: the store expects \"eu-1\""},
        {301, "PermanentRedirect", "the region is wrong: the store expects \"eu-1\""},
        {400, "ExpiredToken", "the session token has expired"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char body[256];

        snprintf(body, sizeof(body),
                 "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>m</Message>"
                 "<Region>eu-1</Region></Error>",
                 cases[i].code);
        assert_int_equal(judge(cases[i].status, body, METRIC_STORE_LIST), ZT_ARGUMENT);
        assert_non_null(strstr(error.message, cases[i].message_part));
        assert_null(strchr(error.message, '\n'));
    }
}

TEST(answers_become_the_status_that_helps)
{
    assert_int_equal(judge(404, "<Error><Code>NoSuchKey</Code></Error>", METRIC_STORE_READ),
                     ZT_NOT_FOUND);
    assert_int_equal(judge(404, "", METRIC_STORE_READ), ZT_NOT_FOUND);
    assert_int_equal(judge(404, "<Error><Code>NoSuchBucket</Code></Error>", METRIC_STORE_READ),
                     ZT_ARGUMENT);
    assert_int_equal(judge(412, "", METRIC_STORE_READ), ZT_STALE);
    assert_int_equal(judge(416, "", METRIC_STORE_READ), ZT_STALE);
    assert_int_equal(judge(409, "", METRIC_STORE_WRITE), ZT_STALE);
    assert_int_equal(judge(403, "<html>no", METRIC_STORE_READ), ZT_ARGUMENT);
    assert_int_equal(judge(400, "", METRIC_STORE_READ), ZT_UNAVAILABLE);
    assert_int_equal(judge(501, "", METRIC_STORE_WRITE), ZT_UNAVAILABLE);
    assert_int_equal(judge(200, "<Error>as text</Error>", METRIC_STORE_READ), ZT_OK);
    assert_int_equal(judge(200,
                           " <?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code></Error>",
                           METRIC_STORE_WRITE),
                     ZT_UNAVAILABLE);
    assert_int_equal(judge(200, "<html></html>", METRIC_STORE_LIST), ZT_ARGUMENT);
}

TEST(one_write_without_an_answer_does_not_mean_that_the_store_is_away)
{
    const struct bucket_put put = {.key = "k", .bytes = "b", .length = 1};

    fake_bucket(&bucket, "");
    for (int i = 0; i < 3; i++) {
        fake.failure = REMOTE_FAILURE_TIMEOUT;
        assert_false(atomic_load(&bucket.is_unreachable));
        assert_int_equal(bucket_put(&bucket, &put, &version, &error), ZT_UNAVAILABLE);
        if (i == 0) {
            assert_int_equal(bucket_put(&bucket, &put, &version, &error), ZT_UNAVAILABLE);
            fake.failure = REMOTE_FAILURE_NONE;
            assert_int_equal(bucket_head(&bucket, "k", BUCKET_USUAL_TIME, &version, &error),
                             ZT_NOT_FOUND);
        }
    }
    fake.failure = REMOTE_FAILURE_TIMEOUT;
    assert_int_equal(bucket_put(&bucket, &put, &version, &error), ZT_UNAVAILABLE);
    assert_true(atomic_load(&bucket.is_unreachable));
}

TEST(the_store_is_away_until_it_answers)
{
    fake_bucket(&bucket, "");
    fake.failure = REMOTE_FAILURE_CONNECT;
    assert_true(bucket_may_ask(&bucket));
    assert_int_equal(bucket_head(&bucket, "k", BUCKET_USUAL_TIME, &version, &error),
                     ZT_UNAVAILABLE);
    assert_true(atomic_load(&bucket.is_unreachable));
    assert_false(atomic_load(&bucket.was_reached));
    /* One request a second finds out whether it is back. */
    assert_true(bucket_may_ask(&bucket));
    assert_false(bucket_may_ask(&bucket));
    fake.failure = REMOTE_FAILURE_NONE;
    assert_int_equal(bucket_head(&bucket, "k", BUCKET_USUAL_TIME, &version, &error), ZT_NOT_FOUND);
    assert_false(atomic_load(&bucket.is_unreachable));
    assert_true(atomic_load(&bucket.was_reached));
    assert_true(bucket_may_ask(&bucket));
    assert_true(bucket_may_ask(&bucket));
}

TEST(a_store_that_is_away_is_asked_briefly)
{
    struct remote_exchange exchange = {.into_length = 8 << 20};

    fake_bucket(&bucket, "");
    bucket_be_brief(&bucket, &exchange);
    assert_int_equal(exchange.tries, 0);
    assert_int_equal(exchange.time_ms, 0);
    atomic_store(&bucket.is_unreachable, true);
    bucket_be_brief(&bucket, &exchange);
    assert_int_equal(exchange.tries, 1);
    assert_in_range(exchange.time_ms, 9000, 12000);
}

/* --- single objects --- */

TEST(conditions_are_sent_without_quotes)
{
    struct bucket_put put = {
        .key = "k", .bytes = "x", .length = 1, .etag = "abc", .condition = BUCKET_IF_VERSION};

    fake_bucket(&bucket, "");
    fake.status = 200;
    fake.body = "";
    assert_int_equal(bucket_put(&bucket, &put, NULL, &error), ZT_OK);
    assert_string_equal(fake.last_fields, "if-match: abc;");
    put.condition = BUCKET_IF_ABSENT;
    assert_int_equal(bucket_put(&bucket, &put, NULL, &error), ZT_OK);
    assert_string_equal(fake.last_fields, "if-none-match: *;");
    assert_int_equal(bucket_delete(&bucket, "k", BUCKET_USUAL_TIME, &error), ZT_OK);
    fake.status = 404;
    assert_int_equal(bucket_delete(&bucket, "k", BUCKET_USUAL_TIME, &error), ZT_OK);
}

TEST(a_size_that_is_not_told_is_not_zero)
{
    fake_bucket(&bucket, "");
    fake.objects[0] = (struct fake_object){"k", "e1", (const uint8_t *)"hello", 5};
    assert_int_equal(bucket_head(&bucket, "k", BUCKET_USUAL_TIME, &version, &error), ZT_OK);
    assert_int_equal(version.size_bytes, 5);
    fake.hides_lengths = true;
    assert_int_equal(bucket_head(&bucket, "k", BUCKET_USUAL_TIME, &version, &error),
                     ZT_UNAVAILABLE);
}

TEST(a_small_object_is_read_whole_and_a_large_one_not)
{
    struct bucket_object object;

    fake_bucket(&bucket, "");
    fake.objects[0] = (struct fake_object){"k", "e1", (const uint8_t *)"hello", 5};
    assert_int_equal(bucket_get(&bucket, "k", 5, BUCKET_USUAL_TIME, &object, &error), ZT_OK);
    assert_int_equal(object.length, 5);
    assert_string_equal(object.bytes, "hello");
    assert_string_equal(object.version.etag, "e1");
    assert_int_equal(object.version.size_bytes, 5);
    assert_int_equal(object.version.modified_s, 1767323045);
    free(object.bytes);
    assert_int_equal(bucket_get(&bucket, "k", 4, BUCKET_USUAL_TIME, &object, &error), ZT_LIMIT);
    assert_int_equal(bucket_get(&bucket, "l", 4, BUCKET_USUAL_TIME, &object, &error), ZT_NOT_FOUND);
}
