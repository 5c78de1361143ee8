/* A short JSON text as a body: gathered from pieces, within its bound. */
#include "tests.h"

#include "http/exchange/json_body.h"
#include "http/exchange/request_state.h"

static struct request *begin(void)
{
    static struct server server;
    struct request *request = request_new(&server, NULL, "/");

    assert_non_null(request);
    assert_false(json_body_refuse(request));
    return request;
}

static void send_piece(struct request *request, const char *bytes, size_t length)
{
    const struct body_piece piece = {.bytes = bytes, .length = length, .on_loop = true};

    request->receiver->receive(request, &piece);
}

TEST(pieces_make_one_text)
{
    struct request *request = begin();

    assert_int_equal(json_body_text(request).length, 0);
    send_piece(request, "{\"a\"", 4);
    send_piece(request, "", 0);
    send_piece(request, ": 1}", 4);
    assert_true(zt_text_is(json_body_text(request), "{\"a\": 1}"));
    assert_false(json_body_refuse_received(request));
    request_free(request);
}

TEST(dropped_text_is_empty)
{
    struct request *request = begin();

    send_piece(request, "{}", 2);
    json_body_drop(request);
    assert_int_equal(json_body_text(request).length, 0);
    request_free(request);
}

TEST(text_of_the_greatest_length_is_kept_and_one_byte_more_is_not)
{
    struct request *request = begin();
    char *piece = malloc(JSON_BODY_MAX);

    assert_non_null(piece);
    memset(piece, 'x', JSON_BODY_MAX);
    send_piece(request, piece, JSON_BODY_MAX - 1);
    send_piece(request, piece, 1);
    assert_false(json_body_refuse_received(request));
    assert_int_equal(json_body_text(request).length, JSON_BODY_MAX);
    send_piece(request, piece, 1);
    send_piece(request, piece, 1);
    assert_true(json_body_refuse_received(request));
    assert_int_equal(request->reply.status, 413);
    free(piece);
    request_free(request);
}
