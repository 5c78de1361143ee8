/* The parts of a multipart upload that were acknowledged, by number, and the plan for joining them:
 * pure. The caller guards a table with a lock. */
#ifndef S3_WRITE_S3API_PARTS_H
#define S3_WRITE_S3API_PARTS_H

#include <stddef.h>
#include <time.h>

#include "s3/write/s3api_placement.h"
#include "zt/text.h"

/* S3 accepts shorter parts only at the end. */
#define S3API_PART_LEAST_BYTES ((uint64_t)5 << 20)

/* Two words in hex, "-1", quotes and NUL. */
#define S3API_PART_ETAG_SIZE 40
/* The name of an algorithm, "CRC64NVME", and a digest of at most 32 bytes in base64; with NULs. */
#define S3API_ALGORITHM_SIZE 12
#define S3API_CHECKSUM_SIZE  48

/* A checksum of a part, as clients write it. algorithm is empty: none. */
struct s3api_part_checksum {
    char algorithm[S3API_ALGORITHM_SIZE];
    char value[S3API_CHECKSUM_SIZE];
};

struct s3api_part {
    uint32_t number;
    uint32_t version; /* names the file that contains it (aside); 0: it is in its place */
    uint64_t offset;  /* in the final file, if it is in its place */
    uint64_t length;
    uint64_t xxh3; /* of its bytes */
    time_t modified;
    struct s3api_part_checksum checksum;
};

/* Zeroed: empty. */
struct s3api_parts {
    struct s3api_part *parts; /* sorted by number */
    size_t count;
    size_t capacity;
    uint64_t bytes; /* total length */
};

void s3api_parts_free(struct s3api_parts *table);
/* Returns the index of the first part with this number or a greater one. */
size_t s3api_parts_seek(const struct s3api_parts *table, uint32_t number);
/* Returns a part, or NULL. Borrowed until the next change. */
const struct s3api_part *s3api_parts_find(const struct s3api_parts *table, uint32_t number);
/* Makes room for more parts, so that adding them cannot fail. Returns false if out of memory. */
bool s3api_parts_reserve(struct s3api_parts *table, size_t more);
/* Adds a part, or replaces the one with its number. There must be room. */
void s3api_parts_put(struct s3api_parts *table, const struct s3api_part *part);

/* Writes the entity tag of a part with its quotes. It follows from the bytes, so that a client that
 * sends them twice may use either answer. It is not their MD5, and does not look like one. */
void s3api_part_etag(const struct s3api_part *part, char out_etag[S3API_PART_ETAG_SIZE]);
/* Returns true if a client means this part by a tag, which may lack its quotes. */
bool s3api_part_has_etag(const struct s3api_part *part, struct zt_text etag);

/* --- joining --- */

enum s3api_join {
    S3API_JOIN_IN_PLACE, /* parts that are aside are copied to their places, which are free */
    S3API_JOIN_COPY      /* all parts are copied into a new file */
};

/* Decides how parts are joined in the order of this list: in place if each part that is in the
 * final file is where it belongs, and joining that fails would lose no part that is not listed. */
enum s3api_join s3api_parts_plan(const struct s3api_parts *table, const struct s3api_part *list,
                                 size_t count);

#endif
