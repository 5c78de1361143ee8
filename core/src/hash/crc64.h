/* CRC-64/NVME, the checksum that clients of S3 state for uploads: reflected, of the polynomial
 * 0xAD93D23594C93659, inverted before and after. */
#ifndef ZT_HASH_CRC64_H
#define ZT_HASH_CRC64_H

#include <stddef.h>
#include <stdint.h>

/* Continues a CRC: crc is the CRC of the preceding bytes, 0 if there are none. */
uint64_t zt_crc64_nvme(uint64_t crc, const void *bytes, size_t length);
/* The same without special instructions, for processors that lack them. */
uint64_t zt_crc64_nvme_portable(uint64_t crc, const void *bytes, size_t length);

#endif
