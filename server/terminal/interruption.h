/* Clears a terminal's line on control-C, and prints a last message. The program still ends by the
 * signal. */
#ifndef TERMINAL_INTERRUPTION_H
#define TERMINAL_INTERRUPTION_H

#include <stdbool.h>

/* From now on; not for a signal that is ignored or has another handler. */
void interruption_catch(void);

/* Whether a line is drawn that must be ended first. */
void interruption_note_line(bool is_drawn);

/* The file with which the same command would resume, such as the ".part" of a download: the message
 * says so if it exists. NULL: none. Borrowed until another is set. */
void interruption_note_part(const char *path);

#endif
