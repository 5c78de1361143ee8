/* Dates as text: those of HTTP (RFC 9110 section 5.6.7) and of RFC 3339. */
#ifndef INPUT_DATE_H
#define INPUT_DATE_H

#include <stdbool.h>
#include <time.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT" and a NUL. */
#define HTTP_DATE_SIZE 30

/* Reads an HTTP-date: IMF-fixdate, or one of the two obsolete forms. False if text is not one. */
bool http_date_parse(const char *text, time_t *out_time);

/* Writes an IMF-fixdate. Times outside the years 0 to 9999 are clamped to them. */
void http_date_format(time_t time, char out_text[HTTP_DATE_SIZE]);

/* "1994-11-06T08:49:37" and a NUL; years may have more digits. */
#define ISO_DATE_SIZE 32

/* Reads a date and time of RFC 3339: "1994-11-06T08:49:37.123+01:00". Fractions of seconds are
 * dropped, and the colon of the zone may be missing. False if text is not one. */
bool iso_date_parse(const char *text, time_t *out_time);

/* Writes the date and time in UTC, without the zone ("Z"), so that callers can add fractions. False
 * for a time that no calendar has. */
bool iso_date_format(time_t time, char out_text[ISO_DATE_SIZE]);

#endif
