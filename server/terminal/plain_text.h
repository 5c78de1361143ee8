/* Writes texts from files and arguments to a terminal: with any contents, a line stays one line,
 * and the terminal receives no commands. */
#ifndef TERMINAL_PLAIN_TEXT_H
#define TERMINAL_PLAIN_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Writes UTF-8 text, with control characters (C0, DEL, C1, line separators, direction marks) as
 * \uXXXX and bytes that are not UTF-8 as \xXX. Returns the number of characters written. stream
 * NULL: only counts. */
size_t plain_text_write(FILE *stream, const char *text, size_t length);

/* The same, but cuts a text of more than limit characters to at most limit, the last of them "…".
 * Cuts no escape in two. */
size_t plain_text_write_short(FILE *stream, const char *text, size_t length, size_t limit);

#endif
