/* multipart/byteranges (RFC 9110 section 14.6): several ranges of a representation in one body. */
#ifndef HTTP_EXCHANGE_MULTIPART_H
#define HTTP_EXCHANGE_MULTIPART_H

#include "http/exchange/request.h"
#include "http/fields/ranges.h"

struct multipart {
    const char *media_type; /* including the boundary */
    struct segment *segments;
    size_t segment_count;
    uint64_t length;
};

/* Makes the parts in the order of the set. Each has its Content-Range, and the Content-Type and
 * Content-Encoding of the whole, since the framing around the parts is not encoded. Bytes are
 * referenced and not copied: each range needs one segment for its head, and one per segment that it
 * touches. The result is valid as long as the request. Returns false if out of memory. */
bool multipart_make(struct request *request, const struct range_set *set,
                    struct multipart *out_multipart);

#endif
