/* The position of a key in a JSON text, for messages: jansson keeps no positions. */
#ifndef CONFIG_POSITION_H
#define CONFIG_POSITION_H

#include <stddef.h>

/* The line, counted from 1, of a key of a group (NULL: of the top level) in a valid JSON document;
 * 0 if it is not found, as if it is written with escapes. */
unsigned config_line_of(const char *text, size_t length, const char *group, const char *name);

#endif
