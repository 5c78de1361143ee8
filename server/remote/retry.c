#include "remote/retry.h"

#include <time.h>

#include "base/decimal.h"
#include "input/date.h"

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

uint64_t retry_after_ms(const char *value, int64_t now_s)
{
    struct zt_text rest = zt_text_from(value);
    uint64_t seconds;
    time_t date;

    if (!zt_decimal_take(&rest, &seconds) || rest.length > 0) {
        if (!http_date_parse(value, &date) || date <= now_s)
            return 0;
        seconds = (uint64_t)(date - now_s);
    }
    return seconds > RETRY_AFTER_MOST_MS / 1000 ? RETRY_AFTER_MOST_MS : seconds * 1000;
}
