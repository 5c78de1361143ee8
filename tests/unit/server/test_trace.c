/* The log line of a request that was cut: it says which part of the exchange was cut. */
#include "tests.h"

#include "exchange_world.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "http/exchange/trace.h"

static char written[4096];

/* Ends a request, and keeps the line that is logged. */
static void cut(struct request *request)
{
    FILE *file = tmpfile();
    const int saved = dup(STDERR_FILENO);
    size_t length;

    assert_non_null(file);
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    dup2(fileno(file), STDERR_FILENO);
    trace_end(request, ENDING_CLIENT, 0);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    length = fread(written, 1, sizeof(written) - 1, file);
    written[length] = '\0';
    fclose(file);
    request_free(request);
}

/* A request whose handler waits after the body. */
static struct request *begin_waiting(const char *framing, const char *value)
{
    struct request *request = ask(METHOD_GET, "/unknown");

    add(request, framing, value);
    assert_false(exchange_begin(request));
    assert_true(exchange_receive(request, "abcde", 5));
    return request;
}

TEST(chunked_request_is_cut_in_its_body_until_the_body_ends)
{
    struct request *request;

    cut(begin_waiting("Transfer-Encoding", "chunked"));
    assert_non_null(strstr(written, "5 bytes of the body: client gone"));
    request = begin_waiting("Transfer-Encoding", "chunked");
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    cut(request);
    assert_non_null(strstr(written, "of the answer: client gone"));
}

TEST(request_with_length_is_cut_in_its_body_until_the_body_ends)
{
    struct request *request;

    cut(begin_waiting("Content-Length", "6"));
    assert_non_null(strstr(written, "5 of 6 bytes of the body: client gone"));
    request = begin_waiting("Content-Length", "5");
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    cut(request);
    assert_non_null(strstr(written, "of the answer: client gone"));
}
