/* Requests: their ids, header fields, query, memory, and what they hold. */
#include "exchange_world.h"

#include "http/exchange/exchange.h"
#include "http/exchange/trace.h"

TEST(valid_request_ids_come_back)
{
    static const char *const sane[] = {"a", "Az09._-"};
    static const char *const invalid[] = {"", "a b", "a\"b", "\xc3\xa9"};
    char longest[REQUEST_ID_SIZE + 1];
    struct request *request;

    for (size_t i = 0; i < 2; i++) {
        request = ask(METHOD_GET, "/healthz");
        assert_string_equal(field_of(answer_with(request, "X-Request-Id", sane[i]), "X-Request-Id"),
                            sane[i]);
        request_free(request);
    }
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    for (size_t i = 0; i < 5; i++) {
        const char *id = i < 4 ? invalid[i] : longest;

        request = ask(METHOD_GET, "/healthz");
        assert_string_equal(field_of(answer_with(request, "X-Request-Id", id), "X-Request-Id"), "");
        assert_int_equal(strlen(request->id), 16);
        request_free(request);
        request = ask(METHOD_GET, "/nowhere");
        assert_int_equal(strlen(field_of(answer_with(request, "X-Request-Id", id), "X-Request-Id")),
                         16);
        request_free(request);
    }
}

TEST(traces_are_read_when_well_formed)
{
    struct request *request = ask(METHOD_GET, "/healthz");

    answer_with(request, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_string_equal(request_state(request)->trace_id, "0af7651916cd43dd8448eb211c80319c");
    request_free(request);
    request = ask(METHOD_GET, "/healthz");
    answer_with(request, "traceparent", "00-00000000000000000000000000000000-b7ad6b7169203331-01");
    assert_string_equal(request_state(request)->trace_id, "");
    request_free(request);
    request = ask(METHOD_GET, "/healthz");
    answer_with(request, "traceparent", "00-0af7");
    assert_string_equal(request_state(request)->trace_id, "");
    request_free(request);
}

TEST(queries_are_decoded)
{
    struct request *request = ask(METHOD_GET, "/bytes?a=1&b=%2F+x&a=2&c&=d&%61=3&e=");
    struct zt_text value;

    assert_true(request_query(request, "a", 0, &value));
    assert_int_equal(value.length, 1);
    assert_memory_equal(value.bytes, "1", 1);
    assert_true(request_query(request, "a", 2, &value));
    assert_memory_equal(value.bytes, "3", 1);
    assert_false(request_query(request, "a", 3, &value));
    assert_true(request_query(request, "b", 0, &value));
    assert_int_equal(value.length, 3);
    assert_memory_equal(value.bytes, "/+x", 3);
    assert_true(request_query(request, "c", 0, &value));
    assert_int_equal(value.length, 0);
    assert_true(request_query(request, "e", 0, &value));
    assert_int_equal(value.length, 0);
    assert_false(request_query(request, "d", 0, &value));
    request_free(request);
}

static unsigned released[3];
static unsigned release_count;

static void assert_value(struct request *request, const char *name, unsigned nth,
                         const char *wanted)
{
    struct zt_text value;

    assert_true(request_query(request, name, nth, &value));
    assert_true(zt_text_is(value, wanted));
}

/* Each value is looked for behind the last one only, so the cost of reading all is linear. */
TEST(values_of_one_name_are_read_from_where_the_last_was)
{
    struct request *request = ask(METHOD_GET, "/query?a=0&b=x&a=1&%61=2&b=y&a=3");
    const struct query_cursor *cursor = &request_state(request)->query;
    struct zt_text value;

    assert_value(request, "a", 0, "0");
    assert_string_equal(cursor->position, "&b=x&a=1&%61=2&b=y&a=3");
    assert_value(request, "a", 1, "1");
    assert_string_equal(cursor->position, "&%61=2&b=y&a=3");
    assert_value(request, "a", 3, "3");
    assert_null(cursor->position);
    assert_value(request, "a", 2, "2");
    assert_value(request, "b", 1, "y");
    assert_value(request, "a", 1, "1");
    assert_false(request_query(request, "a", 4, &value));
    assert_false(request_query(request, "c", 0, &value));
    assert_value(request, "a", 0, "0");
    assert_value(request, "a", 0, "0");
    request_free(request);
}

static void note_release(void *thing)
{
    released[release_count++] = *(const unsigned *)thing;
}

TEST(held_things_are_released_in_reverse)
{
    static unsigned things[3] = {0, 1, 2};
    struct request *request = ask(METHOD_GET, "/bytes");

    release_count = 0;
    for (unsigned i = 0; i < 3; i++)
        request_hold(request, &things[i], note_release);
    for (unsigned i = 0; i < 100; i++)
        assert_non_null(request_print(request, "%050u", i));
    request_free(request);
    assert_int_equal(release_count, 3);
    assert_int_equal(released[0], 2);
    assert_int_equal(released[2], 0);
}

TEST(repeated_fields_are_joined)
{
    struct request *request = ask(METHOD_GET, "/bytes");

    add(request, "If-None-Match", "\"a\"");
    add(request, "Accept", "x");
    add(request, "if-none-match", "\"b\"");
    assert_string_equal(request_header(request, "If-None-Match"), "\"a\", \"b\"");
    assert_null(request_header(request, "If-None"));
    request_free(request);
}

TEST(memory_is_aligned_and_apart)
{
    struct request *request = ask(METHOD_GET, "/bytes");
    unsigned char *pieces[60];

    /* From the request's own memory into pieces of the heap. */
    for (unsigned i = 0; i < 60; i++) {
        pieces[i] = request_allocate(request, i + 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int)i, i + 1);
    }
    for (unsigned i = 0; i < 60; i++)
        for (unsigned at = 0; at <= i; at++)
            assert_int_equal(pieces[i][at], i);
    assert_null(request_allocate(request, SIZE_MAX));
    assert_null(request_allocate(request, SIZE_MAX - 8));
    request_free(request);
}

