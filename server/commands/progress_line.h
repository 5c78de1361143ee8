/* How far a long operation is, as one line on standard error that is written over again: on
 * terminals only. */
#ifndef COMMANDS_PROGRESS_LINE_H
#define COMMANDS_PROGRESS_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct progress_line {
    bool is_shown; /* standard error is a terminal */
    bool is_drawn;
    const char *verb;
    uint64_t total_bytes;
    uint64_t done_bytes;
    int64_t next_ms; /* when to draw it next */
};

/* Nothing is drawn before half a second has passed. */
void progress_line_start(struct progress_line *line, const char *verb, uint64_t total_bytes);
void progress_line_advance(struct progress_line *line, uint64_t bytes);
/* Takes the line away. */
void progress_line_end(struct progress_line *line);

#endif
