/* Content negotiation (RFC 9110 sections 12.4.2, 12.5.1 and 12.5.3), as pure functions over the
 * text of the fields. */
#ifndef HTTP_FIELDS_NEGOTIATE_H
#define HTTP_FIELDS_NEGOTIATE_H

#include <stdbool.h>

enum coding { CODING_IDENTITY, CODING_ZSTD, CODING_GZIP, CODING_NONE };

/* Returns the best of the offered codings for an Accept-Encoding field (if it is NULL: identity).
 * The highest weight wins; among equal weights, the coding offered first. Returns CODING_NONE,
 * which must not be offered, if the client accepts none of them (406). x-gzip means gzip; malformed
 * members are skipped. */
enum coding negotiate_coding(const char *accept_encoding, const enum coding *offered,
                             unsigned count);

/* Returns "zstd" or "gzip"; NULL for identity. */
const char *coding_name(enum coding coding);

/* Returns the weight in thousandths that an Accept field gives to a media type
 * ("application/x-npy"); the most specific matching range counts. Returns 1000 if the field is
 * absent (NULL). explicit_only: ranges with a star do not count. */
unsigned negotiate_media_type(const char *accept, const char *media_type, bool explicit_only);

#endif
