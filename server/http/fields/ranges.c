/* Parses Range (RFC 9110 section 14): the grammar of 14.1.1, the byte ranges of 14.1.2, and whether
 * they are satisfiable. A malformed field counts as absent (14.2). */
#include "http/fields/ranges.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "http/fields/grammar.h"

static const char unit[] = "bytes=";

/* One range-spec of the field. */
struct spec {
    bool is_suffix;
    bool is_open; /* no last position */
    uint64_t first;
    uint64_t last; /* for a suffix: its length */
};

/* Reads a number of any length. A number above 64 bits becomes UINT64_MAX, which is also beyond the
 * end of every representation. */
static bool take_number(const char **at, uint64_t *out_number)
{
    struct zt_text digits = {*at, strspn(*at, "0123456789")};

    *at += digits.length;
    return zt_decimal_take(&digits, out_number);
}

/* int-range or suffix-range. */
static bool take_spec(const char **at, struct spec *out_spec)
{
    struct spec spec = {0};

    spec.is_suffix = **at == '-';
    if (!spec.is_suffix && !take_number(at, &spec.first))
        return false;
    if (**at != '-')
        return false;
    (*at)++;
    spec.is_open = !take_number(at, &spec.last);
    if (spec.is_open ? spec.is_suffix : !spec.is_suffix && spec.last < spec.first)
        return false;
    *out_spec = spec;
    return true;
}

/* Finds the bytes that a spec selects. Returns false if there are none (14.1.2). */
static bool resolve(const struct spec *spec, uint64_t length, struct byte_range *out_range)
{
    uint64_t last;

    if (spec->is_suffix) {
        uint64_t wanted = spec->last < length ? spec->last : length;

        *out_range = (struct byte_range){length - wanted, wanted};
        return wanted > 0;
    }
    if (spec->first >= length)
        return false;
    last = spec->is_open || spec->last > length - 1 ? length - 1 : spec->last;
    *out_range = (struct byte_range){spec->first, last - spec->first + 1};
    return true;
}

/* Both ranges are within the representation, so no sum overflows. */
static bool touches(struct byte_range a, struct byte_range b)
{
    return a.first <= b.first + b.length && b.first <= a.first + a.length;
}

static struct byte_range join(struct byte_range a, struct byte_range b)
{
    uint64_t first = a.first < b.first ? a.first : b.first;
    uint64_t a_end = a.first + a.length;
    uint64_t b_end = b.first + b.length;

    return (struct byte_range){first, (a_end > b_end ? a_end : b_end) - first};
}

static void set_remove(struct range_set *set, unsigned index)
{
    assert(index < set->count);
    set->count--;
    memmove(set->ranges + index, set->ranges + index + 1,
            (set->count - index) * sizeof(set->ranges[0]));
}

static void set_insert(struct range_set *set, unsigned index, struct byte_range range)
{
    assert(index <= set->count && set->count < RANGES_MAX);
    memmove(set->ranges + index + 1, set->ranges + index,
            (set->count - index) * sizeof(set->ranges[0]));
    set->ranges[index] = range;
    set->count++;
}

/* Adds a range after merging it with all ranges of the set that it touches; the result takes the
 * position of the first of them. Ranges of the set do not touch each other, so a range that touches
 * the merged range also touches the new one. */
static void set_add(struct range_set *set, struct byte_range range)
{
    unsigned place = set->count;
    unsigned i = 0;

    while (i < set->count) {
        if (!touches(set->ranges[i], range)) {
            i++;
            continue;
        }
        range = join(set->ranges[i], range);
        place = i < place ? i : place;
        set_remove(set, i);
    }
    set_insert(set, place, range);
}

/* The selection of a field, before it is known whether it is satisfiable. */
struct wish {
    struct range_set set;
    unsigned specs;
    bool whole; /* a suffix of an empty representation, which is satisfiable and selects all of
                 * it */
};

/* Reads the list, whose elements may be empty (5.6.1.2). Returns false if it is malformed or has
 * too many ranges. */
static bool parse_list(const char *at, uint64_t length, struct wish *wish)
{
    for (;;) {
        skip_space(&at);
        if (*at != ',' && *at != '\0') {
            struct spec spec;
            struct byte_range range;

            if (!take_spec(&at, &spec) || ++wish->specs > RANGES_MAX)
                return false;
            wish->whole |= spec.is_suffix && spec.last > 0 && length == 0;
            if (resolve(&spec, length, &range))
                set_add(&wish->set, range);
            skip_space(&at);
        }
        if (*at == '\0')
            return wish->specs > 0;
        if (*at++ != ',')
            return false;
    }
}

enum ranges_outcome ranges_parse(const char *field, uint64_t length, struct range_set *out_set)
{
    struct wish wish = {.specs = 0};

    if (field == NULL || strncasecmp(field, unit, sizeof(unit) - 1) != 0)
        return RANGES_ABSENT;
    if (!parse_list(field + sizeof(unit) - 1, length, &wish) || wish.whole)
        return RANGES_ABSENT;
    if (wish.set.count == 0)
        return RANGES_UNSATISFIABLE;
    *out_set = wish.set;
    return RANGES_SATISFIABLE;
}
