/* Which failures are worth another try, and after what pause. */
#ifndef REMOTE_RETRY_H
#define REMOTE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* An answer with this status may be another one the next time: 408, 429, 500, 502 to 504. */
bool retry_helps(unsigned status);

/* The service asks for fewer requests: 429, 503. */
bool retry_means_busy(unsigned status);

/* The pause after a number of tries: anything up to 100 ms doubled with each of them, and at most
 * 5 s, so that many who were refused together do not come back together. seed: the caller's, not 0;
 * it changes. */
uint64_t retry_pause_ms(unsigned tried, uint64_t *seed);

/* Longer pauses that a service asks for are not respected. */
#define RETRY_AFTER_MOST_MS 30000

/* The pause that a Retry-After (RFC 9110 section 10.2.3) asks for: a number of seconds, or a date;
 * at most RETRY_AFTER_MOST_MS. 0: it says neither, or the date is past. now_s: the clock's. */
uint64_t retry_after_ms(const char *value, int64_t now_s);

#endif
