/* A progress line: drawn at most five times a second, and erased at the end. */
#include "terminal/progress_line.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST_MS    500
#define INTERVAL_MS 200
#define MIB         (1024.0 * 1024.0)

void progress_line_start(struct progress_line *line, const char *verb, uint64_t total_bytes)
{
    *line = (struct progress_line){
        .is_shown = isatty(STDERR_FILENO) == 1, .verb = verb, .total_bytes = total_bytes};
    line->next_ms = line->is_shown ? clock_ms() + FIRST_MS : 0;
}

static void draw(struct progress_line *line)
{
    /* The total is an estimate for files that do not state all lengths. */
    double done = line->total_bytes > 0 ? (double)line->done_bytes / (double)line->total_bytes : 1;

    fprintf(stderr, "\r%s: %3.0f %%, %.0f of %.0f MiB\033[K", line->verb,
            done < 1 ? done * 100 : 100, (double)line->done_bytes / MIB,
            (double)line->total_bytes / MIB);
    fflush(stderr);
    line->is_drawn = true;
}

void progress_line_advance(struct progress_line *line, uint64_t bytes)
{
    int64_t now;

    line->done_bytes += bytes;
    if (!line->is_shown)
        return;
    now = clock_ms();
    if (now >= line->next_ms) {
        line->next_ms = now + INTERVAL_MS;
        draw(line);
    }
}

void progress_line_end(struct progress_line *line)
{
    if (line->is_drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    line->is_drawn = false;
}
