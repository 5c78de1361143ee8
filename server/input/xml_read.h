/* XML of object stores, read by expat: no DTD, no entities beyond the five, bounded depth and
 * size. */
#ifndef INPUT_XML_READ_H
#define INPUT_XML_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "zt/status.h"
#include "zt/text.h"

/* Called at the end of each element that has no elements in it, with the local names of the
 * elements around it and its own, from the root, joined by '/' ("ListBucketResult/Contents/Key"),
 * and its text, which a NUL follows; and at the end of each element that has some, with text.bytes
 * NULL. False ends the reading with ZT_INVALID. */
typedef bool xml_visitor(void *context, const char *path, struct zt_text text);

#define XML_DEPTH_MAX    16
#define XML_TEXT_MAX     ((size_t)64 << 10)
#define XML_PATH_MAX     ((size_t)1024)
#define XML_DOCUMENT_MAX ((size_t)64 << 20)

/* ZT_INVALID: not well formed, a character that XML cannot hold (also as "&#x01;"), a DTD, or more
 * than the above. ZT_NO_MEMORY. visit may have been called before. */
enum zt_status xml_read(struct zt_text document, xml_visitor *visit, void *context,
                        struct zt_error *error);

#endif
