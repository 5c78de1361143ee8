/* PyTorch: naming the tensors by their paths in the saved value: keys and indices joined by dots.
 *
 * The walk keeps its own stack, which bounds the depth. A value that is shared is visited each
 * time, so the number of visits is bounded too. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/pytorch/pytorch.h"
#include "zt/utf8.h"

#define NAME_MAX_BYTES 1024
/* A tensor takes at least so many bytes of a pickle, apart from a few that are shared. */
#define TENSOR_BYTES_MIN  8
#define TENSOR_COUNT_BASE 1024
#define NAMES_FACTOR      8
#define NAMES_BASE        ((uint64_t)64 << 10)
/* Room for the decimal digits of a 64-bit number and a sign. */
#define NUMBER_SIZE 24

/* The reason why a place may not hold a tensor. */
enum obstacle { OBSTACLE_NONE, OBSTACLE_KEY, OBSTACLE_SET, OBSTACLE_LENGTH };

enum passage { PASSAGE_INDEXED, PASSAGE_KEYS, PASSAGE_PAIRS, PASSAGE_SET };

struct level {
    struct pickle_items items;
    uint32_t index;      /* of the next item, in lists and tuples */
    uint16_t own_length; /* of the path to this container */
    uint8_t passage;     /* enum passage */
    uint8_t obstacle;    /* enum obstacle, of the container itself */
    bool is_root;        /* its items' names have no dot before them */
    bool has_key;        /* the next item is the value of the key that is in the path */
    uint8_t key_obstacle;
};

struct walk {
    struct pytorch_reading *reading;
    uint64_t visits_left;
    unsigned depth;
    uint16_t length; /* of the path */
    enum obstacle obstacle;
    /* The name that is looked for, to report where it occurs for the second time. */
    struct zt_text wanted;
    unsigned wanted_seen;
    char path[NAME_MAX_BYTES];
    struct level levels[PYTORCH_DEPTH_MAX];
};

/* --- the path --- */

static void add_bytes(struct walk *walk, struct zt_text text)
{
    if (text.length > sizeof(walk->path) - walk->length) {
        walk->obstacle = walk->obstacle != OBSTACLE_NONE ? walk->obstacle : OBSTACLE_LENGTH;
        return;
    }
    if (text.length > 0)
        memcpy(walk->path + walk->length, text.bytes, text.length);
    walk->length = (uint16_t)(walk->length + text.length);
}

/* Sets the path to the level's container, then adds a part. */
static void set_part(struct walk *walk, const struct level *level, struct zt_text part)
{
    walk->length = level->own_length;
    walk->obstacle = (enum obstacle)level->obstacle;
    if (!level->is_root)
        add_bytes(walk, zt_text_from("."));
    add_bytes(walk, part);
}

static void set_number(struct walk *walk, const struct level *level, uint64_t magnitude,
                       bool negative)
{
    char digits[NUMBER_SIZE];

    snprintf(digits, sizeof(digits), "%s%" PRIu64, negative && magnitude > 0 ? "-" : "", magnitude);
    set_part(walk, level, zt_text_from(digits));
}

static void set_key(struct walk *walk, struct level *level, pickle_value key)
{
    const struct pickle *pickle = &walk->reading->pickle;
    bool negative;
    uint64_t magnitude;

    switch (pickle_kind_of(key)) {
    case PICKLE_TEXT:
        set_part(walk, level, pickle_text(pickle, key));
        break;
    case PICKLE_INTEGER:
        magnitude = pickle_magnitude(pickle, key, &negative);
        set_number(walk, level, magnitude, negative);
        break;
    default:
        set_part(walk, level, (struct zt_text){NULL, 0});
        walk->obstacle = OBSTACLE_KEY;
    }
    level->has_key = true;
    level->key_obstacle = (uint8_t)walk->obstacle;
}

/* --- tensors --- */

static enum zt_status fail(const struct walk *walk, pickle_value value, const char *rule,
                           struct zt_error *error, const char *message)
{
    return pickle_fail(&walk->reading->pickle, pickle_position_of(value), rule, error, "%s",
                       message);
}

static enum zt_status check_name(const struct walk *walk, pickle_value value,
                                 struct zt_error *error)
{
    static const char *const obstacles[] = {
        [OBSTACLE_KEY] = "a tensor under a key that is neither text nor a number",
        [OBSTACLE_SET] = "a tensor in a set",
        [OBSTACLE_LENGTH] = "a tensor's name has more than 1024 bytes"};

