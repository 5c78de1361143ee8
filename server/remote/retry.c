#include "remote/retry.h"

#include <stddef.h>
#include <time.h>

#define PAUSE_FIRST_MS 100
#define PAUSE_MOST_MS  5000

bool retry_helps(unsigned status)
{
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

bool retry_means_busy(unsigned status)
{
    return status == 429 || status == 503;
}

/* xorshift64: pauses only have to differ. */
static uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

uint64_t retry_pause_ms(unsigned tried, uint64_t *seed)
{
    uint64_t most = PAUSE_FIRST_MS;

    while (tried-- > 0 && most < PAUSE_MOST_MS)
        most *= 2;
    if (most > PAUSE_MOST_MS)
        most = PAUSE_MOST_MS;
    return random_next(seed) % (most + 1);
}

/* -1: the value is no number; numbers past the longest pause are that. */
static int64_t seconds_of(const char *value)
{
    int64_t seconds = 0;

    if (*value == '\0')
        return -1;
    for (; *value != '\0'; value++) {
        if (*value < '0' || *value > '9')
            return -1;
        if (seconds <= RETRY_AFTER_MOST_MS / 1000)
            seconds = seconds * 10 + (*value - '0');
    }
    return seconds;
}

uint64_t retry_after_ms(const char *value, int64_t now_s)
{
    int64_t seconds = seconds_of(value);
    struct tm fields = {0};
    const char *end;

    if (seconds < 0) {
        end = strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &fields);
        if (end == NULL || *end != '\0')
            return 0;
        seconds = (int64_t)timegm(&fields) - now_s;
    }
    if (seconds > RETRY_AFTER_MOST_MS / 1000)
        return RETRY_AFTER_MOST_MS;
    return seconds > 0 ? (uint64_t)seconds * 1000 : 0;
}
