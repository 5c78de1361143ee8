/* Writes XML 1.0 into a growing text. Errors persist, so a sequence of writes needs only one check
 * at the end (text.failed). Element names are the caller's own; only texts are escaped. */
#ifndef BASE_XML_WRITE_H
#define BASE_XML_WRITE_H

#include "base/memory.h"
#include "zt/text.h"

/* Starts out zeroed. */
struct xml_writer {
    struct zt_buffer text;
};

void xml_writer_free(struct xml_writer *xml);

/* The declaration, which must be the first thing in a document. */
void xml_write_declaration(struct xml_writer *xml);

/* Opens an element; xmlns is its namespace, or NULL. */
void xml_write_open(struct xml_writer *xml, const char *name, const char *xmlns);
void xml_write_close(struct xml_writer *xml, const char *name);

/* Writes an element that contains only a text. Invalid UTF-8 and characters that XML cannot
 * represent become U+FFFD; a carriage return becomes a reference, because parsers would change
 * it. */
void xml_write_text(struct xml_writer *xml, const char *name, struct zt_text text);
void xml_write_string(struct xml_writer *xml, const char *name, const char *text);
void xml_write_uint(struct xml_writer *xml, const char *name, uint64_t number);
void xml_write_bool(struct xml_writer *xml, const char *name, bool value);

#endif
