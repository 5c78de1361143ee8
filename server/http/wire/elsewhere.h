/* Answers whose bytes are elsewhere, before they are sent: the first of them are brought here, so
 * that a failure can still be a status, and it is decided how the rest follows. */
#ifndef HTTP_WIRE_ELSEWHERE_H
#define HTTP_WIRE_ELSEWHERE_H

#include "http/exchange/request.h"

enum elsewhere {
    /* All bytes are here and stay until the request ends: the answer's segments are such. */
    ELSEWHERE_HERE,
    ELSEWHERE_WAITS,  /* call it again when the request is resumed */
    ELSEWHERE_STREAM, /* the beginning is here; to be sent past the library (bulk.h) */
    ELSEWHERE_READ,   /* workers have to read it through the source (readahead.h) */
    ELSEWHERE_FAILED  /* elsewhere_error */
};

enum elsewhere elsewhere_bring(struct request *request);

const struct zt_error *elsewhere_error(const struct request *request);

#endif
