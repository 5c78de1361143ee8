/* Authorization: Bearer (RFC 9110 section 11.6.2, RFC 6750 section 2.1). */
#ifndef HTTP_FIELDS_AUTHORIZATION_H
#define HTTP_FIELDS_AUTHORIZATION_H

#include "http/fields/header_field.h"
#include "zt/text.h"

enum authorization {
    AUTHORIZATION_ABSENT,
    AUTHORIZATION_OTHER,     /* another scheme */
    AUTHORIZATION_MALFORMED, /* repeated, or Bearer with anything but one token after it */
    AUTHORIZATION_BEARER
};

/* Finds the token of a request. The result points into the fields. */
enum authorization authorization_read(const struct header_field *fields, unsigned count,
                                      struct zt_text *out_token);

#endif
