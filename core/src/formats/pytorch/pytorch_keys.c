/* PyTorch: a key occurs once in a map. Python keeps the last value of a key and would load only one
 * of two tensors, or of a tensor and a number.
 *
 * Two tensors of one name are found by their names. This is about keys of which one has another
 * value, and about maps that were made of others. */
#include <stdlib.h>

#include "base/index_sort.h"
#include "formats/pytorch/pytorch.h"

/* The magnitude from which a number does not fit into 64 bits. */
#define TOO_LARGE 18446744073709551616.0

/* Walks the entries of a map, including entries of maps and lists that it was made of. */
struct entries {
    const struct pickle *pickle;
    uint64_t steps_left; /* the walk visits as many values at most */
    unsigned depth;
    bool is_too_deep;
    struct source {
        struct pickle_items items;
        bool is_pairs;
    } sources[PYTORCH_DEPTH_MAX];
};

static void begin(struct entries *entries, pickle_value value)
{
    struct source *source;

    entries->is_too_deep = entries->depth == PYTORCH_DEPTH_MAX;
    if (entries->is_too_deep || pickle_kind_of(value) == PICKLE_TUPLE) /* which has no keys */
        return;
    source = &entries->sources[entries->depth++];
    source->is_pairs = pickle_kind_of(value) == PICKLE_LIST;
    pickle_items_begin(entries->pickle, value, &source->items);
}

/* Of a list: [key, value]. The walk refuses all other contents. */
static bool read_pair(const struct pickle *pickle, pickle_value pair, uint32_t *out_key_at,
                      pickle_value *out_value)
{
    struct pickle_items items;
    pickle_value key;

    if (pickle_kind_of(pair) != PICKLE_LIST && pickle_kind_of(pair) != PICKLE_TUPLE)
        return false;
    pickle_items_begin(pickle, pair, &items);
    if (!pickle_items_next(pickle, &items, &key))
        return false;
    *out_key_at = items.next - 1;
    return pickle_items_next(pickle, &items, out_value);
}

/* The next entry: where its key is in the arena, and its value. False at the end. */
static bool next(struct entries *entries, uint32_t *out_key_at, pickle_value *out_value)
{
    while (entries->depth > 0 && !entries->is_too_deep && entries->steps_left-- > 0) {
        struct source *source = &entries->sources[entries->depth - 1];
        pickle_value key = 0;

        if (!pickle_items_next(entries->pickle, &source->items, &key)) {
            entries->depth--;
            continue;
        }
        *out_key_at = source->items.next - 1;
        if (source->is_pairs) {
            if (read_pair(entries->pickle, key, out_key_at, out_value))
                return true;
            continue;
        }
        if (!pickle_items_next(entries->pickle, &source->items, out_value))
            return false;
        if (key != 0)
            return true;
        begin(entries, *out_value);
    }
    return false;
}

/* --- comparing --- */

/* A key that may hold a tensor, or an equal key. */
struct key {
    bool is_text;
    bool is_negative;
    uint64_t magnitude;
    struct zt_text text;
};

/* In Python 1, 1.0 and True are one key. False for keys of other kinds. */
static bool read_key(const struct pickle *pickle, uint32_t at, struct key *out_key)
{
    const pickle_value value = pickle->arena.items[at];
    double number;

    *out_key = (struct key){.is_text = pickle_kind_of(value) == PICKLE_TEXT};
    switch (pickle_kind_of(value)) {
    case PICKLE_TEXT:
        out_key->text = pickle_text(pickle, value);
        return true;
    case PICKLE_BOOL:
        out_key->magnitude = pickle_is_true(pickle, value);
        return true;
    case PICKLE_INTEGER:
        out_key->magnitude = pickle_magnitude(pickle, value, &out_key->is_negative);
        out_key->is_negative = out_key->is_negative && out_key->magnitude > 0;
        return true;
    case PICKLE_FLOAT:
        number = pickle_float(pickle, value);
        out_key->is_negative = number < 0;
        number = number < 0 ? -number : number;
        if (!(number < TOO_LARGE))
            return false;
        out_key->magnitude = (uint64_t)number;
        return (double)out_key->magnitude == number;
    default:
        return false;
    }
}

static int compare(const struct key *a, const struct key *b)
{
    if (a->is_text != b->is_text)
        return a->is_text ? -1 : 1;
    if (a->is_text)
        return zt_text_compare(a->text, b->text);
    if (a->is_negative != b->is_negative)
        return a->is_negative ? -1 : 1;
    return a->magnitude < b->magnitude ? -1 : a->magnitude > b->magnitude;
}

struct found {
    const struct pickle *pickle;
    uint32_t *at; /* keys, in the arena */
    uint32_t count;
};

static bool is_key_after(const void *context, uint32_t a, uint32_t b)
{
    const struct found *found = context;
    struct key one;
    struct key other;

    read_key(found->pickle, a, &one);
    read_key(found->pickle, b, &other);
    return compare(&one, &other) > 0;
}

/* --- checking --- */

static void start(struct entries *entries, const struct pickle *pickle, pickle_value map,
                  uint64_t most_steps)
{
    *entries = (struct entries){.pickle = pickle, .steps_left = most_steps};
    begin(entries, map);
}

/* Number of keys to compare: none if all values are tensors, whose names are compared. */
static uint32_t count_keys(struct entries *entries)
{
    bool has_others = false;
    uint32_t count = 0;
    uint32_t at;
    pickle_value value;

    while (next(entries, &at, &value)) {
        const enum pickle_kind kind = pickle_kind_of(value);
        struct key key;

        has_others = has_others || (kind != PICKLE_TENSOR && kind != PICKLE_STORAGE);
        count += read_key(entries->pickle, at, &key);
    }
    return has_others ? count : 0;
}

static enum zt_status compare_all(const struct found *found, struct zt_error *error)
{
    const struct zt_index_order order = {is_key_after, found};
    enum zt_status status = zt_index_sort(found->at, found->count, &order);

    if (status != ZT_OK)
        return zt_fail_memory(error, "the keys of a map");
    for (uint32_t i = 1; i < found->count; i++)
        if (!is_key_after(found, found->at[i], found->at[i - 1]))
            return pickle_fail(found->pickle,
                               pickle_position_of(found->pickle->arena.items[found->at[i]]),
                               "pt §Names DuplicateName", error, "a key occurs twice in a map");
    return ZT_OK;
}

enum zt_status pytorch_keys_check(const struct pickle *pickle, pickle_value map,
                                  uint64_t most_steps, struct zt_error *error)
{
    struct entries entries;
    struct found found = {.pickle = pickle};
    uint32_t count;
    uint32_t at;
    pickle_value value;
    enum zt_status status;

    start(&entries, pickle, map, most_steps);
    count = count_keys(&entries);
    if (count < 2)
        return ZT_OK;
    if (count > pickle->arena.count / 2) /* a map was merged twice */
        return pickle_fail(pickle, pickle_position_of(map), "pt §Names DuplicateName", error,
                           "keys occur twice in a map");
    found.at = malloc(count * sizeof(*found.at));
    if (found.at == NULL)
        return zt_fail_memory(error, "the keys of a map");
    start(&entries, pickle, map, most_steps);
    while (next(&entries, &at, &value)) {
        struct key key;

        if (read_key(pickle, at, &key))
            found.at[found.count++] = at;
    }
    status = compare_all(&found, error);
    free(found.at);
    return status;
}
