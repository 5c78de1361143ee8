#include "terminal/progress_bar.h"

#include <assert.h>

unsigned progress_bar_cells(size_t columns)
{
    if (columns < 80)
        return 0;
    return columns < 100 ? 6 : columns < 120 ? 12 : 20;
}

void progress_bar_write(FILE *stream, unsigned percent, unsigned cells, bool is_utf8)
{
    const char *done = is_utf8 ? "\u2588" : "#";
    const char *left = is_utf8 ? "\u2591" : ".";
    /* Full only when all is done. */
    const unsigned filled = percent * cells / 100;

    assert(percent <= 100 && filled <= cells);
    for (unsigned i = 0; i < cells; i++)
        fputs(i < filled ? done : left, stream);
}
