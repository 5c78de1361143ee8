/* SHA-256 by the processor's instructions agrees with OpenSSL, for one message and two at once. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "zt/digest.h"

/* Some lengths around the borders of the first, second and third block, and of the padding. */
#define LENGTH_MAX 200u
/* Where messages may begin: not only at addresses that suit the processor. */
#define OFFSETS 3u

static uint8_t message[LENGTH_MAX + OFFSETS];

static void fill_message(void)
{
    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (uint8_t)(i * 151 + (i >> 3));
}

static struct zt_hasher *begin(void)
{
    struct zt_hasher *hasher = NULL;

    assert_ok(zt_hasher_new(ZT_DIGEST_SHA256, &hasher));
    return hasher;
}

/* Finishes and frees the hasher, whose message must have been these bytes. */
static void assert_sha256(struct zt_hasher *hasher, const uint8_t *bytes, size_t length)
{
    struct zt_digest digest;
    uint8_t expected[EVP_MAX_MD_SIZE];
    unsigned expected_length = 0;

    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    assert_int_equal(EVP_Digest(bytes, length, expected, &expected_length, EVP_sha256(), NULL), 1);
    assert_int_equal(digest.length_bytes, expected_length);
    assert_memory_equal(digest.bytes, expected, expected_length);
}

TEST(every_length_and_every_split_has_the_digest_that_openssl_gives)
{
    fill_message();
    for (size_t length = 0; length <= LENGTH_MAX; length++) {
        for (size_t split = 0; split <= length; split++) {
            const uint8_t *bytes = message + length % OFFSETS;
            struct zt_hasher *hasher = begin();

            zt_hasher_update(hasher, bytes, split);
            zt_hasher_update(hasher, bytes + split, length - split);
            assert_sha256(hasher, bytes, length);
        }
    }
}

TEST(two_messages_at_once_have_the_digests_that_openssl_gives)
{
    fill_message();
    for (size_t length = 0; length <= LENGTH_MAX; length++) {
        for (size_t other = 0; other <= LENGTH_MAX; other += 3) {
            struct zt_hasher *first = begin();
            struct zt_hasher *second = begin();

            zt_hasher_update_pair(first, message, length, second, message + 1, other);
            assert_sha256(first, message, length);
            assert_sha256(second, message + 1, other);
        }
    }
}

/* In the queue of hashes one message goes on while the other begins anew. */
TEST(a_pair_goes_on_from_different_places_of_a_block)
{
    fill_message();
    for (size_t first_begun = 0; first_begun <= 64; first_begun++) {
        for (size_t second_begun = 0; second_begun <= 64; second_begun += 7) {
            struct zt_hasher *first = begin();
            struct zt_hasher *second = begin();

            zt_hasher_update(first, message, first_begun);
            zt_hasher_update(second, message, second_begun);
            zt_hasher_update_pair(first, message + first_begun, LENGTH_MAX - first_begun, second,
                                  message + second_begun, LENGTH_MAX - second_begun);
            assert_sha256(first, message, LENGTH_MAX);
            assert_sha256(second, message, LENGTH_MAX);
        }
    }
}

TEST(a_pair_of_the_same_bytes_has_one_digest)
{
    struct zt_hasher *first = begin();
    struct zt_hasher *second = begin();

    fill_message();
    zt_hasher_update_pair(first, message, LENGTH_MAX, second, message, LENGTH_MAX);
    assert_sha256(first, message, LENGTH_MAX);
    assert_sha256(second, message, LENGTH_MAX);
}

TEST(a_pair_may_be_of_different_algorithms)
{
    struct zt_hasher *sha = begin();
    struct zt_hasher *crc = NULL;
    struct zt_digest digest;

    fill_message();
    assert_ok(zt_hasher_new(ZT_DIGEST_CRC32C, &crc));
    zt_hasher_update_pair(crc, "123456789", 9, sha, message, LENGTH_MAX);
    zt_hasher_finish(crc, &digest);
    zt_hasher_free(crc);
    assert_memory_equal(digest.bytes, "\xE3\x06\x92\x83", 4);
    assert_sha256(sha, message, LENGTH_MAX);
}

/* The length in bits takes more than 32 bits, and the message is read in many pieces. */
TEST(a_message_of_more_than_512_MiB_is_counted_in_64_bits)
{
    const size_t piece = (size_t)16 << 20;
    const size_t pieces = 33;
    uint8_t *zeros = calloc(1, piece);
    struct zt_hasher *first = begin();
    struct zt_hasher *second = begin();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t expected[EVP_MAX_MD_SIZE];
    struct zt_digest digests[2];

    assert_non_null(zeros);
    assert_int_equal(EVP_DigestInit_ex(context, EVP_sha256(), NULL), 1);
    for (size_t i = 0; i < pieces; i++) {
        zt_hasher_update_pair(first, zeros, piece, second, zeros, piece);
        assert_int_equal(EVP_DigestUpdate(context, zeros, piece), 1);
    }
    assert_int_equal(EVP_DigestFinal_ex(context, expected, NULL), 1);
    zt_hasher_finish(first, &digests[0]);
    zt_hasher_finish(second, &digests[1]);
    assert_memory_equal(digests[0].bytes, expected, 32);
    assert_memory_equal(digests[1].bytes, expected, 32);
    EVP_MD_CTX_free(context);
    zt_hasher_free(first);
    zt_hasher_free(second);
    free(zeros);
}
