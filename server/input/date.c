/* Of the three forms of an HTTP date, IMF-fixdate is written and all are read. */
#include "input/date.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/decimal.h"

/* The first second of the year 0 and the last of the year 9999: years have four digits. */
#define TIME_MIN ((time_t)-62167219200)
#define TIME_MAX ((time_t)253402300799)

static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const long_days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* A text being read; bad stays set. */
struct scan {
    const char *at;
    bool bad;
};

struct moment {
    int year;
    int month; /* 0 to 11 */
    int day;
    int hour;
    int minute;
    int second;
};

static void scan_literal(struct scan *scan, const char *literal)
{
    size_t length = strlen(literal);

    if (scan->bad || strncmp(scan->at, literal, length) != 0) {
        scan->bad = true;
        return;
    }
    scan->at += length;
}

static int scan_digits(struct scan *scan, unsigned count)
{
    const struct zt_text digits = {scan->at, strnlen(scan->at, count)};
    uint64_t number;

    assert(count <= 4);
    if (scan->bad || digits.length < count || !zt_decimal_read(digits, 9999, &number)) {
        scan->bad = true;
        return 0;
    }
    scan->at += count;
    return (int)number;
}

static int scan_word(struct scan *scan, const char *const words[], int count)
{
    for (int i = 0; i < count && !scan->bad; i++) {
        size_t length = strlen(words[i]);

        if (strncmp(scan->at, words[i], length) == 0) {
            scan->at += length;
            return i;
        }
    }
    scan->bad = true;
    return 0;
}

