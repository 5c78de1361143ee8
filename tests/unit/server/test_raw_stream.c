/* The bytes of a connection, judged before the HTTP library sees them: in pieces of any size. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "http/fields/framing.h"
#include "http/fields/grammar.h"
#include "http/fields/raw_stream.h"

#define HEAD "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

/* Feeds a text in pieces, and decides each header as the library would when it has parsed it: what
 * came behind it is still where it was received. */
static struct raw_stream feed(const char *text, size_t length, size_t step, uint64_t body_length)
{
    struct raw_stream stream = {.state = RAW_START};

    for (size_t at = 0; at < length; at += step) {
        const size_t end = length - at < step ? length : at + step;

        raw_stream_take(&stream, text + at, end - at);
        while (stream.state == RAW_UNDECIDED)
            raw_stream_decide(&stream, body_length, text + end - stream.undecided);
    }
    return stream;
}

static void assert_ends_in(enum raw_state state, const char *text, size_t length,
                           uint64_t body_length)
{
    for (size_t step = 1; step <= length; step++)
        assert_int_equal(feed(text, length, step, body_length).state, state);
}

#define ENDS_IN(state, text, body_length) assert_ends_in(state, text, sizeof(text) - 1, body_length)
#define SOUND(text)                       ENDS_IN(RAW_START, text, 0)
#define BROKEN(text)                      ENDS_IN(RAW_BROKEN, text, 0)

TEST(plain_requests_are_sound)
{
    SOUND(HEAD);
    SOUND(HEAD HEAD HEAD);
    SOUND("\r\n\r\n" HEAD);
    SOUND("GET / HTTP/1.1\r\n\r\n");
    SOUND("PUT /a?b=%20 HTTP/1.0\r\nX:\r\nY: \t a b\t\r\n!#$%&'*+-.^_`|~09AZaz:z\r\n\r\n");
    SOUND("GET /\xc3\xa9 HTTP/1.1\r\nX: \xff\r\n\r\n");
}

TEST(request_lines_have_two_blanks)
{
    BROKEN("GET  / HTTP/1.1\r\nHost: a\r\n\r\n");
    BROKEN("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n");
    BROKEN("GET / HTTP/1.1 \r\nHost: a\r\n\r\n");
    BROKEN("GET /\r\nHost: a\r\n\r\n");
    BROKEN("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n");
    BROKEN(" GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    BROKEN("GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(lines_end_with_cr_lf_only)
{
    BROKEN("\n" HEAD);
    BROKEN("\rX" HEAD);
    BROKEN("GET / HTTP/1.1\nHost: a\r\n\r\n");
    BROKEN("GET / HTTP/1.1\rX\r\nHost: a\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nHost: a\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nHost: a\r\n\n");
    BROKEN("GET / HTTP/1.1\r\nHost: a\r\n\rX");
}

TEST(nul_is_nowhere)
{
    BROKEN("\0\r\n" HEAD);
    BROKEN("\0\n" HEAD);
    BROKEN("\0GET / HTTP/1.1\r\n\r\n");
    BROKEN("GET / HTTP/1.1\0\nHost: a\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nHost: a\0\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nHost\0: a\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nHost: a\r\n\0\n");
    BROKEN(HEAD "\0X\r\n" HEAD);
}

/* Runs are judged eight bytes at once, or one by one if pieces are small. */
static void assert_byte_in_run(const char *before, const char *behind, char byte, bool is_sound)
{
    for (int place = 0; place < 20; place++) {
        char text[128];
        const int length =
            snprintf(text, sizeof(text), "%s%.20s%s", before, "abcdefghijklmnopqrst", behind);

        text[strlen(before) + (size_t)place] = byte;
        for (size_t step = 1; step <= (size_t)length; step += step < 20 ? 1 : (size_t)length - 20)
            assert_int_equal(feed(text, (size_t)length, step, 0).state,
                             is_sound ? RAW_START : RAW_BROKEN);
    }
}

TEST(every_byte_is_judged_in_every_place_of_a_run)
{
    for (int value = 0; value < 256; value++) {
        const char byte = (char)value;

        assert_byte_in_run("GET /", " HTTP/1.1\r\n\r\n", byte, value > 0x20 && value != 0x7F);
        assert_byte_in_run("GET / HTTP/1.1\r\nX", ":\r\n\r\n", byte,
                           is_token_char(byte) || byte == ':');
        assert_byte_in_run("GET / HTTP/1.1\r\nX:", "\r\n\r\n", byte,
                           (value >= 0x20 && value != 0x7F) || byte == '\t');
    }
}

TEST(fields_begin_with_a_name)
{
    BROKEN("GET / HTTP/1.1\r\n: a\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nX : a\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nnothing\r\n\r\n");
    BROKEN("GET / HTTP/1.1\r\nX: \x01\r\n\r\n");
}

TEST(bodies_of_known_length_are_not_judged)
{
    ENDS_IN(RAW_START, HEAD "\0\n\r:\n", 5);
    ENDS_IN(RAW_LENGTH, HEAD "\0\n\r:\n", 6);
    ENDS_IN(RAW_START, HEAD "hello" HEAD "hello", 5);
    ENDS_IN(RAW_BROKEN, HEAD "hello\n", 5);
    assert_true(feed(HEAD "hello", sizeof(HEAD "hello") - 1, 3, 9).content == 5);
}

TEST(chunks_are_judged_and_counted)
{
    static const char begun[] = HEAD "5\r\nhello\r\n3\r\nab";
    struct raw_stream stream;

    ENDS_IN(RAW_START, HEAD "5\r\nhello\r\n0\r\n\r\n", FRAMING_CHUNKED);
    ENDS_IN(RAW_START, HEAD "5\r\nhello\r\n0\r\n\r\n" HEAD "0\r\n\r\n", FRAMING_CHUNKED);
    ENDS_IN(RAW_BROKEN, HEAD "5\r\nhello\n0\r\n\r\n", FRAMING_CHUNKED);
    ENDS_IN(RAW_BROKEN, HEAD "5;\r\nhello\r\n0\r\n\r\n", FRAMING_CHUNKED);
    ENDS_IN(RAW_BROKEN, HEAD "5\r\nhello\r\n0\r\n\n", FRAMING_CHUNKED);
    for (size_t step = 1; step < sizeof(begun); step++) {
        stream = feed(begun, sizeof(begun) - 1, step, FRAMING_CHUNKED);
        assert_true(raw_stream_is_in_chunk(&stream));
        assert_true(stream.content == 7 && stream.chunks.left == 1);
        raw_stream_take(&stream, "c", 1);
        assert_false(raw_stream_is_in_chunk(&stream));
    }
}

TEST(broken_chunks_say_why_and_broken_headers_do_not)
{
    struct raw_stream stream = feed(HEAD "5;\r\n", sizeof(HEAD "5;\r\n") - 1, 4, FRAMING_CHUNKED);

    assert_non_null(stream.chunks.why);
    stream = feed("\n" HEAD, sizeof(HEAD), 4, 0);
    assert_int_equal(stream.state, RAW_BROKEN);
    assert_null(stream.chunks.why);
}
