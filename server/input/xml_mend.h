/* XML that no parser accepts because of a few characters. Object stores write keys with control
 * characters into it, raw or as references ("&#x01;"). */
#ifndef INPUT_XML_MEND_H
#define INPUT_XML_MEND_H

#include <stddef.h>

/* Replaces, in place, each character that XML forbids and each byte beyond ASCII (it may not be
 * UTF-8) by '?'. Returns the new length, which is never greater. */
size_t xml_mend(char *text, size_t length);

#endif
