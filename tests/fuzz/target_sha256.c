/* SHA-256 by the processor's instructions agrees with OpenSSL, for two messages that are updated in
 * pieces. The first bytes of the input say where the pieces end. */
#include "fuzz.h"

#include <string.h>

#include <openssl/evp.h>

#include "zt/digest.h"

#define SPLITS 4u

struct message {
    struct zt_hasher *hasher;
    const uint8_t *bytes;
    size_t length;
    size_t done;
};

static struct message begin(const uint8_t *bytes, size_t length)
{
    struct message message = {.bytes = bytes, .length = length};

    FUZZ_ASSERT(zt_hasher_new(ZT_DIGEST_SHA256, &message.hasher) == ZT_OK);
    return message;
}

/* At most wanted bytes of those that are left. */
static size_t take(const struct message *message, size_t wanted)
{
    const size_t left = message->length - message->done;

    return wanted < left ? wanted : left;
}

static void advance(struct message *first, struct message *second, size_t first_wanted,
                    size_t second_wanted)
{
    const size_t first_part = take(first, first_wanted);
    const size_t second_part = take(second, second_wanted);

    zt_hasher_update_pair(first->hasher, first->bytes + first->done, first_part, second->hasher,
                          second->bytes + second->done, second_part);
    first->done += first_part;
    second->done += second_part;
}

static void end(struct message *message)
{
    struct zt_digest digest;
    uint8_t expected[EVP_MAX_MD_SIZE];

    zt_hasher_update(message->hasher, message->bytes + message->done,
                     message->length - message->done);
    zt_hasher_finish(message->hasher, &digest);
    zt_hasher_free(message->hasher);
    FUZZ_ASSERT(EVP_Digest(message->bytes, message->length, expected, NULL, EVP_sha256(), NULL) ==
                1);
    FUZZ_ASSERT(memcmp(digest.bytes, expected, 32) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct message first;
    struct message second;

    if (length < 2 * SPLITS + 1)
        return 0;
    first = begin(bytes + 2 * SPLITS, length - 2 * SPLITS);
    second = begin(first.bytes + 1, (first.length - 1) / 2);
    for (size_t i = 0; i < SPLITS; i++)
        advance(&first, &second, bytes[2 * i], bytes[2 * i + 1]);
    end(&first);
    end(&second);
    return 0;
}
