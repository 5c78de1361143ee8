/* Parses times in headers and lists of an object store. */
#include "store/s3/object_time.h"

#include <string.h>
#include <time.h>

#include "input/date.h"

/* The end of the year 2261: in the next, nanoseconds no longer fit. */
#define TIME_END ((time_t)9214646400)

static bool take(time_t time, int64_t *out_s)
{
    if (time < 0 || time >= TIME_END)
        return false;
    *out_s = (int64_t)time;
    return true;
}

bool object_time_of_header(const char *text, int64_t *out_s)
{
    time_t time;

    return http_date_parse(text, &time) && take(time, out_s);
}

bool object_time_of_list(struct zt_text text, int64_t *out_s)
{
    char copy[40];
    time_t time;

    if (text.length >= sizeof(copy))
        return false;
    memcpy(copy, text.bytes, text.length);
    copy[text.length] = '\0';
    return iso_date_parse(copy, &time) && take(time, out_s);
}
