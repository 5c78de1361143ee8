/* The checksums of S3: the names of their algorithms and fields, their values, which are base64,
 * and computing several of them side by side. */
#ifndef HTTP_FIELDS_CHECKSUMS_H
#define HTTP_FIELDS_CHECKSUMS_H

#include "zt/digest.h"

enum checksum {
    CHECKSUM_CRC32,
    CHECKSUM_CRC32C,
    CHECKSUM_CRC64NVME,
    CHECKSUM_SHA1,
    CHECKSUM_SHA256,
    CHECKSUM_MD5, /* in Content-MD5 only */
    CHECKSUMS
};

/* The base64 of the longest value, and NUL. */
#define CHECKSUM_TEXT_SIZE 45

/* The name of the algorithm, as in x-amz-checksum-algorithm ("CRC32"), and the element in which XML
 * has its values ("ChecksumCRC32"; NULL for MD5). */
const char *checksum_name(enum checksum checksum);
const char *checksum_element(enum checksum checksum);
/* The field of requests, trailers and responses, in lower case ("x-amz-checksum-crc32"). */
const char *checksum_field(enum checksum checksum);

/* Find an algorithm by its name in any case, never MD5; by a field's name in lower case. Return
 * false if it is unknown. */
bool checksum_find_name(struct zt_text name, enum checksum *out_checksum);
bool checksum_find_field(struct zt_text field, enum checksum *out_checksum);

/* Reads a value. Returns false if it is not base64 of the right length. */
bool checksum_read(enum checksum checksum, struct zt_text base64, struct zt_digest *out_value);
void checksum_write(const struct zt_digest *value, char out_text[CHECKSUM_TEXT_SIZE]);

/* --- computing --- */

/* Zeroed: computes none. */
struct checksums {
    struct zt_hasher *hashers[CHECKSUMS];
};

/* Adds an algorithm, before the first byte. Does nothing if it was added before. Returns false if
 * out of memory. */
bool checksums_add(struct checksums *checksums, enum checksum checksum);
void checksums_update(struct checksums *checksums, const void *bytes, size_t length);
/* Returns the value of an algorithm that was added. Called once for each, after the last byte. */
struct zt_digest checksums_finish(struct checksums *checksums, enum checksum checksum);
/* May be called twice. */
void checksums_free(struct checksums *checksums);

#endif
