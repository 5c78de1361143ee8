/* The two forms in which a service writes times; whole seconds since 1970. */
#ifndef STORE_S3_OBJECT_TIME_H
#define STORE_S3_OBJECT_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/text.h"

/* Of a header: "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 section 5.6.7). */
bool object_time_of_header(const char *text, int64_t *out_s);

/* Of a list: "1994-11-06T08:49:37.123Z" (RFC 3339, always UTC). Fractions are dropped, since
 * headers have none: otherwise a file in a list would not be the file of a HEAD. */
bool object_time_of_list(struct zt_text text, int64_t *out_s);

#endif
