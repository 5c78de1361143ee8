/* Conditional requests (RFC 9110 section 13), as pure functions over the text of the fields. */
#ifndef HTTP_FIELDS_CONDITIONAL_H
#define HTTP_FIELDS_CONDITIONAL_H

#include <stdbool.h>
#include <time.h>

struct file_identity;

struct preconditions {
    const char *if_match; /* NULL if the field is absent; repeated fields joined by ", " */
    const char *if_none_match;
    const char *if_modified_since;
    const char *if_unmodified_since;
    /* For a write to a stored file: writes the ETag by which the API knows the current version, at
     * most CONDITIONAL_ETAG_SIZE bytes. NULL: the ETag of GET /files/{path}. */
    void (*write_etag)(const char *path, const struct file_identity *identity, char *out_etag);
};

#define CONDITIONAL_ETAG_SIZE 40

enum precondition_outcome { PRECONDITION_PASS, PRECONDITION_NOT_MODIFIED, PRECONDITION_FAILED };

/* Returns true if any precondition that applies to writes is present. */
static inline bool preconditions_are_given(const struct preconditions *preconditions)
{
    return preconditions->if_match != NULL || preconditions->if_none_match != NULL ||
           preconditions->if_unmodified_since != NULL;
}

/* Evaluates the preconditions in the order of section 13.2.2. etag is NULL if the resource does not
 * exist or has no tag; last_modified is 0 if unknown. read: the method is GET or HEAD, which get
 * 304 instead of 412 where the section says so. */
enum precondition_outcome precondition_check(const struct preconditions *preconditions,
                                             const char *etag, time_t last_modified, bool read);

/* Returns true if the value of If-Match or If-None-Match is "*" or a list of one or more
 * entity-tags. */
bool tag_list_is_valid(const char *field);

/* Returns true if If-Range allows Range to be honoured: it is absent (NULL), or its tag or date is
 * a strong match. now is the time of the answer: a date is strong only if it is at least one second
 * older. */
bool if_range_holds(const char *if_range, const char *etag, time_t last_modified, time_t now);

#endif
