/* Little-endian numbers at any address, as the containers hold them. */
#ifndef ZT_FORMATS_LITTLE_ENDIAN_H
#define ZT_FORMATS_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint16_t load_le16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t load_le32(const uint8_t *bytes)
{
    return (uint32_t)load_le16(bytes) | (uint32_t)load_le16(bytes + 2) << 16;
}

static inline uint64_t load_le64(const uint8_t *bytes)
{
    return (uint64_t)load_le32(bytes) | (uint64_t)load_le32(bytes + 4) << 32;
}

#endif
