/* One table of the algorithms; the values are computed by the core. */
#include "http/fields/checksums.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"

static const struct algorithm {
    const char *name;
    const char *element;
    const char *field;
    enum zt_digest_algorithm digest;
    uint8_t length_bytes;
} algorithms[CHECKSUMS] = {
    [CHECKSUM_CRC32] = {"CRC32", "ChecksumCRC32", "x-amz-checksum-crc32", ZT_DIGEST_CRC32, 4},
    [CHECKSUM_CRC32C] = {"CRC32C", "ChecksumCRC32C", "x-amz-checksum-crc32c", ZT_DIGEST_CRC32C, 4},
    [CHECKSUM_CRC64NVME] = {"CRC64NVME", "ChecksumCRC64NVME", "x-amz-checksum-crc64nvme",
                            ZT_DIGEST_CRC64, 8},
    [CHECKSUM_SHA1] = {"SHA1", "ChecksumSHA1", "x-amz-checksum-sha1", ZT_DIGEST_SHA1, 20},
    [CHECKSUM_SHA256] = {"SHA256", "ChecksumSHA256", "x-amz-checksum-sha256", ZT_DIGEST_SHA256, 32},
    [CHECKSUM_MD5] = {"MD5", NULL, "content-md5", ZT_DIGEST_MD5, 16},
};

static const struct algorithm *algorithm_of(enum checksum checksum)
{
    assert(checksum < CHECKSUMS);
    return &algorithms[checksum];
}

const char *checksum_name(enum checksum checksum)
{
    return algorithm_of(checksum)->name;
}

const char *checksum_element(enum checksum checksum)
{
    return algorithm_of(checksum)->element;
}

const char *checksum_field(enum checksum checksum)
{
    return algorithm_of(checksum)->field;
}

bool checksum_find_name(struct zt_text name, enum checksum *out_checksum)
{
    for (enum checksum i = 0; i < CHECKSUM_MD5; i++)
        if (name.length == strlen(algorithms[i].name) &&
            strncasecmp(name.bytes, algorithms[i].name, name.length) == 0) {
            *out_checksum = i;
            return true;
        }
    return false;
}

bool checksum_find_field(struct zt_text field, enum checksum *out_checksum)
{
    for (enum checksum i = 0; i < CHECKSUMS; i++)
        if (zt_text_is(field, algorithms[i].field)) {
            *out_checksum = i;
            return true;
        }
    return false;
}

bool checksum_read(enum checksum checksum, struct zt_text base64, struct zt_digest *out_value)
{
    const struct algorithm *algorithm = algorithm_of(checksum);
    struct zt_digest value = {.algorithm = algorithm->digest,
                              .length_bytes = algorithm->length_bytes};
    const size_t padding = (3 - value.length_bytes % 3) % 3;
    size_t length;

    assert(value.length_bytes > 0 && padding < 3);
    if (base64.length != ZT_BASE64_SIZE(value.length_bytes) - 1u)
        return false;
    for (size_t i = 1; i <= padding; i++)
        if (base64.bytes[base64.length - i] != '=')
            return false;
    base64.length -= padding;
    if (!zt_base64_read(base64, ZT_BASE64, value.bytes, value.length_bytes, &length) ||
        length != value.length_bytes)
        return false;
    *out_value = value;
    return true;
}

void checksum_write(const struct zt_digest *value, char out_text[CHECKSUM_TEXT_SIZE])
{
    assert(ZT_BASE64_SIZE(value->length_bytes) <= CHECKSUM_TEXT_SIZE);
    zt_base64_write(out_text, value->bytes, value->length_bytes, ZT_BASE64);
}

/* --- computing --- */

bool checksums_add(struct checksums *checksums, enum checksum checksum)
{
    const struct algorithm *algorithm = algorithm_of(checksum);

    return checksums->hashers[checksum] != NULL ||
           zt_hasher_new(algorithm->digest, &checksums->hashers[checksum]) == ZT_OK;
}

void checksums_update(struct checksums *checksums, const void *bytes, size_t length)
{
    for (enum checksum i = 0; i < CHECKSUMS; i++)
        if (checksums->hashers[i] != NULL)
            zt_hasher_update(checksums->hashers[i], bytes, length);
}

struct zt_digest checksums_finish(struct checksums *checksums, enum checksum checksum)
{
    struct zt_digest value;

    assert(checksums->hashers[checksum] != NULL);
    zt_hasher_finish(checksums->hashers[checksum], &value);
    assert(value.length_bytes == algorithm_of(checksum)->length_bytes);
    return value;
}

void checksums_free(struct checksums *checksums)
{
    for (enum checksum i = 0; i < CHECKSUMS; i++) {
        zt_hasher_free(checksums->hashers[i]);
        checksums->hashers[i] = NULL;
    }
}
