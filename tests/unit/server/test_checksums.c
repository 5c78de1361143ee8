/* The checksums of S3: names, base64, and values that are computed side by side. */
#include "tests.h"

#include "http/fields/checksums.h"

/* Of "123456789": the published check values of the CRCs, and what Python's hashlib gives. */
static const char *const values[CHECKSUMS] = {
    [CHECKSUM_CRC32] = "y/Q5Jg==",
    [CHECKSUM_CRC32C] = "4waSgw==",
    [CHECKSUM_CRC64NVME] = "rosUhgp5mIg=",
    [CHECKSUM_SHA1] = "98O8HYCOBHMq32eZZczDTKeuNEE=",
    [CHECKSUM_SHA256] = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
    [CHECKSUM_MD5] = "JfnnlDI7RTiF9RgfG2JNCw==",
};

TEST(checksums_are_computed_side_by_side_in_pieces)
{
    struct checksums checksums = {.hashers = {NULL}};
    char text[CHECKSUM_TEXT_SIZE];

    for (enum checksum i = 0; i < CHECKSUMS; i++)
        assert_true(checksums_add(&checksums, i) && checksums_add(&checksums, i));
    checksums_update(&checksums, "1234", 4);
    checksums_update(&checksums, "", 0);
    checksums_update(&checksums, "56789", 5);
    for (enum checksum i = 0; i < CHECKSUMS; i++) {
        const struct zt_digest value = checksums_finish(&checksums, i);
        struct zt_digest read;

        checksum_write(&value, text);
        assert_string_equal(text, values[i]);
        assert_true(checksum_read(i, zt_text_from(values[i]), &read));
        assert_true(zt_digest_equal(&read, &value));
    }
    checksums_free(&checksums);
    checksums_free(&checksums);
}

TEST(a_checksum_is_found_by_its_names)
{
    for (enum checksum i = 0; i < CHECKSUMS; i++) {
        enum checksum found = CHECKSUMS;

        assert_true(checksum_find_field(zt_text_from(checksum_field(i)), &found));
        assert_int_equal(found, i);
        assert_int_equal(checksum_find_name(zt_text_from(checksum_name(i)), &found),
                         i != CHECKSUM_MD5);
        assert_int_equal(checksum_element(i) != NULL, i != CHECKSUM_MD5);
    }
}

TEST(a_value_of_another_length_or_alphabet_is_refused)
{
    static const char *const wrong[] = {
        "", "y/Q5Jg", "y/Q5Jg=", "y/Q5JgA=", "y_Q5Jg==", "y/Q5Jg== ", "y/Q5Jg===", "=y/Q5Jg="};
    struct zt_digest value;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_false(checksum_read(CHECKSUM_CRC32, zt_text_from(wrong[i]), &value));
}
