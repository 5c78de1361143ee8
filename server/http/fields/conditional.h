/* Conditional requests (RFC 9110 section 13) and HTTP dates (section 5.6.7), as pure functions over
 * the text of the fields. */
#ifndef HTTP_FIELDS_CONDITIONAL_H
#define HTTP_FIELDS_CONDITIONAL_H

#include <stdbool.h>
#include <time.h>

struct preconditions {
    const char *if_match; /* NULL if the field is absent; repeated fields joined by ", " */
    const char *if_none_match;
    const char *if_modified_since;
    const char *if_unmodified_since;
    const char *if_range;
};

enum precondition_outcome { PRECONDITION_PASS, PRECONDITION_NOT_MODIFIED, PRECONDITION_FAILED };

/* Whether there are any that a write can have. */
static inline bool preconditions_are_given(const struct preconditions *preconditions)
{
    return preconditions->if_match != NULL || preconditions->if_none_match != NULL ||
           preconditions->if_unmodified_since != NULL;
}

/* Evaluates them in the order of section 13.2.2. etag is NULL if the resource does not exist or has
 * none; last_modified is 0 if unknown. read: the method is GET or HEAD, which get 304 instead of
 * 412 where the section says so. */
enum precondition_outcome precondition_check(const struct preconditions *preconditions,
                                             const char *etag, time_t last_modified, bool read);

/* Whether the value of If-Match or If-None-Match is "*" or a list of one or more entity-tags. */
bool tag_list_is_valid(const char *field);

/* Whether If-Range allows Range to be honoured: it is absent (NULL), or its tag or date is a strong
 * match. now is the time of the answer: a date is strong only if it is at least a second older. */
bool if_range_holds(const char *if_range, const char *etag, time_t last_modified, time_t now);

/* "Sun, 06 Nov 1994 08:49:37 GMT" and a NUL. */
#define HTTP_DATE_SIZE 30

/* Reads an HTTP-date: IMF-fixdate, or one of the two obsolete forms. False if text is not one. */
bool http_date_parse(const char *text, time_t *out_time);

/* Writes an IMF-fixdate. Times outside the years 0 to 9999 are clamped to them. */
void http_date_format(time_t time, char out_text[HTTP_DATE_SIZE]);

#endif
