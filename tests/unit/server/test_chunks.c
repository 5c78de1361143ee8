/* Chunked bodies: where they end, what is data, and everything that is refused. */
#include "tests.h"

#include "http/fields/chunks.h"

#define DATA_MOST 256

struct result {
    struct chunks chunks;
    size_t taken; /* of the text */
    char data[DATA_MOST];
    size_t data_length;
};

/* At most step bytes at a time, and never more than are sure to belong to the body. */
static struct result decode_in_steps(const char *text, size_t length, size_t step)
{
    struct result result = {.taken = 0};
    struct chunks *chunks = &result.chunks;

    chunks_begin(chunks);
    while (result.taken < length && chunks_least(chunks) > 0) {
        const uint64_t sure = chunks_least(chunks);
        size_t more = length - result.taken < step ? length - result.taken : step;

        if (more > sure)
            more = (size_t)sure;
        while (more > 0) {
            const char *at = text + result.taken;
            size_t used;

            if (chunks->state != CHUNKS_DATA) {
                used = chunks_take(chunks, at, more);
            } else {
                used = chunks->left < more ? (size_t)chunks->left : more;
                assert_true(result.data_length + used <= DATA_MOST);
                memcpy(result.data + result.data_length, at, used);
                result.data_length += used;
                chunks_take_data(chunks, used);
            }
            result.taken += used;
            more -= used;
            if (chunks->state >= CHUNKS_OVER) {
                /* Of a sound body nothing was read in vain. */
                assert_true(more == 0 || chunks->state != CHUNKS_OVER);
                break;
            }
        }
    }
    return result;
}

static void assert_decodes(const char *text, const char *data)
{
    const size_t length = strlen(text);
    char longer[1024];

    assert_true(length + 100 < sizeof(longer));
    memset(longer, '0', sizeof(longer));
    memcpy(longer, text, length);
    for (size_t step = 1; step < length + 10; step++) {
        const struct result result = decode_in_steps(longer, sizeof(longer), step);

        assert_int_equal(result.chunks.state, CHUNKS_OVER);
        assert_int_equal(result.taken, length);
        assert_int_equal(result.data_length, strlen(data));
        assert_memory_equal(result.data, data, strlen(data));
        assert_null(result.chunks.why);
    }
}

#define REFUSED(text) assert_refused(text, sizeof(text) - 1, CHUNKS_MALFORMED)

static void assert_refused(const char *text, size_t length, enum chunks_state state)
{
    for (size_t step = 1; step < length + 2; step++) {
        const struct result result = decode_in_steps(text, length, step);

        assert_int_equal(result.chunks.state, state);
        assert_non_null(result.chunks.why);
        assert_true(chunks_least(&result.chunks) == 0);
    }
}

TEST(sound_bodies_end_where_they_should)
{
    assert_decodes("0\r\n\r\n", "");
    assert_decodes("5\r\nhello\r\n0\r\n\r\n", "hello");
    assert_decodes("1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n000\r\n\r\n", "abcdef");
    assert_decodes("0000000000001\r\na\r\n0000000000001\r\nb\r\n0\r\n\r\n", "ab");
    assert_decodes("A\r\n0123456789\r\n0\r\n\r\n", "0123456789");
    assert_decodes("00000000000a\r\n0\r\n\r\n567\r\n\r\n0\r\n\r\n", "0\r\n\r\n567\r\n");
}

TEST(extensions_and_trailers_are_dropped)
{
    assert_decodes("5;a=b;c=\"d;e\"\r\nhello\r\n0;last\r\n\r\n", "hello");
    assert_decodes("5;a;b=c;d=\"\\\"\\\\ \t;=\"\r\nhello\r\n0;a=\"\"\r\n\r\n", "hello");
    assert_decodes("5\r\nhello\r\n0\r\nX: y\r\n\r\n", "hello");
    assert_decodes("0\r\nX:\r\nContent-Length: 5\r\nZ:\t z \r\n\r\n", "");
}

TEST(sizes_must_be_numbers)
{
    REFUSED("\r\n");
    REFUSED("g\r\n");
    REFUSED(" 5\r\nhello");
    REFUSED("\t5\r\nhello");
    REFUSED("5 \r\nhello");
    REFUSED("5 ;a=b\r\nhello");
    REFUSED("1 1\r\nhello");
    REFUSED("+5\r\nhello");
    REFUSED("-0\r\nhello");
    REFUSED("0x5\r\nhello");
    REFUSED("5_0\r\nhello");
    REFUSED("5,5\r\nhello");
    REFUSED("5.0\r\nhello");
    REFUSED("\"5\"\r\nhello");
    REFUSED("\xff"
            "5\r\nhello");
    REFUSED("5\nhello");
    REFUSED("5\rhello");
    REFUSED("5\0\r\nhello");
    REFUSED("\0"
            "5\r\nhello");
    REFUSED(";a\r\nhello");
    REFUSED("5\r\r\nhello");
    REFUSED("5\r\r;a\r\nhello");
    REFUSED("5\r\nhello\r\n\r\n");
    REFUSED("5\r\nhello\r\n;a\r\n\r\n");
    REFUSED("5\r\nhello\r\n0\n\r\n");
}

