/* The digests of one run of bytes that requests and manifests ask for, computed side by side. */
#ifndef UPLOAD_SHARED_BYTE_DIGESTS_H
#define UPLOAD_SHARED_BYTE_DIGESTS_H

#include "http/fields/digest_fields.h"
#include "zt/digest.h"

/* The values are there after byte_digests_finish. */
struct byte_digests {
    struct zt_hasher *hashers[3];
    struct zt_digest sha256;
    struct zt_digest sha512;
    struct zt_digest xxh3;
};

/* Of a cleared structure; SHA-256 always. False when memory is out; byte_digests_free is due in any
 * case. */
bool byte_digests_init(struct byte_digests *digests, bool with_sha512, bool with_xxh3);
void byte_digests_update(struct byte_digests *digests, const void *bytes, size_t length);
void byte_digests_finish(struct byte_digests *digests);
/* Of a cleared structure, too. */
void byte_digests_free(struct byte_digests *digests);

/* Whether what a field states is right; it was computed with SHA-512 where the field states one. */
bool byte_digests_agree(const struct byte_digests *digests, const struct digest_field *field);

#endif
