/* Where lines of the log go: standard error. */
#ifndef BASE_LOG_OUTPUT_H
#define BASE_LOG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* PIPE_BUF of Linux: up to this length a write to a pipe is not mixed with those of others. */
#define LOG_OUTPUT_SIZE 4096

/* Writes a line, which ends with a line feed; at most LOG_OUTPUT_SIZE bytes. If it may wait and
 * this thread gathers lines, it is written with others; what waits goes out first in any case.
 * Errors are ignored: the server keeps running without standard error. */
void log_output(const char *line, size_t length, bool may_wait);

#endif
