/* The log: text from a client can neither forge a line nor break a line's JSON. */
#include "tests.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static char written[16384];

/* Runs a function with standard error in a file, and keeps what it wrote. */
static void capture_at(enum log_level level, enum log_format format, void (*speak)(void))
{
    FILE *file = tmpfile();
    const int saved = dup(STDERR_FILENO);
    size_t length;

    assert_non_null(file);
    log_configure(level, format);
    dup2(fileno(file), STDERR_FILENO);
    speak();
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    length = fread(written, 1, sizeof(written) - 1, file);
    written[length] = '\0';
    fclose(file);
}

static void capture(enum log_format format, void (*speak)(void))
{
    capture_at(LOG_LEVEL_INFO, format, speak);
}

static void speak_of_newlines(void)
{
    log_write(LOG_LEVEL_WARN, "%s", "first\nsecond\r\t\x1b[31m\x7f");
}

static void speak_of_quotes(void)
{
    log_write(LOG_LEVEL_WARN, "%s", "a \"quoted\" \\ \xc3\xa9 \xff \xc2\x9b");
}

static void speak_long(void)
{
    char text[8000];

    memset(text, '\n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_write(LOG_LEVEL_ERROR, "%s", text);
}

static void speak_of_a_request(void)
{
    log_request(&(struct log_request_line){.request_id = "id",
                                           .trace_id = "",
                                           .method = "GET",
                                           .path = "/a\"\n",
                                           .route = "/{x}",
                                           .status = 200,
                                           .bytes = 7,
                                           .duration_us = 1234});
}

/* What a thread that gathers its lines has written when it ends. */
struct gathered {
    void (*speak)(void);
    bool flushes;
};

static void *gather(void *argument)
{
    const struct gathered *gathered = argument;

    log_gather();
    gathered->speak();
    if (gathered->flushes)
        log_flush();
    return NULL;
}

static void run_gathered(struct gathered gathered)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, gather, &gathered), 0);
    pthread_join(thread, NULL);
}

static void speak_of_a_request_that_waits(void)
{
    run_gathered((struct gathered){speak_of_a_request, false});
}

static void speak_of_a_request_that_is_flushed(void)
{
    run_gathered((struct gathered){speak_of_a_request, true});
}

static void speak_of_a_request_and_more(void)
{
    speak_of_a_request();
    log_write(LOG_LEVEL_WARN, "%s", "after it");
}

static void speak_of_a_request_and_a_warning(void)
{
    run_gathered((struct gathered){speak_of_a_request_and_more, false});
}

static void speak_of_a_hundred_requests(void)
{
    for (unsigned i = 0; i < 100; i++)
        speak_of_a_request();
}

static void speak_of_many_requests(void)
{
    run_gathered((struct gathered){speak_of_a_hundred_requests, true});
}

static void speak_of_cuts(void)
{
    struct log_request_line line = {
        .request_id = "id", .trace_id = "", .method = "GET", .path = "/", .route = "/"};

    line.cut = (struct log_cut){"timeout", "answer", 12, 34};
    log_request(&line);
    line.cut = (struct log_cut){"client gone", "body", 5, UINT64_MAX};
    log_request(&line);
}

TEST(control_characters_are_escaped)
{
    capture(LOG_FORMAT_TEXT, speak_of_newlines);
    assert_non_null(strstr(written, "warn first\\u000asecond\\u000d\\u0009\\u001b[31m\\u007f\n"));
    assert_ptr_equal(strchr(written, '\n'), written + strlen(written) - 1);
}

TEST(json_escapes_quotes_and_bytes_that_are_no_text)
{
    capture(LOG_FORMAT_JSON, speak_of_quotes);
    assert_non_null(
        strstr(written, "\"message\":\"a \\\"quoted\\\" \\\\ \xc3\xa9 \\u00ff \\u009b\"}\n"));
    assert_memory_equal(written, "{\"time\":\"2", 10);
}

TEST(long_lines_are_cut_and_still_end)
{
    capture(LOG_FORMAT_JSON, speak_long);
    assert_true(strlen(written) <= 4096);
    assert_string_equal(written + strlen(written) - 6, "...\"}\n");
}

TEST(requests_are_logged_with_their_members)
{
    capture(LOG_FORMAT_JSON, speak_of_a_request);
    assert_non_null(
        strstr(written,
               "\"level\":\"info\",\"message\":\"request\",\"request_id\":\"id\",\"trace_id\":\"\","
               "\"method\":\"GET\",\"path\":\"/a\\\"\\u000a\",\"route\":\"/{x}\",\"status\":200,"
               "\"bytes\":7,\"duration_ms\":1.234}\n"));
}

