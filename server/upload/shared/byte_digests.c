/* A piece is given to each of the hashers while it is in the processor's cache. */
#include "upload/shared/byte_digests.h"

#include <string.h>

enum { SHA256, SHA512, XXH3 };

bool byte_digests_init(struct byte_digests *digests, bool with_sha512, bool with_xxh3)
{
    return zt_hasher_new(ZT_DIGEST_SHA256, &digests->hashers[SHA256]) == ZT_OK &&
           (!with_sha512 || zt_hasher_new(ZT_DIGEST_SHA512, &digests->hashers[SHA512]) == ZT_OK) &&
           (!with_xxh3 || zt_hasher_new(ZT_DIGEST_XXH3, &digests->hashers[XXH3]) == ZT_OK);
}

void byte_digests_update(struct byte_digests *digests, const void *bytes, size_t length)
{
    for (int i = SHA256; i <= XXH3; i++)
        if (digests->hashers[i] != NULL)
            zt_hasher_update(digests->hashers[i], bytes, length);
}

void byte_digests_finish(struct byte_digests *digests)
{
    struct zt_digest *const values[] = {&digests->sha256, &digests->sha512, &digests->xxh3};

    for (int i = SHA256; i <= XXH3; i++)
        if (digests->hashers[i] != NULL)
            zt_hasher_finish(digests->hashers[i], values[i]);
}

void byte_digests_free(struct byte_digests *digests)
{
    for (int i = SHA256; i <= XXH3; i++) {
        zt_hasher_free(digests->hashers[i]);
        digests->hashers[i] = NULL;
    }
}

bool byte_digests_agree(const struct byte_digests *digests, const struct digest_field *field)
{
    return (!field->has_sha256 ||
            memcmp(field->sha256, digests->sha256.bytes, sizeof(field->sha256)) == 0) &&
           (!field->has_sha512 ||
            memcmp(field->sha512, digests->sha512.bytes, sizeof(field->sha512)) == 0);
}
