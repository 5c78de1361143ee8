/* The progress of a long operation, as a line on standard error that is overwritten. Only on
 * terminals. */
#ifndef TERMINAL_PROGRESS_LINE_H
#define TERMINAL_PROGRESS_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct progress_line {
    bool is_shown; /* standard error is a terminal */
    bool is_drawn;
    const char *verb;
    uint64_t total_bytes;
    uint64_t done_bytes;
    int64_t next_ms; /* when to draw it again */
};

/* Draws nothing during the first half second. */
void progress_line_start(struct progress_line *line, const char *verb, uint64_t total_bytes);
void progress_line_advance(struct progress_line *line, uint64_t bytes);
/* Erases the line. */
void progress_line_end(struct progress_line *line);

#endif
