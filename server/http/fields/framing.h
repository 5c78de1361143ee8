/* Whether a request's header leaves no doubt about where the request ends (RFC 9112 sections 5, 6
 * and 11.2).
 *
 * The HTTP library accepts header fields that it and a proxy in front of it may read differently.
 * Everything of that kind is refused here, and the connection closed. */
#ifndef HTTP_FIELDS_FRAMING_H
#define HTTP_FIELDS_FRAMING_H

#include "http/exchange/request_state.h"

enum framing_verdict {
    FRAMING_SOUND,
    FRAMING_BROKEN,     /* 400, and the connection must be closed */
    FRAMING_EXPECTATION /* 417: an Expect other than 100-continue */
};

struct framing {
    enum framing_verdict verdict;
    const char *why;      /* for a person; static */
    uint64_t body_length; /* UINT64_MAX: chunked */
};

/* http_1_0: the request is of that version, not of a later one. */
void framing_check(const struct header_field *fields, unsigned count, bool http_1_0,
                   struct framing *out_framing);

#endif
