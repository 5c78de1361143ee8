/* A short JSON text as a body: gathered from pieces, within its bound. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "upload/writer/json_body.h"

static void pieces_make_one_text(void **state)
{
    struct json_body body = {.bytes = NULL};
    struct zt_text text;

    (void)state;
    assert_int_equal(json_body_text(&body).length, 0);
    json_body_receive(&body, "{\"a\"", 4);
    json_body_receive(&body, "", 0);
    json_body_receive(&body, ": 1}", 4);
    text = json_body_text(&body);
    assert_true(zt_text_is(text, "{\"a\": 1}"));
    json_body_free(&body);
}

static void text_of_the_greatest_length_is_kept_and_one_byte_more_is_not(void **state)
{
    struct json_body body = {.bytes = NULL};
    char *piece = malloc(JSON_BODY_MAX);

    (void)state;
    assert_non_null(piece);
    memset(piece, 'x', JSON_BODY_MAX);
    json_body_receive(&body, piece, JSON_BODY_MAX - 1);
    json_body_receive(&body, piece, 1);
    assert_false(body.too_long);
    assert_int_equal(json_body_text(&body).length, JSON_BODY_MAX);
    json_body_receive(&body, piece, 1);
    assert_true(body.too_long);
    json_body_receive(&body, piece, 1);
    assert_int_equal(body.length, JSON_BODY_MAX);
    assert_false(body.failed);
    free(piece);
    json_body_free(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_make_one_text),
        cmocka_unit_test(text_of_the_greatest_length_is_kept_and_one_byte_more_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
