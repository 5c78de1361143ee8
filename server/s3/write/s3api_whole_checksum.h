/* The checksum of a file that was uploaded in parts, from the checksums of the parts: pure. S3 has
 * two types. FULL_OBJECT is the checksum of the file's bytes, which only a CRC can be without
 * reading them again. COMPOSITE is the checksum of the parts' checksums, and their number. */
#ifndef S3_WRITE_S3API_WHOLE_CHECKSUM_H
#define S3_WRITE_S3API_WHOLE_CHECKSUM_H

#include "http/fields/checksums.h"
#include "s3/write/s3api_parts.h"

/* A value in base64, '-', the number of parts, NUL. */
#define S3API_WHOLE_CHECKSUM_SIZE (CHECKSUM_TEXT_SIZE + 8)

/* Combine the checksums of parts in their order. Return false if the algorithm is no CRC, or a part
 * has no checksum of it; out of memory for the second. */
bool s3api_checksum_combine(enum checksum checksum, const struct s3api_part *list, size_t count,
                            struct zt_digest *out_value);
bool s3api_checksum_compose(enum checksum checksum, const struct s3api_part *list, size_t count,
                            char out_text[S3API_WHOLE_CHECKSUM_SIZE]);

#endif
