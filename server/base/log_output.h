/* The destination of log lines: standard error. */
#ifndef BASE_LOG_OUTPUT_H
#define BASE_LOG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* PIPE_BUF of Linux: writes to a pipe up to this length do not mix with other writes. */
#define LOG_OUTPUT_SIZE 4096

/* Writes a line of at most LOG_OUTPUT_SIZE bytes, which ends with a line feed. If may_wait is set
 * and this thread buffers lines, the line is buffered; otherwise the buffered lines are written
 * first. Errors are ignored: the server keeps running without standard error. */
void log_output(const char *line, size_t length, bool may_wait);

#endif