    if (walk->obstacle != OBSTACLE_NONE)
        return fail(walk, value, "pt §Names Name", error, obstacles[walk->obstacle]);
    if (walk->length == 0 || memchr(walk->path, 0, walk->length) != NULL ||
        !zt_utf8_valid(walk->path, walk->length))
        return fail(walk, value, "pt §Names Name", error,
                    "a tensor's name is empty, holds a NUL or is not UTF-8");
    return ZT_OK;
}

static enum zt_status count_tensor(struct walk *walk, pickle_value value, struct zt_error *error)
{
    struct pytorch_reading *reading = walk->reading;

    reading->tensor_count++;
    reading->names_bytes += walk->length;
    if (reading->tensor_count > reading->pickle.length / TENSOR_BYTES_MIN + TENSOR_COUNT_BASE)
        return fail(walk, value, "pt §Tree Size", error,
                    "there are more tensors than the pickle's length allows");
    if (reading->names_bytes > NAMES_FACTOR * (uint64_t)reading->pickle.length + NAMES_BASE)
        return fail(walk, value, "pt §Tree Size", error,
                    "the tensors' names are longer than the pickle's length allows");
    return ZT_OK;
}

static enum zt_status take_tensor(struct walk *walk, pickle_value value, struct zt_error *error)
{
    const struct zt_text name = {walk->path, walk->length};
    enum zt_status status;

    if (walk->wanted.bytes != NULL) {
        walk->wanted_seen += zt_text_equal(name, walk->wanted);
        return walk->wanted_seen < 2 ? ZT_OK
                                     : fail(walk, value, "pt §Names DuplicateName", error,
                                            "two tensors have the same name");
    }
    status = check_name(walk, value, error);
    if (status != ZT_OK)
        return status; /* what is no name is not shown as one */
    status = count_tensor(walk, value, error);
    if (status == ZT_OK)
        status = pytorch_tensor_add(walk->reading, name, value, error);
    if (status != ZT_OK)
        zt_error_within(error, name, (struct zt_text){NULL, 0});
    return status;
}

/* --- containers --- */

static bool is_container(pickle_value value)
{
    const enum pickle_kind kind = pickle_kind_of(value);

    return kind == PICKLE_TUPLE || kind == PICKLE_LIST || kind == PICKLE_MAP || kind == PICKLE_SET;
}

/* Enters a container whose path is the present one. */
static enum zt_status enter(struct walk *walk, pickle_value value, enum passage passage,
                            bool is_root, struct zt_error *error)
{
    struct level *level;

    if (walk->depth == PYTORCH_DEPTH_MAX)
        return fail(walk, value, "pt §Tree Depth", error, "containers are nested deeper than 128");
    level = &walk->levels[walk->depth++];
    *level = (struct level){.own_length = walk->length,
                            .passage = (uint8_t)passage,
                            .obstacle = (uint8_t)walk->obstacle,
                            .is_root = is_root};
    if (passage == PASSAGE_SET)
        level->obstacle = OBSTACLE_SET;
    pickle_items_begin(&walk->reading->pickle, value, &level->items);
    return ZT_OK;
}

static enum passage passage_of(pickle_value value)
{
    switch (pickle_kind_of(value)) {
    case PICKLE_MAP:
        return PASSAGE_KEYS;
    case PICKLE_SET:
        return PASSAGE_SET;
    default:
        return PASSAGE_INDEXED;
    }
}

static enum zt_status visit(struct walk *walk, pickle_value value, bool is_root,
                            struct zt_error *error)
{
    const enum pickle_kind kind = pickle_kind_of(value);
    enum zt_status status = ZT_OK;

    if (walk->visits_left-- == 0)
        return fail(walk, value, "pt §Tree Size", error,
                    "shared values expand to more values than the pickle has bytes");
    if (kind == PICKLE_MAP)
        status = pytorch_keys_check(&walk->reading->pickle, value, walk->visits_left, error);
    if (status != ZT_OK)
        return status;
    if (is_container(value))
        return enter(walk, value, passage_of(value), is_root, error);
    if (kind == PICKLE_TENSOR || kind == PICKLE_STORAGE)
        return take_tensor(walk, value, error);
    return ZT_OK;
}

/* The entries of a value, as entries of the level's container: OrderedDict(entries), and states of
 * TorchScript's records. */
static enum zt_status merge(struct walk *walk, const struct level *level, pickle_value value,
                            struct zt_error *error)
{
    enum passage passage = passage_of(value);

    if (walk->visits_left-- == 0)
        return fail(walk, value, "pt §Tree Size", error,
                    "shared values expand to more values than the pickle has bytes");
    if (pickle_kind_of(value) == PICKLE_LIST)
        passage = PASSAGE_PAIRS;
    walk->length = level->own_length;
    walk->obstacle = (enum obstacle)level->obstacle;
    return enter(walk, value, passage, level->is_root, error);
}

