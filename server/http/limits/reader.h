/* Detects clients that read their answers too slowly, or not at all, while bytes wait for them.
 *
 * The rate is the number of bytes that the client's kernel acknowledges, divided by the time during
 * which bytes were waiting for acknowledgement. So a slow server does not make its readers look
 * slow. */
#ifndef HTTP_WIRE_READER_H
#define HTTP_WIRE_READER_H

#include <stdbool.h>
#include <stdint.h>

/* Totals since the connection was opened. */
struct reader_progress {
    uint64_t taken_bytes; /* acknowledged */
    uint64_t owed_ms;     /* how long bytes waited for acknowledgement; 0: unknown at present */
};

/* All members are zero when an answer begins. */
struct reader {
    struct reader_progress last;   /* when the client last made progress */
    struct reader_progress window; /* start of the current measurement */
    bool is_known;                 /* both are set */
    struct reader_progress seen;   /* at the last check that found a change */
    uint64_t seen_ms;              /* time of that check; 0: none yet */
};

struct reader_limits {
    uint64_t stall_ms; /* how long a client may make no progress */
    uint64_t grace_ms; /* over which a rate is measured; at least a second */
    uint64_t bytes_per_s;
};

/* Call it regularly while an answer is sent; the first call only starts the measurement. Returns
 * true if the client has made no progress for too long, or has read less than the minimum within
 * the last grace period. */
bool reader_is_too_slow(struct reader *reader, const struct reader_limits *limits,
                        struct reader_progress now);

/* Call it as well. now_ms is the clock, or 0 while the server keeps the answer waiting. Returns
 * true if, for as long as a client may stall, no bytes were acknowledged and none were waiting: the
 * server cannot send and never will, for example because a file ended too early. */
bool reader_is_starved(struct reader *reader, const struct reader_limits *limits,
                       struct reader_progress now, uint64_t now_ms);

#endif
