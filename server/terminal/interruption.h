/* What is left of a terminal's line when a person types control-C, and what is said then. The
 * program ends by the signal all the same. */
#ifndef TERMINAL_INTERRUPTION_H
#define TERMINAL_INTERRUPTION_H

#include <stdbool.h>

/* From now on; not for a signal that is ignored, or that somebody else catches. */
void interruption_catch(void);

/* Whether a line is drawn that is to be ended first. */
void interruption_note_line(bool is_drawn);

/* The file from which the same command would continue: it says so if the file is there. NULL: none.
 * Borrowed until another is set. */
void interruption_note_part(const char *path);

#endif