/* A key of a map. Most are text; one that holds tensors is refused as a place for them. */
static enum zt_status visit_key(struct walk *walk, struct level *level, pickle_value key,
                                struct zt_error *error)
{
    set_key(walk, level, key);
    return visit(walk, key, false, error);
}

static enum zt_status visit_keyed_value(struct walk *walk, struct level *level, pickle_value value,
                                        struct zt_error *error)
{
    level->has_key = false;
    walk->obstacle = (enum obstacle)level->key_obstacle;
    return visit(walk, value, false, error);
}

/* An entry of a list of pairs: [key, value]. */
static enum zt_status visit_pair(struct walk *walk, struct level *level, pickle_value pair,
                                 struct zt_error *error)
{
    const struct pickle *pickle = &walk->reading->pickle;
    struct pickle_items items;
    pickle_value key;
    pickle_value value = 0;
    pickle_value more;
    enum zt_status status;

    if (pickle_kind_of(pair) != PICKLE_LIST && pickle_kind_of(pair) != PICKLE_TUPLE)
        return fail(walk, pair, "pt §Pickle Call", error, "a dictionary's entry is not a pair");
    pickle_items_begin(pickle, pair, &items);
    if (!pickle_items_next(pickle, &items, &key) || !pickle_items_next(pickle, &items, &value) ||
        pickle_items_next(pickle, &items, &more))
        return fail(walk, pair, "pt §Pickle Call", error, "a dictionary's entry is not a pair");
    set_key(walk, level, key);
    if (is_container(key))
        return fail(walk, key, "pt §Names Name", error, "a key that is a container");
    status = visit(walk, key, false, error);
    return status == ZT_OK ? visit_keyed_value(walk, level, value, error) : status;
}

/* --- the walk --- */

static enum zt_status step(struct walk *walk, struct zt_error *error)
{
    const struct pickle *pickle = &walk->reading->pickle;
    struct level *level = &walk->levels[walk->depth - 1];
    pickle_value value;

    if (!pickle_items_next(pickle, &level->items, &value)) {
        walk->depth--;
        return ZT_OK;
    }
    switch ((enum passage)level->passage) {
    case PASSAGE_KEYS:
        if (level->has_key)
            return visit_keyed_value(walk, level, value, error);
        if (value != 0)
            return visit_key(walk, level, value, error);
        return pickle_items_next(pickle, &level->items, &value) ? merge(walk, level, value, error)
                                                                : ZT_OK;
    case PASSAGE_PAIRS:
        return visit_pair(walk, level, value, error);
    default:
        set_number(walk, level, level->index++, false);
        return visit(walk, value, false, error);
    }
}

static enum zt_status run(struct walk *walk, pickle_value root, struct zt_error *error)
{
    enum zt_status status;

    if (pickle_kind_of(root) == PICKLE_TENSOR || pickle_kind_of(root) == PICKLE_STORAGE)
        add_bytes(walk, zt_text_from("data"));
    status = visit(walk, root, true, error);
    while (walk->depth > 0 && status == ZT_OK)
        status = step(walk, error);
    return status;
}

/* Rejects equal names. They are in the arena, so a second walk finds where the name comes again. */
static enum zt_status reject_duplicates(struct walk *walk, pickle_value root,
                                        struct zt_error *error)
{
    struct zt_builder *builder = walk->reading->builder;
    struct zt_named_array objects =
        zt_objects_named(builder->objects, builder->model->object_count);
    enum zt_status status = zt_names_sort(&objects, error);
    size_t second;

    if (status != ZT_OK)
        return status;
    second = zt_names_duplicate(&objects);
    if (second == 0)
        return ZT_OK;
    *walk = (struct walk){.reading = walk->reading,
                          .visits_left = walk->reading->pickle.length,
                          .wanted = zt_names_at(&objects, second)};
    status = run(walk, root, error);
    if (status == ZT_INVALID)
        zt_error_at(error, walk->wanted, (struct zt_text){NULL, 0});
    assert(status != ZT_OK); /* the first walk found both */
    return status;
}

enum zt_status pytorch_tree_read(struct pytorch_reading *reading, pickle_value root,
                                 struct zt_error *error)
{
    struct walk *walk = malloc(sizeof(*walk));
    enum zt_status status;

    if (walk == NULL)
        return zt_fail_memory(error, "a walk");
    *walk = (struct walk){.reading = reading, .visits_left = reading->pickle.length};
    status = run(walk, root, error);
    if (status == ZT_OK)
        status = reject_duplicates(walk, root, error);
    free(walk);
    return status;
}