TEST(texts_of_any_length_are_printed_whole)
{
    struct request *request = ask(METHOD_GET, "/bytes");

    for (int length = 1; length < 3000; length += 37) {
        const char *text = request_print(request, "%0*d.", length, 7);

        assert_int_equal(strlen(text), length + 1);
        assert_string_equal(text + length - 1, "7.");
    }
    request_free(request);
}

TEST(header_fields_past_the_limit_are_not_taken)
{
    struct request *request = request_new(&server, NULL, "/bytes");
    const struct header_field field = {"A", "b", 1, 1};

    for (unsigned i = 0; i < REQUEST_FIELDS_MAX; i++)
        assert_true(request_add_header(request, field));
    assert_false(request_add_header(request, field));
    request->method = METHOD_GET;
    assert_int_equal(answer_of(request)->status, 431);
    assert_true(exchange_answer(request)->close);
    request_free(request);
}

static bool gone;

static bool is_gone(const struct connection *connection)
{
    (void)connection;
    return gone;
}

static unsigned resumed;

static void note_resumed(struct request *request)
{
    (void)request;
    resumed++;
}

static const struct transport transport = {note_resumed, is_gone, is_gone, NULL};

TEST(only_reading_is_abandoned_with_its_client)
{
    static const struct {
        enum method method;
        bool abandoned;
    } cases[] = {{METHOD_GET, true},   {METHOD_HEAD, true},    {METHOD_PUT, false},
                 {METHOD_POST, false}, {METHOD_DELETE, false}, {METHOD_PATCH, false},
                 {METHOD_QUERY, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request *request = ask(cases[i].method, "/bytes");
        const struct waiter *waiter = request_waiter(request);

        router_find(request);
        gone = true;
        assert_false(request_is_abandoned(request));
        request_state(request)->transport = &transport;
        assert_int_equal(request_is_abandoned(request), cases[i].abandoned);
        assert_int_equal(waiter->is_gone(waiter), cases[i].abandoned);
        gone = false;
        assert_false(request_is_abandoned(request));
        request_free(request);
    }
}

TEST(a_woken_request_comes_by_mail)
{
    struct mailbox mailbox;
    struct request *request;
    struct mail *mail;

    assert_true(mailbox_open(&mailbox));
    request = request_new(&server, &mailbox, "/bytes");
    request_state(request)->transport = &transport;
    assert_true(mailbox_is_empty(&mailbox));
    request_waiter(request)->wake(request_waiter(request));
    assert_false(mailbox_is_empty(&mailbox));
    mail = mailbox_take(&mailbox);
    assert_null(mail->next);
    resumed = 0;
    job_of(mail)->done(job_of(mail));
    assert_int_equal(resumed, 1);
    request_free(request);
    mailbox_close(&mailbox);
}

TEST(methods_have_their_names)
{
    for (enum method method = METHOD_GET; method < METHOD_UNKNOWN; method++)
        assert_int_equal(method_parse(method_name(method)), method);
    assert_int_equal(method_parse("get"), METHOD_UNKNOWN);
    assert_int_equal(method_parse(""), METHOD_UNKNOWN);
    assert_string_equal(method_name(METHOD_UNKNOWN), "OTHER");
}

TEST(ids_differ)
{
    char ids[100][REQUEST_ID_SIZE];

    for (unsigned i = 0; i < 100; i++) {
        trace_make_id(ids[i]);
        assert_int_equal(strspn(ids[i], "0123456789abcdef"), 16);
        for (unsigned before = 0; before < i; before++)
            assert_string_not_equal(ids[i], ids[before]);
    }
}

static int make_source(void **state)
{
    (void)state;
    config_defaults(&config);
    return zt_source_from_memory(TAIL_TEXT, 10, &tail, NULL);
}

AROUND_ALL_TESTS(make_source, NULL)