TEST(sizes_must_fit_into_a_file)
{
    struct chunks chunks;

    REFUSED("8000000000000000\r\n");
    REFUSED("10000000000000000\r\n");
    REFUSED("00000000000000005\r\nhello");
    chunks_begin(&chunks);
    assert_int_equal(chunks_take(&chunks, "7fffffffffffffff\r\n", 18), 18);
    assert_int_equal(chunks.state, CHUNKS_DATA);
    assert_true(chunks_least(&chunks) == (uint64_t)INT64_MAX + 7);
}

TEST(chunks_must_end_with_their_line)
{
    REFUSED("5\r\nhelloX");
    REFUSED("5\r\nhello\n0\r\n\r\n");
    REFUSED("5\r\nhello\rX");
    REFUSED("5\r\nhello0\r\n\r\n");
    REFUSED("5\r\nhello\r\n\r\n0\r\n\r\n");
}

TEST(extensions_are_text_and_bounded)
{
    char text[32 << 10];

    REFUSED("5;a\nhello");
    REFUSED("5;a\rhello");
    REFUSED("5;a\0b\r\nhello");
    REFUSED("5;a\0\nhello");
    REFUSED("5;a\r\r\nhello");
    REFUSED("5;a\x01\r\nhello");
    REFUSED("5;\r\nhello");
    REFUSED("5;=b\r\nhello");
    REFUSED("5;;a\r\nhello");
    REFUSED("5;a=b;\r\nhello");
    REFUSED("5;a=b@c\r\nhello");
    REFUSED("5;a@b=c\r\nhello");
    REFUSED("5;a=\"\0\"\r\nhello");
    REFUSED("5;a=\"\r\"\r\nhello");
    REFUSED("5\r\nhello\r\n0;\r\n\r\n");
    REFUSED("5\r\nhello\r\n0;a\0\r\n\r\n");
    REFUSED("5;a;\r\nhello");
    REFUSED("5;a=\r\nhello");
    REFUSED("5; a\r\nhello");
    REFUSED("5;a b\r\nhello");
    REFUSED("5;[a]=b\r\nhello");
    REFUSED("5;a=b=c\r\nhello");
    REFUSED("5;a=\"b\"c\r\nhello");
    REFUSED("5;a=\"b\r\nhello");
    REFUSED("5;a=\"b\\\r\nhello");
    REFUSED("5;\x7f\r\nhello");
    memset(text, 'x', sizeof(text));
    memcpy(text, "5;", 2);
    assert_int_equal(decode_in_steps(text, sizeof(text), 100).chunks.state, CHUNKS_MALFORMED);
    assert_true(decode_in_steps(text, sizeof(text), 100).taken < 600);
    for (size_t at = 0; at + 512 <= sizeof(text); at += 512) {
        memset(text + at, 'x', 512);
        memcpy(text + at, "1;", 2);
        memcpy(text + at + 507, "\r\nx\r\n", 5);
    }
    assert_int_equal(decode_in_steps(text, sizeof(text), 100).chunks.state, CHUNKS_MALFORMED);
    assert_true(decode_in_steps(text, sizeof(text), 100).taken > 16 << 10);
    assert_true(decode_in_steps(text, sizeof(text), 100).taken < 17 << 10);
}

TEST(trailers_are_fields_and_bounded)
{
    char text[16 << 10];

    REFUSED("0\r\n: x\r\n\r\n");
    REFUSED("0\r\n X: y\r\n\r\n");
    REFUSED("0\r\nX : y\r\n\r\n");
    REFUSED("0\r\nX: y\n\r\n");
    REFUSED("0\r\nX: y\r\n z\r\n\r\n");
    REFUSED("0\r\nX: a\0b\r\n\r\n");
    REFUSED("0\r\nX: y\0\n\r\n");
    REFUSED("0\r\nX: y\rz\r\n\r\n");
    REFUSED("0\r\nnothing\r\n\r\n");
    REFUSED("0\r\n\n");
    REFUSED("0\r\n\rX");
    memset(text, 'x', sizeof(text));
    memcpy(text, "0\r\nX: ", 6);
    assert_refused(text, sizeof(text) / 2 + 100, CHUNKS_TRAILERS_LONG);
}

/* Every prefix of a body needs at least as many more bytes as are sure, and one that is cut there
 * is not over. */
TEST(what_is_sure_to_follow_is_never_too_much)
{
    static const char body[] = "1;a\r\nx\r\n10\r\n0123456789abcdef\r\n0;b\r\nX: y\r\n\r\n";
    const size_t length = sizeof(body) - 1;

    for (size_t cut = 0; cut < length; cut++) {
        const struct result result = decode_in_steps(body, cut, 1);

        assert_int_equal(result.taken, cut);
        assert_true(chunks_least(&result.chunks) > 0);
        assert_true(chunks_least(&result.chunks) <= length - cut);
    }
}
