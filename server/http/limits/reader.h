/* Clients that take their answers too slowly, or not at all, while bytes wait for them.
 *
 * Rates are of what the client's system acknowledges, over the time during which something waited
 * to be acknowledged: a server that is slow itself does not make its readers slow. */
#ifndef HTTP_WIRE_READER_H
#define HTTP_WIRE_READER_H

#include <stdbool.h>
#include <stdint.h>

/* Of everything that a connection has ever sent. */
struct reader_progress {
    uint64_t taken_bytes; /* acknowledged */
    uint64_t owed_ms;     /* the time during which bytes waited to be acknowledged; 0: nothing can
                           * be said at present */
};

/* All zero when an answer begins. */
struct reader {
    struct reader_progress last;   /* when the client was last seen to have taken something */
    struct reader_progress window; /* from where the current rate is measured */
    bool is_known;                 /* both are set */
    struct reader_progress seen;   /* at the last look at which something was different */
    uint64_t seen_ms;              /* the time of that look; 0: there was none */
};

struct reader_limits {
    uint64_t stall_ms; /* that a client may take nothing */
    uint64_t grace_ms; /* over which a rate is measured; at least a second */
    uint64_t bytes_per_s;
};

/* To be called now and then while an answer is sent; the first call only begins to measure. True:
 * the client has taken nothing for too long, or less than it must within the last grace period. */
bool reader_is_too_slow(struct reader *reader, const struct reader_limits *limits,
                        struct reader_progress now);

/* To be called as well. now_ms: the clock; 0 while the server keeps the answer waiting. True: for
 * as long as a client may stall, nothing was taken and nothing waited to be taken. The server
 * cannot send, as if a file ends too early, and never will. */
bool reader_gets_nothing(struct reader *reader, const struct reader_limits *limits,
                         struct reader_progress now, uint64_t now_ms);

#endif
