#include "hub/write/lfs_names.h"

#include <stddef.h>
#include <stdio.h>

bool lfs_is_sha256(struct zt_text algorithm)
{
    return zt_text_is(algorithm, "sha256") || zt_text_is(algorithm, "sha_256");
}

static unsigned digit_of(char byte)
{
    if (byte >= '0' && byte <= '9')
        return (unsigned)(byte - '0');
    return byte >= 'a' && byte <= 'f' ? (unsigned)(byte - 'a') + 10 : 16;
}

bool lfs_hex_parse(struct zt_text hex, uint8_t *out_bytes)
{
    if (hex.length % 2 != 0)
        return false;
    for (size_t i = 0; i < hex.length / 2; i++) {
        const unsigned high = digit_of(hex.bytes[2 * i]);
        const unsigned low = digit_of(hex.bytes[2 * i + 1]);

        if (high > 15 || low > 15)
            return false;
        out_bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool lfs_oid_parse(struct zt_text text, uint8_t out_sha256[32])
{
    return text.length == LFS_OID_SIZE - 1 && lfs_hex_parse(text, out_sha256);
}

void lfs_oid_print(const uint8_t sha256[32], char out_oid[LFS_OID_SIZE])
{
    for (size_t i = 0; i < 32; i++)
        snprintf(out_oid + 2 * i, 3, "%02x", sha256[i]);
}
