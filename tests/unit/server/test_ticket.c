/* Codes of tickets: those of the standard, and no other is accepted. */
#include "tests.h"

#include "base/hex.h"
#include "input/ticket.h"

/* RFC 4231, sections 4.2, 4.3 and 4.7 (a key that is longer than a block). */
TEST(code_is_that_of_the_standard)
{
    static const uint8_t first[20] = {0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
                                      0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b};
    char hex[TICKET_CODE_SIZE];
    uint8_t longest[131];
    uint8_t code[32];

    memset(longest, 0xaa, sizeof(longest));
    assert_true(hmac_sha256(longest, sizeof(longest),
                            zt_text_from("Test Using Larger Than Block-Size Key - Hash Key First"),
                            code));
    zt_hex_write(hex, code, 32);
    assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    assert_true(hmac_sha256(first, sizeof(first), zt_text_from("Hi There"), code));
    zt_hex_write(hex, code, 32);
    assert_string_equal(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_true(hmac_sha256("Jefe", 4, zt_text_from("what do ya want for nothing?"), code));
    zt_hex_write(hex, code, 32);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(only_the_code_of_the_text_is_accepted)
{
    uint8_t key[TICKET_KEY_BYTES];
    uint8_t other_key[TICKET_KEY_BYTES];
    char code[TICKET_CODE_SIZE];

    ticket_key_make(key);
    memcpy(other_key, key, sizeof(key));
    other_key[31] ^= 1;
    assert_true(ticket_sign(key, "a text", code));
    assert_true(ticket_check(key, "a text", zt_text_from(code)));
    assert_false(ticket_check(key, "a texu", zt_text_from(code)));
    assert_false(ticket_check(key, "a text ", zt_text_from(code)));
    assert_false(ticket_check(key, "", zt_text_from(code)));
    assert_false(ticket_check(other_key, "a text", zt_text_from(code)));
    assert_false(ticket_check(key, "a text", zt_text_from("")));
    assert_false(ticket_check(key, "a text", (struct zt_text){code, 63}));
    for (size_t i = 0; i < 64; i++) {
        const char digit = code[i];

        code[i] = digit == '0' ? '1' : '0';
        assert_false(ticket_check(key, "a text", zt_text_from(code)));
        code[i] = digit;
    }
    assert_true(ticket_check(key, "a text", zt_text_from(code)));
}

TEST(keys_differ)
{
    uint8_t one[TICKET_KEY_BYTES];
    uint8_t other[TICKET_KEY_BYTES];

    ticket_key_make(one);
    ticket_key_make(other);
    assert_false(secret_equal(one, other, sizeof(one)));
    assert_true(secret_equal(one, one, sizeof(one)));
    assert_true(secret_equal(one, other, 0));
}
