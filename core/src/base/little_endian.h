/* Loading and storing little-endian numbers at any address. Compilers turn each function into one
 * load or store. */
#ifndef ZT_BASE_LITTLE_ENDIAN_H
#define ZT_BASE_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint16_t zt_load_le16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t zt_load_le32(const uint8_t *bytes)
{
    return (uint32_t)zt_load_le16(bytes) | (uint32_t)zt_load_le16(bytes + 2) << 16;
}

static inline uint64_t zt_load_le64(const uint8_t *bytes)
{
    return (uint64_t)zt_load_le32(bytes) | (uint64_t)zt_load_le32(bytes + 4) << 32;
}

static inline void zt_store_le16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static inline void zt_store_le32(uint8_t *bytes, uint32_t value)
{
    zt_store_le16(bytes, (uint16_t)value);
    zt_store_le16(bytes + 2, (uint16_t)(value >> 16));
}

static inline void zt_store_le64(uint8_t *bytes, uint64_t value)
{
    zt_store_le32(bytes, (uint32_t)value);
    zt_store_le32(bytes + 4, (uint32_t)(value >> 32));
}

#endif
