/* The progress of a long operation on standard error: a line that is overwritten, for people at a
 * terminal; a line every few seconds; or JSON objects, one a line, for programs. */
#ifndef TERMINAL_PROGRESS_LINE_H
#define TERMINAL_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum progress_mode {
    PROGRESS_AUTO,  /* the line that is overwritten if standard error is a terminal, else nothing */
    PROGRESS_PLAIN, /* a line of its own every five seconds */
    PROGRESS_JSON,  /* {"event":"progress",…} every second, and one at the end */
    PROGRESS_NONE
};

/* Moments of which the rate is made: of the last five seconds. */
#define PROGRESS_SAMPLES 10

struct progress_line {
    /* May be set by the caller at any time after the start. */
    uint64_t total_bytes;
    uint64_t done_bytes; /* raised by progress_line_advance */
    const char *name;    /* of the file at work on, escaped when it is printed; NULL: none */
    unsigned file;       /* its number, from 1, if there are several files */
    unsigned files;
    /* The line's own. */
    enum progress_mode mode; /* AUTO only where it is drawn */
    bool is_drawn;
    const char *verb;
    int64_t next_ms; /* when to draw it again */
    struct {
        int64_t at_ms;
        uint64_t bytes;
    } samples[PROGRESS_SAMPLES]; /* a ring */
    unsigned sampled;
};

/* "auto", "plain", "json", "none". False: another text. */
bool progress_mode_read(const char *text, enum progress_mode *out_mode);
/* These four, and NULL. */
extern const char *const progress_mode_words[];

/* verb: "pulling"; borrowed. Draws nothing during the first half second. total_bytes may be an
 * estimate, and is 0 if unknown. */
void progress_line_start(struct progress_line *line, enum progress_mode mode, const char *verb,
                         uint64_t total_bytes);
/* Bytes that need no work, such as bytes of an earlier attempt: they do not count for the rate. */
void progress_line_skip(struct progress_line *line, uint64_t bytes);
/* Also with 0 bytes from time to time, so that the rate falls when nothing moves. */
void progress_line_advance(struct progress_line *line, uint64_t bytes);
/* Erases a line that is drawn, for output that comes between; the next advance draws it again. */
void progress_line_erase(struct progress_line *line);
/* Erases the line; with JSON, prints the last object. */
void progress_line_end(struct progress_line *line);

#endif
