/* Preconditions (RFC 9110 section 13): entity tags (8.8.3.2) and dates, compared in the order of
 * 13.2.2. */
#include "http/fields/conditional.h"

#include <stddef.h>
#include <string.h>

#include "http/fields/grammar.h"
#include "input/date.h"

/* --- entity tags --- */

/* One entity-tag of a field. */
struct tag {
    bool weak;
    const char *opaque; /* with its quotes */
    size_t length;
};

/* etagc: no space, quote or control character. */
static bool is_tag_char(unsigned char byte)
{
    return byte > 0x20 && byte != '"' && byte != 0x7F;
}

/* Reads one entity-tag. Moves *at past it on success only. */
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

/* Finds the next entity-tag of the field. Other text is skipped up to the next comma, since it
 * matches nothing. */
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

/* Returns true if the field is "*" or lists a tag that equals etag. If etag is NULL, no tag
 * matches. */
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

/* Returns true if last_modified is later than the field's date. If either date is missing, the
 * field must be ignored (13.1.3, 13.1.4), and the result is otherwise. */
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
