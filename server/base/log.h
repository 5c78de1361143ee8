/* The log: lines on standard error, as text or JSON. All functions are thread-safe; lines never
 * mix. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/status.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* Called before the first thread starts, and when the configuration is reloaded. */
void log_configure(enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);

/* Writes one line. Control characters are escaped, so that a client's text cannot forge lines. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* From now on this thread buffers the lines of its requests until log_flush or any other line of
 * the thread, so that one write covers many. */
void log_gather(void);
/* Writes the buffered lines. Call it before the thread waits. */
void log_flush(void);

/* How a request was cut off. */
struct log_cut {
    const char *reason; /* for example "timeout"; NULL: it was not cut off */
    const char *during; /* "header", "body", "answer" */
    uint64_t done_bytes;
    uint64_t total_bytes; /* UINT64_MAX: unknown */
};

struct log_request_line {
    const char *request_id;
    const char *trace_id; /* "" without a traceparent */
    const char *method;
    const char *path; /* raw, as sent by the client */
    const char *route;
    const char *client;     /* the peer's address; NULL: unknown, as for the members below */
    const char *forwarded;  /* the client for which a trusted proxy made the request */
    const char *user;       /* name of the token */
    const char *user_agent; /* raw */
    const char *code;       /* code of the problem in the answer */
    struct zt_text model;   /* decoded; empty: none */
    unsigned status;
    uint64_t bytes;
    uint64_t duration_us;
    struct log_cut cut;
};

/* Logs a request at level info. */
void log_request(const struct log_request_line *line);

#endif
