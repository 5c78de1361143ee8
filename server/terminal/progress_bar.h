/* A bar of so many cells, as far filled as the work is done. */
#ifndef TERMINAL_PROGRESS_BAR_H
#define TERMINAL_PROGRESS_BAR_H

#include <stdbool.h>
#include <stdio.h>

/* How many cells a bar has on a line of so many columns, which leaves room for figures and a name;
 * 0: the line is too short for one. */
unsigned progress_bar_cells(size_t columns);

/* percent: 0 to 100. is_utf8: of blocks, else of '#' and '.'. */
void progress_bar_write(FILE *stream, unsigned percent, unsigned cells, bool is_utf8);

#endif
