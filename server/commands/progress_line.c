/* A line of progress: at most five times a second, and gone when the work is done. */
#include "commands/progress_line.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS    500
#define INTERVAL_MS 200
#define MIB         (1024.0 * 1024.0)

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void progress_line_start(struct progress_line *line, const char *verb, uint64_t total_bytes)
{
    *line = (struct progress_line){
        .is_shown = isatty(STDERR_FILENO) == 1, .verb = verb, .total_bytes = total_bytes};
    line->next_ms = line->is_shown ? now_ms() + FIRST_MS : 0;
}

static void draw(struct progress_line *line)
{
    /* The total is an estimate where a file does not tell its lengths. */
    double part = line->total_bytes > 0 ? (double)line->done_bytes / (double)line->total_bytes : 1;

    fprintf(stderr, "\r%s: %3.0f %%, %.0f of %.0f MiB\033[K", line->verb,
            part < 1 ? part * 100 : 100, (double)line->done_bytes / MIB,
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
    now = now_ms();
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
