/* Parses the two time formats of a service into whole seconds since 1970. */
#ifndef STORE_S3_OBJECT_TIME_H
#define STORE_S3_OBJECT_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/text.h"

/* Parses a header's time: "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 section 5.6.7). */
bool object_time_of_header(const char *text, int64_t *out_s);

/* Parses a list's time: "1994-11-06T08:49:37.123Z" (RFC 3339, always UTC). Fractions are dropped,
 * because headers have none: otherwise the same file would differ between a list and a HEAD. */
bool object_time_of_list(struct zt_text text, int64_t *out_s);

#endif
