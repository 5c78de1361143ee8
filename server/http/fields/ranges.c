/* Range (RFC 9110 section 14): the grammar of 14.1.1, byte ranges of 14.1.2, and what is
 * satisfiable.
 *
 * Nothing is refused here but ranges that lie outside: a field that makes no sense is as good as
 * absent (14.2). */
#include "http/fields/ranges.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const char unit[] = "bytes=";

/* One range-spec as it is written. */
struct spec {
    bool is_suffix;
    bool is_open; /* no last position */
    uint64_t first;
    uint64_t last; /* or the suffix's length */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* A number of any length: one that 64 bits do not hold lies beyond every representation, as
 * UINT64_MAX does. */
static bool take_number(const char **at, uint64_t *out_number)
{
    uint64_t number;

    if (!is_digit(**at))
        return false;
    number = 0;
    for (; is_digit(**at); (*at)++) {
        unsigned digit = (unsigned)(**at - '0');

        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    *out_number = number;
    return true;
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

/* The bytes that a spec asks for; false when there are none (14.1.2). */
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

/* Both lie in bounds, so that no sum overflows. */
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
    set->count--;
    memmove(set->ranges + index, set->ranges + index + 1,
            (set->count - index) * sizeof(set->ranges[0]));
}

static void set_insert(struct range_set *set, unsigned index, struct byte_range range)
{
    memmove(set->ranges + index + 1, set->ranges + index,
            (set->count - index) * sizeof(set->ranges[0]));
    set->ranges[index] = range;
    set->count++;
}

/* Adds a range in the place of the first one it joins. Those of the set do not touch each other, so
 * that what the joined range touches, the new one does. */
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

static void skip_space(const char **at)
{
    *at += strspn(*at, " \t");
}

/* What a field asks for, before it is known whether that can be had. */
struct wish {
    struct range_set set;
    unsigned specs;
    bool whole; /* a suffix of an empty representation: satisfiable, and all of it */
};

/* Walks the list, in which elements may be empty (5.6.1.2). False when it is malformed or asks for
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
