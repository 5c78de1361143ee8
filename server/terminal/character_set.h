/* What characters the terminal shows, as the locale of the environment says. */
#ifndef TERMINAL_CHARACTER_SET_H
#define TERMINAL_CHARACTER_SET_H

#include <stdbool.h>

bool character_set_is_utf8(void);

#endif
