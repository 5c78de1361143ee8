/* Content negotiation (RFC 9110 sections 12.4.2, 12.5.1 and 12.5.3), as pure functions over the
 * text of the fields. */
#ifndef HTTP_FIELDS_NEGOTIATE_H
#define HTTP_FIELDS_NEGOTIATE_H

#include <stdbool.h>

enum coding { CODING_IDENTITY, CODING_ZSTD, CODING_GZIP, CODING_NONE };

/* The best of the offered codings for an Accept-Encoding field (NULL if absent: identity): the one
 * with the highest weight or, among equal weights, the one offered first. CODING_NONE if the client
 * accepts none of them (406); it must not be offered. x-gzip is gzip; malformed members are
 * skipped. */
enum coding negotiate_coding(const char *accept_encoding, const enum coding *offered,
                             unsigned count);

/* "zstd", "gzip"; NULL for identity. */
const char *coding_name(enum coding coding);

/* The weight in thousandths that an Accept field gives a media type ("application/x-npy"), by the
 * most specific media range that matches it; 1000 if the field is absent (NULL). explicit_only:
 * ranges with a star do not count. */
unsigned negotiate_media_type(const char *accept, const char *media_type, bool explicit_only);

#endif
