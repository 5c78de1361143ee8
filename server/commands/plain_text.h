/* Texts from files and arguments on a terminal: whatever they hold, a line stays a line and nothing
 * is commanded. */
#ifndef COMMANDS_PLAIN_TEXT_H
#define COMMANDS_PLAIN_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Writes UTF-8 text with control characters (C0, DEL, C1, and those that turn the direction of
 * writing) as \uXXXX and bytes that are no text as \xXX. Returns how many characters stand there
 * then. stream NULL: only counts. */
size_t plain_text_write(FILE *stream, const char *text, size_t length);

/* The same, but what has more than limit characters is cut to that many, the last of them "…". No
 * escape is cut. */
size_t plain_text_write_short(FILE *stream, const char *text, size_t length, size_t limit);

#endif
