/* Times in headers and lists of an object store. */
#include "store/s3/object_time.h"

#include <string.h>
#include <time.h>

/* Years since 1900, as in struct tm; in the year after the last, nanoseconds no longer fit. */
#define YEAR_MIN (1970 - 1900)
#define YEAR_MAX (2261 - 1900)

static bool make(struct tm *parts, int64_t *out_s)
{
    if (parts->tm_year < YEAR_MIN || parts->tm_year > YEAR_MAX)
        return false;
    *out_s = (int64_t)timegm(parts);
    return true;
}

bool object_time_of_header(const char *text, int64_t *out_s)
{
    struct tm parts = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &parts);

    return end != NULL && *end == '\0' && make(&parts, out_s);
}

bool object_time_of_list(struct zt_text text, int64_t *out_s)
{
    struct tm parts = {0};
    char copy[40];
    const char *end;

    if (text.length >= sizeof(copy))
        return false;
    memcpy(copy, text.bytes, text.length);
    copy[text.length] = '\0';
    end = strptime(copy, "%Y-%m-%dT%H:%M:%S", &parts);
    if (end == NULL)
        return false;
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0)
        return false;
    return make(&parts, out_s);
}
