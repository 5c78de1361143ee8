/* Preconditions (RFC 9110 section 13): entity tags (8.8.3.2) and dates (5.6.7), compared in the
 * order of 13.2.2. Of the three forms of a date, IMF-fixdate is written and all are read. */
#include "http/fields/conditional.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "http/fields/grammar.h"

/* --- dates --- */

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
    int number = 0;

    for (unsigned i = 0; i < count && !scan->bad; i++) {
        char byte = *scan->at;

        if (!is_digit(byte)) {
            scan->bad = true;
            return 0;
        }
        number = number * 10 + (byte - '0');
        scan->at++;
    }
    return number;
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

    if (moment->day < 1 || moment->hour > 23 || moment->minute > 59 || moment->second > 60)
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

/* --- entity tags --- */

/* One entity-tag of a field. */
struct tag {
    bool weak;
    const char *opaque; /* with its quotes */
    size_t length;
};

/* etagc: no space, no quote, no control character. */
static bool is_tag_char(unsigned char byte)
{
    return byte > 0x20 && byte != '"' && byte != 0x7F;
}

/* Reads one entity-tag; at moves past it on success only. */
static bool take_tag(const char **at, struct tag *out_tag)
{
    const char *text = *at;
    bool weak = strncmp(text, "W/", 2) == 0;
    const char *end;

    text += weak ? 2 : 0;
    if (*text != '"')
        return false;
    end = text + 1;
    while (is_tag_char((unsigned char)*end))
        end++;
    if (*end != '"')
        return false;
    *out_tag = (struct tag){weak, text, (size_t)(end + 1 - text)};
    *at = end + 1;
    return true;
}

/* The next entity-tag of the field. Anything else is skipped up to the next comma: it matches
 * nothing. */
static bool next_tag(const char **at, struct tag *out_tag)
{
    while (**at != '\0') {
        struct tag tag;
        bool is_tag;

        *at += strspn(*at, " \t,");
        is_tag = take_tag(at, &tag);
        skip_space(at);
        if (is_tag && (**at == ',' || **at == '\0')) {
            *out_tag = tag;
            return true;
        }
        *at += strcspn(*at, ",");
    }
    return false;
}

static bool tags_equal(const struct tag *a, const struct tag *b, bool strong)
{
    if (strong && (a->weak || b->weak))
        return false;
    return a->length == b->length && memcmp(a->opaque, b->opaque, a->length) == 0;
}

static bool is_any(const char *field)
{
    skip_space(&field);
    if (*field != '*')
        return false;
    field++;
    skip_space(&field);
    return *field == '\0';
}

bool tag_list_is_valid(const char *field)
{
    bool is_valid = is_any(field);

    field += is_valid ? strlen(field) : 0;
    while (*(field += strspn(field, " \t,")) != '\0') {
        struct tag tag;

        is_valid = take_tag(&field, &tag);
        skip_space(&field);
        if (!is_valid || (*field != ',' && *field != '\0'))
            return false;
    }
    return is_valid;
}

/* Whether the field is "*" or lists a tag that equals etag. Without an etag nothing matches. */
static bool field_matches(const char *field, const char *etag, bool strong)
{
    struct tag own;
    struct tag tag;

    if (etag == NULL || !take_tag(&etag, &own))
        return false;
    if (is_any(field))
        return true;
    while (next_tag(&field, &tag))
        if (tags_equal(&tag, &own, strong))
            return true;
    return false;
}

/* Whether last_modified is later than the field's date. If either side has no date, the field is to
 * be ignored (13.1.3, 13.1.4) and the result is otherwise. */
static bool changed_since(const char *field, time_t last_modified, bool otherwise)
{
    time_t date;

    if (field == NULL || last_modified == 0 || !http_date_parse(field, &date))
        return otherwise;
    return last_modified > date;
}

/* --- preconditions --- */

enum precondition_outcome precondition_check(const struct preconditions *preconditions,
                                             const char *etag, time_t last_modified, bool read)
{
    if (preconditions->if_match != NULL) {
        if (!field_matches(preconditions->if_match, etag, true))
            return PRECONDITION_FAILED;
    } else if (changed_since(preconditions->if_unmodified_since, last_modified, false)) {
        return PRECONDITION_FAILED;
    }
    if (preconditions->if_none_match != NULL) {
        if (field_matches(preconditions->if_none_match, etag, false))
            return read ? PRECONDITION_NOT_MODIFIED : PRECONDITION_FAILED;
    } else if (read && !changed_since(preconditions->if_modified_since, last_modified, true)) {
        return PRECONDITION_NOT_MODIFIED;
    }
    return PRECONDITION_PASS;
}

bool if_range_holds(const char *if_range, const char *etag, time_t last_modified, time_t now)
{
    struct tag tag;
    struct tag own;
    time_t date;

    if (if_range == NULL)
        return true;
    if (take_tag(&if_range, &tag)) {
        skip_space(&if_range);
        return *if_range == '\0' && etag != NULL && take_tag(&etag, &own) &&
               tags_equal(&tag, &own, true);
    }
    return last_modified != 0 && http_date_parse(if_range, &date) && date == last_modified &&
           last_modified < now;
}
