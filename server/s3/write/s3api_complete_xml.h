/* The body of a request that completes a multipart upload: pure. With or without a namespace; tags
 * with quotes, as references, or bare. */
#ifndef S3_WRITE_S3API_COMPLETE_XML_H
#define S3_WRITE_S3API_COMPLETE_XML_H

#include "http/fields/checksums.h"
#include "s3/write/s3api_parts.h"
#include "zt/status.h"

/* A part that a client names. */
struct s3api_named_part {
    uint32_t number;
    char etag[72]; /* as sent; empty: none. Longer ones are cut, and equal no part's. */
    char checksums[CHECKSUM_MD5][S3API_CHECKSUM_SIZE]; /* in base64, as sent; empty: none */
};

struct s3api_named_parts {
    struct s3api_named_part *parts; /* in the client's order */
    size_t count;
    size_t capacity;
};

/* Reads a list of at least one part. Returns ZT_INVALID if it is not well formed, or is no such
 * list: a part without a number or a tag, a number that no part can have, or too many; ZT_ARGUMENT
 * if the numbers do not increase; ZT_NO_MEMORY. The caller frees the list in any case. */
enum zt_status s3api_complete_xml_read(struct zt_text document, struct s3api_named_parts *out_parts,
                                       struct zt_error *error);
void s3api_named_parts_free(struct s3api_named_parts *parts);

#endif