static void speak_of_a_client(void)
{
    log_request(&(struct log_request_line){.request_id = "id",
                                           .trace_id = "",
                                           .method = "GET",
                                           .path = "/",
                                           .route = "/",
                                           .client = "10.0.0.1",
                                           .forwarded = "2001:db8::1",
                                           .user = "ci",
                                           .user_agent = "x\" status=\"200\n\xff",
                                           .code = "internal",
                                           .model = {"a/b\0c", 5}});
}

TEST(clients_are_logged_and_cannot_forge_members)
{
    capture(LOG_FORMAT_JSON, speak_of_a_client);
    assert_non_null(strstr(
        written, "\"duration_ms\":0.000,\"client\":\"10.0.0.1\",\"forwarded\":\"2001:db8::1\","
                 "\"user\":\"ci\",\"model\":\"a/b\\u0000c\",\"code\":\"internal\","
                 "\"user_agent\":\"x\\\" status=\\\"200\\u000a\\u00ff\"}\n"));
    capture(LOG_FORMAT_TEXT, speak_of_a_client);
    assert_non_null(strstr(written,
                           " ms id client=\"10.0.0.1\" forwarded=\"2001:db8::1\" user=\"ci\" "
                           "model=\"a/b\\u0000c\" code=\"internal\" "
                           "user_agent=\"x\\\" status=\\\"200\\u000a\\u00ff\"\n"));
}

static void speak_of_a_target(const char *method, const char *path)
{
    log_request(&(struct log_request_line){
        .request_id = "id", .trace_id = "", .method = method, .path = path, .route = "/"});
}

static void speak_of_forged_targets(void)
{
    speak_of_a_target("GET", "/v1 200 1 bytes 0.010 ms client=\"6.6.6.6\"");
    speak_of_a_target("A B\"", "/\\%41%zz\x7f\t\n\xc3\xa9\xff~!");
}

TEST(targets_cannot_forge_members_of_a_text_line)
{
    capture(LOG_FORMAT_TEXT, speak_of_forged_targets);
    assert_non_null(
        strstr(written, " info GET /v1%20200%201%20bytes%200.010%20ms%20client=%226.6.6.6%22 0 0 "
                        "bytes 0.000 ms id\n"));
    assert_non_null(
        strstr(written, " info A%20B%22 /%5C%41%zz%7F%09%0A%C3%A9%FF~! 0 0 bytes 0.000 ms id\n"));
    capture(LOG_FORMAT_JSON, speak_of_forged_targets);
    assert_non_null(
        strstr(written, "\"path\":\"/v1 200 1 bytes 0.010 ms client=\\\"6.6.6.6\\\"\","));
}

/* A left-to-right mark, both separators, an override, an isolate, a byte order mark, a tag beyond
 * U+FFFF; and after them what is no control: U+2010, U+2030, U+1F600. */
#define CONTROLS \
    "\xe2\x80\x8e\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae\xe2\x81\xa6\xef\xbb\xbf\xf3\xa0\x80\x81"
#define ESCAPED   "\\u200e\\u2028\\u2029\\u202e\\u2066\\ufeff\\udb40\\udc01"
#define CHARACTER "\xe2\x80\x90\xe2\x80\xb0\xf0\x9f\x98\x80"

static void speak_of_format_controls(void)
{
    log_write(LOG_LEVEL_WARN, "%s", CONTROLS CHARACTER);
    log_request(&(struct log_request_line){.request_id = "id",
                                           .trace_id = "",
                                           .method = "GET",
                                           .path = "/" CONTROLS,
                                           .route = "/",
                                           .user_agent = CONTROLS CHARACTER});
}

TEST(format_controls_are_escaped)
{
    capture(LOG_FORMAT_TEXT, speak_of_format_controls);
    assert_non_null(strstr(written, " warn " ESCAPED CHARACTER "\n"));
    assert_non_null(strstr(written, " user_agent=\"" ESCAPED CHARACTER "\"\n"));
    capture(LOG_FORMAT_JSON, speak_of_format_controls);
    assert_non_null(strstr(written, "\"message\":\"" ESCAPED CHARACTER "\"}\n"));
    assert_non_null(strstr(written, "\"path\":\"/" ESCAPED "\","));
    assert_non_null(strstr(written, "\"user_agent\":\"" ESCAPED CHARACTER "\"}\n"));
}

