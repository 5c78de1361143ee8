/* Content negotiation (RFC 9110 sections 12.4.2, 12.5.1 and 12.5.3) as pure functions over the
 * fields' texts. */
#ifndef HTTP_FIELDS_NEGOTIATE_H
#define HTTP_FIELDS_NEGOTIATE_H

#include <stdbool.h>

enum coding { CODING_IDENTITY, CODING_ZSTD, CODING_GZIP, CODING_NONE };

/* The best of the codings on offer for an Accept-Encoding field (NULL: absent, then identity): the
 * highest weight wins, and of equal weights the one that is offered first. offered is a list
 * without CODING_NONE. CODING_NONE: the client takes none of them (406). x-gzip is gzip; a member
 * that is malformed is passed over. */
enum coding negotiate_coding(const char *accept_encoding, const enum coding *offered,
                             unsigned count);

/* "zstd", "gzip"; NULL for identity. */
const char *coding_name(enum coding coding);

/* The weight in thousandths that an Accept field gives a media type ("application/x-npy"), by the
 * most specific range that matches it; 1000 for an absent field. explicit_only: ranges with a star
 * do not count. */
unsigned negotiate_media_type(const char *accept, const char *media_type, bool explicit_only);

#endif