static void scan_clock(struct scan *scan, struct moment *moment)
{
    moment->hour = scan_digits(scan, 2);
    scan_literal(scan, ":");
    moment->minute = scan_digits(scan, 2);
    scan_literal(scan, ":");
    moment->second = scan_digits(scan, 2);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool read_imf(const char *text, struct moment *moment)
{
    struct scan scan = {.at = text};

    scan_word(&scan, days, 7);
    scan_literal(&scan, ", ");
    moment->day = scan_digits(&scan, 2);
    scan_literal(&scan, " ");
    moment->month = scan_word(&scan, months, 12);
    scan_literal(&scan, " ");
    moment->year = scan_digits(&scan, 4);
    scan_literal(&scan, " ");
    scan_clock(&scan, moment);
    scan_literal(&scan, " GMT");
    return !scan.bad && *scan.at == '\0';
}

/* A two-digit year more than 50 years ahead means one in the past. */
static int full_year(int two_digits)
{
    time_t now = time(NULL);
    struct tm today;
    int this_year;
    int year;

    gmtime_r(&now, &today);
    this_year = today.tm_year + 1900;
    year = this_year - this_year % 100 + two_digits;
    return year > this_year + 50 ? year - 100 : year;
}

/* "Sunday, 06-Nov-94 08:49:37 GMT" */
static bool read_rfc850(const char *text, struct moment *moment)
{
    struct scan scan = {.at = text};

    scan_word(&scan, long_days, 7);
    scan_literal(&scan, ", ");
    moment->day = scan_digits(&scan, 2);
    scan_literal(&scan, "-");
    moment->month = scan_word(&scan, months, 12);
    scan_literal(&scan, "-");
    moment->year = full_year(scan_digits(&scan, 2));
    scan_literal(&scan, " ");
    scan_clock(&scan, moment);
    scan_literal(&scan, " GMT");
    return !scan.bad && *scan.at == '\0';
}

/* "Sun Nov  6 08:49:37 1994" */
static bool read_asctime(const char *text, struct moment *moment)
{
    struct scan scan = {.at = text};

    scan_word(&scan, days, 7);
    scan_literal(&scan, " ");
    moment->month = scan_word(&scan, months, 12);
    scan_literal(&scan, " ");
    if (!scan.bad && *scan.at == ' ') {
        scan.at++;
        moment->day = scan_digits(&scan, 1);
    } else {
        moment->day = scan_digits(&scan, 2);
    }
    scan_literal(&scan, " ");
    scan_clock(&scan, moment);
    scan_literal(&scan, " ");
    moment->year = scan_digits(&scan, 4);
    return !scan.bad && *scan.at == '\0';
}

/* A leap second counts as the first second of the next minute. */
static bool moment_to_time(const struct moment *moment, time_t *out_time)
{
    struct tm parts;
    time_t midnight;

    if (moment->month < 0 || moment->month > 11 || moment->day < 1 || moment->hour > 23 ||
        moment->minute > 59 || moment->second > 60)
        return false;
    parts = (struct tm){
        .tm_year = moment->year - 1900, .tm_mon = moment->month, .tm_mday = moment->day};
    midnight = timegm(&parts);
    /* timegm turns 30 February into 1 March. */
    if (parts.tm_mday != moment->day)
        return false;
    *out_time = midnight + moment->hour * 3600 + moment->minute * 60 + moment->second;
    return true;
}

bool http_date_parse(const char *text, time_t *out_time)
{
    struct moment moment;

    if (!read_imf(text, &moment) && !read_rfc850(text, &moment) && !read_asctime(text, &moment))
        return false;
    return moment_to_time(&moment, out_time);
}

/* "Z", "+02:00" or "+0200": seconds ahead of UTC. */
static int scan_zone(struct scan *scan)
{
    const bool is_negative = *scan->at == '-';
    int hours;
    int minutes;

    if (scan->bad || *scan->at == 'Z') {
        scan_literal(scan, "Z");
        return 0;
    }
    scan_literal(scan, is_negative ? "-" : "+");
    hours = scan_digits(scan, 2);
    if (!scan->bad && *scan->at == ':')
        scan->at++;
    minutes = scan_digits(scan, 2);
    scan->bad = scan->bad || hours > 23 || minutes > 59;
    return (is_negative ? -60 : 60) * (hours * 60 + minutes);
}

bool iso_date_parse(const char *text, time_t *out_time)
{
    struct scan scan = {.at = text};
    struct moment moment;
    time_t local;
    int zone_s;

    moment.year = scan_digits(&scan, 4);
    scan_literal(&scan, "-");
    moment.month = scan_digits(&scan, 2) - 1;
    scan_literal(&scan, "-");
    moment.day = scan_digits(&scan, 2);
    scan_literal(&scan, "T");
    scan_clock(&scan, &moment);
    if (!scan.bad && *scan.at == '.')
        scan.at += 1 + strspn(scan.at + 1, "0123456789");
    zone_s = scan_zone(&scan);
    if (scan.bad || *scan.at != '\0' || !moment_to_time(&moment, &local))
        return false;
    *out_time = local - zone_s;
    return true;
}

static char *put_digits(char *at, int number, int count)
{
    assert(number >= 0);
    for (int i = count - 1; i >= 0; i--) {
        at[i] = (char)('0' + number % 10);
        number /= 10;
    }
    return at + count;
}

static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text, length);
    return at + length;
}

void http_date_format(time_t time, char out_text[HTTP_DATE_SIZE])
{
    struct tm parts;
    char *at;

    time = time < TIME_MIN ? TIME_MIN : time > TIME_MAX ? TIME_MAX : time;
    gmtime_r(&time, &parts);
    at = put_text(out_text, days[parts.tm_wday]);
    at = put_digits(put_text(at, ", "), parts.tm_mday, 2);
    at = put_text(put_text(put_text(at, " "), months[parts.tm_mon]), " ");
    at = put_digits(at, parts.tm_year + 1900, 4);
    at = put_digits(put_text(at, " "), parts.tm_hour, 2);
    at = put_digits(put_text(at, ":"), parts.tm_min, 2);
    at = put_digits(put_text(at, ":"), parts.tm_sec, 2);
    at = put_text(at, " GMT");
    assert(at == out_text + HTTP_DATE_SIZE - 1);
    *at = '\0';
}

bool iso_date_format(time_t time, char out_text[ISO_DATE_SIZE])
{
    struct tm parts;

    return gmtime_r(&time, &parts) != NULL &&
           strftime(out_text, ISO_DATE_SIZE, "%Y-%m-%dT%H:%M:%S", &parts) > 0;
}