static void speak_of_tokens(void)
{
    speak_of_a_target("GET", "/a?access_token=s3cret%20x&b=1&ACCESS_token=s3cret s3cret?&c");
    speak_of_a_target("GET", "/a?access_token=&my_access_token=1&access_tokens=2&access_token");
}

TEST(tokens_in_targets_are_not_logged)
{
    static const enum log_format formats[] = {LOG_FORMAT_TEXT, LOG_FORMAT_JSON};

    for (unsigned i = 0; i < 2; i++) {
        capture(formats[i], speak_of_tokens);
        assert_null(strstr(written, "s3cret"));
        assert_non_null(strstr(written, "/a?access_token=***&b=1&ACCESS_token=***&c"));
        assert_non_null(strstr(written, "&my_access_token=1&access_tokens=2&access_token"));
    }
}

static void speak_of_a_long_target(void)
{
    static char path[20000];
    size_t length = 0;

    while (length + 32 < sizeof(path))
        length += (size_t)snprintf(path + length, 32, "?access_token=s&a=%s", "\"\"\"");
    speak_of_a_target("GET", path);
}

TEST(long_targets_are_cut)
{
    capture(LOG_FORMAT_TEXT, speak_of_a_long_target);
    assert_true(strlen(written) > 1024 && strlen(written) < 1200);
    assert_non_null(strstr(written, "... 0 0 bytes 0.000 ms id\n"));
}

static void speak_at_length(void)
{
    static char text[5000];

    memset(text, '"', sizeof(text) - 1);
    log_request(&(struct log_request_line){.request_id = text,
                                           .trace_id = text,
                                           .method = text,
                                           .path = text,
                                           .route = text,
                                           .client = text,
                                           .forwarded = text,
                                           .user = text,
                                           .user_agent = text,
                                           .code = text,
                                           .model = {text, sizeof(text) - 1},
                                           .cut = {"timeout", "answer", 1, 2}});
}

TEST(long_requests_stay_one_line_of_json)
{
    capture(LOG_FORMAT_JSON, speak_at_length);
    assert_true(strlen(written) <= 4096);
    assert_non_null(strstr(written, ",\"user_agent\":\"\\\""));
    assert_string_equal(strstr(written, "\"done_bytes\""), "\"done_bytes\":1,\"total_bytes\":2}\n");
}

TEST(cut_requests_are_logged_with_their_progress)
{
    capture(LOG_FORMAT_JSON, speak_of_cuts);
    assert_non_null(strstr(
        written, "\"duration_ms\":0.000,\"cut\":true,\"end\":\"timeout\",\"during\":\"answer\","
                 "\"done_bytes\":12,\"total_bytes\":34}\n"));
    assert_non_null(
        strstr(written, "\"end\":\"client gone\",\"during\":\"body\",\"done_bytes\":5}\n"));
    capture(LOG_FORMAT_TEXT, speak_of_cuts);
    assert_non_null(strstr(written, " id cut after 12 of 34 bytes of the answer: timeout\n"));
    assert_non_null(strstr(written, " id cut after 5 bytes of the body: client gone\n"));
}

TEST(levels_below_the_configured_are_silent)
{
    capture_at(LOG_LEVEL_ERROR, LOG_FORMAT_JSON, speak_of_quotes);
    assert_string_equal(written, "");
    capture_at(LOG_LEVEL_ERROR, LOG_FORMAT_JSON, speak_of_a_request);
    assert_string_equal(written, "");
}

static unsigned lines_written(void)
{
    unsigned count = 0;

    for (const char *at = written; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

TEST(requests_wait_for_the_end_of_a_turn)
{
    capture(LOG_FORMAT_TEXT, speak_of_a_request_that_waits);
    assert_string_equal(written, "");
    capture(LOG_FORMAT_TEXT, speak_of_a_request_that_is_flushed);
    assert_int_equal(lines_written(), 1);
}

TEST(lines_keep_their_order)
{
    capture(LOG_FORMAT_TEXT, speak_of_a_request_and_a_warning);
    assert_int_equal(lines_written(), 2);
    assert_true(strstr(written, "GET") < strstr(written, "after it"));
}

TEST(no_gathered_line_is_lost_or_torn)
{
    capture(LOG_FORMAT_TEXT, speak_of_many_requests);
    assert_int_equal(lines_written(), 100);
    for (const char *at = written; *at != '\0'; at = strchr(at, '\n') + 1)
        assert_int_equal(strcspn(at, "\n"), strcspn(written, "\n"));
}
