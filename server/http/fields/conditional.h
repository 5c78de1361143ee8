/* Conditional requests (RFC 9110 section 13) as pure functions over the fields' texts. */
#ifndef HTTP_FIELDS_CONDITIONAL_H
#define HTTP_FIELDS_CONDITIONAL_H

#include <stdbool.h>
#include <time.h>

struct preconditions {
    const char *if_match; /* NULL where the field is absent; lists joined by ", " */
    const char *if_none_match;
    const char *if_modified_since;
    const char *if_unmodified_since;
    const char *if_range;
};

enum precondition_outcome { PRECONDITION_PASS, PRECONDITION_NOT_MODIFIED, PRECONDITION_FAILED };

/* In section 13.2.2's order of precedence. etag NULL: the resource does not exist or has none;
 * last_modified 0: unknown. read: GET or HEAD (304 instead of 412 where the section says so). */
enum precondition_outcome precondition_check(const struct preconditions *preconditions,
                                             const char *etag, time_t last_modified, bool read);

/* Whether If-Match or If-None-Match is "*" alone, or a list of one entity-tag or more and of
 * nothing else. */
bool tag_list_is_valid(const char *field);

/* Whether Range is to be honoured as far as If-Range goes: absent, or a strong match of tag or
 * date. now is the time of the answer: a date is strong only when it is a second or more older than
 * that. */
bool if_range_holds(const char *if_range, const char *etag, time_t last_modified, time_t now);

/* HTTP-date (IMF-fixdate, and the two obsolete forms). False when it is none. */
bool http_date_parse(const char *text, time_t *out_time);
void http_date_format(time_t time, char out_text[30]);

#endif
