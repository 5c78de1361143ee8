/* The content rules of a conversion: those of the file that is read, and those of the file that is to be. */
#ifndef ZT_CONVERT_CONTENT_H
#define ZT_CONVERT_CONTENT_H

#include "zt/convert.h"

/* Reads what the rules are about. ZT_INVALID or ZT_CORRUPT where the source breaks its own rules; ZT_UNSUPPORTED, with
 * the target's rule, where an object is right as it is but would break those of the layout it gets. What cannot be
 * judged passes. Errors name the object and component of the source. */
enum zt_status zt_conversion_check(const struct zt_conversion *conversion, struct zt_error *error);

#endif
