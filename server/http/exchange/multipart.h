/* multipart/byteranges (RFC 9110 section 14.6): several ranges of a representation as one body. */
#ifndef HTTP_EXCHANGE_MULTIPART_H
#define HTTP_EXCHANGE_MULTIPART_H

#include "http/exchange/request.h"
#include "http/fields/ranges.h"

struct multipart {
    const char *media_type; /* with the boundary */
    struct segment *segments;
    size_t segment_count;
    uint64_t length;
};

/* The parts in the order of the set, each with its Content-Range and with the Content-Type and
 * Content-Encoding of the whole: the framing around the parts is not encoded. Bytes of the
 * representation are referenced, not copied: for each range there is one segment with its head and
 * one for each segment that it touches. Everything lives as long as the request. False if out of
 * memory. */
bool multipart_make(struct request *request, const struct range_set *set,
                    struct multipart *out_multipart);

#endif
