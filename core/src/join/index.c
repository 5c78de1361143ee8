/* Reading an index: a JSON object whose member "weight_map" names the file of each tensor, as
 * written next to the parts by save_pretrained of Hugging Face's transformers. All other members
 * but "metadata" are ignored.
 *
 * No tree is built: names stay where they are in the file's bytes. An index of n bytes takes at
 * most 8 n bytes and 64 KiB. */
#include "join/index.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/memory.h"
#include "base/relative_path.h"
#include "cbor/json_read.h"
#include "model/name_sort.h"
#include "zt/digest.h"

#define SYNTAX    "index §Json JsonSyntax"
#define SCHEMA    "index §Json Schema"
#define DUPLICATE "index §Json DuplicateKey"
#define FILE_NAME "index §Parts FileName"
/* The longest name of a file on Linux. */
#define FILE_NAME_MAX 255
/* A power of two of at least twice ZT_PARTS_MAX. */
#define SLOTS 2048

static_assert(SLOTS >= 2 * ZT_PARTS_MAX, "a free slot is always near");

/* An index that is being read. Parts are numbered in the order of the index and sorted at the
 * end. */
struct reading {
    struct zt_json_reader json;
    struct zt_index *index;
    size_t entry_capacity;
    size_t part_capacity;
    uint32_t last_part;    /* most tensors are in the same part as the one before */
    uint16_t slots[SLOTS]; /* by the hash of the name: one more than the part's number; 0: free */
    bool has_weight_map;
    bool has_metadata;
};

/* --- parts --- */

static struct zt_text ending(void)
{
    return zt_text_from(".index.json");
}

/* Parts are in the index's folder or below it. One may be named in several ways, as "p" and "./p":
 * the name becomes the shortest. */
static enum zt_status clean_name(struct reading *reading, struct zt_json_item *value,
                                 struct zt_error *error)
{
    char *bytes = reading->index->bytes;
    struct zt_text *name = &value->text;
    const char *fault = zt_relative_path_clean(bytes + (name->bytes - bytes), &name->length);

    if (fault == NULL && name->length > FILE_NAME_MAX)
        fault = "has more than 255 bytes";
    if (fault == NULL && zt_text_ends_with(*name, ending()))
        fault = "refers to an index";
    return fault == NULL ? ZT_OK
                         : zt_fail(error, ZT_INVALID, FILE_NAME, value->offset,
                                   "the name of a part %s", fault);
}

static enum zt_status add_part(struct reading *reading, const struct zt_json_item *value,
                               struct zt_error *error)
{
    struct zt_index *index = reading->index;

    if (index->part_count == ZT_PARTS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, value->offset, "an index of more than %d parts",
                       ZT_PARTS_MAX);
    if (zt_array_reserve(&index->parts, &reading->part_capacity, index->part_count + 1,
                         sizeof(*index->parts), ZT_PARTS_MAX) != ZT_OK)
        return zt_fail_memory(error, "an index");
    index->parts[index->part_count++] = value->text;
    return ZT_OK;
}

/* Sets last_part to the part that a value of the map names. */
static enum zt_status find_part(struct reading *reading, const struct zt_json_item *value,
                                struct zt_error *error)
{
    const struct zt_index *index = reading->index;
    enum zt_status status;
    size_t slot;

    assert(index->part_count == 0 || reading->last_part < index->part_count);
    if (index->part_count > 0 && zt_text_equal(index->parts[reading->last_part], value->text))
        return ZT_OK;
    slot = (size_t)zt_xxh3(value->text.bytes, value->text.length) % SLOTS;
    for (; reading->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
        const uint32_t part = reading->slots[slot] - 1u;

        if (zt_text_equal(index->parts[part], value->text)) {
            reading->last_part = part;
            return ZT_OK;
        }
    }
    status = add_part(reading, value, error);
    if (status != ZT_OK)
        return status;
    reading->slots[slot] = (uint16_t)index->part_count;
    reading->last_part = index->part_count - 1;
    return ZT_OK;
}

/* --- members --- */

static enum zt_status add_entry(struct reading *reading, const struct zt_json_item *key,
                                struct zt_error *error)
{
    struct zt_index *index = reading->index;

    assert(reading->last_part < index->part_count);
    if (zt_array_reserve(&index->entries, &reading->entry_capacity, (size_t)index->entry_count + 1,
                         sizeof(*index->entries), UINT32_MAX) != ZT_OK)
        return zt_fail_memory(error, "an index");
    index->entries[index->entry_count++] =
        (struct zt_index_entry){key->text.bytes, (uint32_t)key->text.length, reading->last_part};
    return ZT_OK;
}

static enum zt_status read_weight_map(struct reading *reading, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item key;
    struct zt_json_item value;
    bool more = true;

    for (;;) {
        enum zt_status status = zt_json_member(&reading->json, &walk, &more, &key, error);

        if (status != ZT_OK || !more)
            return status;
        status = zt_json_next(&reading->json, &value, error);
        if (status == ZT_OK && value.kind != ZT_JSON_TEXT)
            status = zt_fail(error, ZT_INVALID, SCHEMA, value.offset,
                             "the file of a tensor is not a text");
        if (status == ZT_OK)
            status = clean_name(reading, &value, error);
        if (status == ZT_OK)
            status = find_part(reading, &value, error);
        if (status == ZT_OK)
            status = add_entry(reading, &key, error);
        if (status != ZT_OK) {
            zt_error_at(error, key.text, (struct zt_text){NULL, 0});
            return status;
        }
    }
}

/* Moves to the first byte of the next value and returns it; NUL at the end. */
static char next_byte(struct zt_json_reader *json)
{
    while (json->position < json->length && zt_json_is_space(json->bytes[json->position]))
        json->position++;
    return json->position < json->length ? json->bytes[json->position] : '\0';
}

/* Some writers state a whole number as a fraction; any other value is ignored. */
static enum zt_status read_total_size(struct reading *reading, struct zt_error *error)
{
    const char first = next_byte(&reading->json);
    struct zt_json_item value;
    enum zt_status status;

    if (first == '{' || first == '[')
        return zt_json_skip(&reading->json, error);
    status = zt_json_next(&reading->json, &value, error);
    if (status != ZT_OK)
        return status;
    if (value.kind == ZT_JSON_NUMBER && zt_text_ends_with(value.text, zt_text_from(".0")))
        value.text.length -= 2;
    reading->index->has_total_size = zt_json_uint(&value, &reading->index->total_size_bytes);
    return ZT_OK;
}

static enum zt_status read_metadata(struct reading *reading, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item item;
    bool more = true;
    bool has_size = false;

    for (;;) {
        enum zt_status status = zt_json_member(&reading->json, &walk, &more, &item, error);

        if (status != ZT_OK || !more)
            return status;
        if (!zt_text_is(item.text, "total_size")) {
            status = zt_json_skip(&reading->json, error);
        } else if (has_size) {
            status = zt_fail(error, ZT_INVALID, DUPLICATE, item.offset + 1,
                             "\"total_size\" occurs twice");
        } else {
            has_size = true;
            status = read_total_size(reading, error);
        }
        if (status != ZT_OK)
            return status;
    }
}

/* Steps into the object that is the value of a member of the root. */
static enum zt_status enter(struct reading *reading, const struct zt_json_item *key, bool *had,
                            struct zt_error *error)
{
    struct zt_json_item value;
    enum zt_status status;

    if (*had)
        return zt_fail(error, ZT_INVALID, DUPLICATE, key->offset + 1, "\"%.*s\" occurs twice",
                       (int)key->text.length, key->text.bytes);
    *had = true;
    status = zt_json_next(&reading->json, &value, error);
    if (status == ZT_OK && value.kind != ZT_JSON_OBJECT)
        status = zt_fail(error, ZT_INVALID, SCHEMA, value.offset, "\"%.*s\" is not an object",
                         (int)key->text.length, key->text.bytes);
    return status;
}

static enum zt_status read_member(struct reading *reading, const struct zt_json_item *key,
                                  struct zt_error *error)
{
    enum zt_status status;

    if (zt_text_is(key->text, "weight_map")) {
        status = enter(reading, key, &reading->has_weight_map, error);
        return status == ZT_OK ? read_weight_map(reading, error) : status;
    }
    /* Some writers state null where they have no metadata. */
    if (zt_text_is(key->text, "metadata") && next_byte(&reading->json) == '{') {
        status = enter(reading, key, &reading->has_metadata, error);
        return status == ZT_OK ? read_metadata(reading, error) : status;
    }
    return zt_json_skip(&reading->json, error);
}

/* --- the root --- */

static enum zt_status read_root(struct reading *reading, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item item;
    bool more = true;
    enum zt_status status = zt_json_next(&reading->json, &item, error);

    if (status == ZT_OK && item.kind != ZT_JSON_OBJECT)
        return zt_fail(error, ZT_INVALID, SCHEMA, item.offset, "an index is an object");
    while (status == ZT_OK && more) {
        status = zt_json_member(&reading->json, &walk, &more, &item, error);
        if (status == ZT_OK && more)
            status = read_member(reading, &item, error);
    }
    if (status != ZT_OK)
        return status;
    status = zt_json_end(&reading->json, error);
    if (status == ZT_OK && reading->index->entry_count == 0)
        status = zt_fail(error, ZT_INVALID, SCHEMA, 0,
                         reading->has_weight_map ? "\"weight_map\" is empty"
                                                 : "no member \"weight_map\"");
    return status;
}

/* --- order --- */

static struct zt_named_array entries_of(const struct zt_index *index)
{
    static_assert(offsetof(struct zt_index_entry, name) == 0, "the name comes first");

    return (struct zt_named_array){index->entries, index->entry_count, sizeof(*index->entries),
                                   offsetof(struct zt_index_entry, name_length)};
}

static enum zt_status sort_entries(struct zt_index *index, struct zt_error *error)
{
    const struct zt_named_array array = entries_of(index);
    enum zt_status status = zt_names_sort(&array, error);
    const size_t second = status == ZT_OK ? zt_names_duplicate(&array) : 0;
    uint64_t a, b;

    if (second == 0)
        return status;
    a = zt_index_position(index, &index->entries[second - 1]);
    b = zt_index_position(index, &index->entries[second]);
    zt_fail(error, ZT_INVALID, DUPLICATE, a > b ? a : b, "the index names a tensor twice");
    zt_error_at(error, zt_names_at(&array, second), (struct zt_text){NULL, 0});
    return ZT_INVALID;
}

/* A part's name and the number by which the entries know it. */
struct numbered {
    struct zt_text name;
    uint32_t number;
};

static int compare_numbered(const void *a, const void *b)
{
    return zt_text_compare(((const struct numbered *)a)->name, ((const struct numbered *)b)->name);
}

static enum zt_status sort_parts(struct zt_index *index, struct zt_error *error)
{
    struct numbered *sorted = calloc(index->part_count, sizeof(*sorted));
    uint32_t places[ZT_PARTS_MAX];

    assert(index->part_count > 0 && index->part_count <= ZT_PARTS_MAX);
    if (sorted == NULL)
        return zt_fail_memory(error, "an index");
    for (uint32_t i = 0; i < index->part_count; i++)
        sorted[i] = (struct numbered){index->parts[i], i};
    qsort(sorted, index->part_count, sizeof(*sorted), compare_numbered);
    for (uint32_t i = 0; i < index->part_count; i++) {
        index->parts[i] = sorted[i].name;
        places[sorted[i].number] = i;
    }
    for (uint32_t i = 0; i < index->entry_count; i++)
        index->entries[i].part = places[index->entries[i].part];
    free(sorted);
    return ZT_OK;
}

/* --- the whole --- */

static enum zt_status read_bytes(struct zt_index *index, struct zt_source *source,
                                 struct zt_error *error)
{
    enum zt_status status;

    index->length = zt_source_size(source);
    if (index->length > ZT_INDEX_BYTES_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "an index of %" PRIu64 " bytes, more than %" PRIu64, index->length,
                       ZT_INDEX_BYTES_MAX);
    index->bytes = malloc(index->length > 0 ? (size_t)index->length : 1);
    if (index->bytes == NULL)
        return zt_fail_memory(error, "an index");
    status = zt_source_read_at(source, 0, index->bytes, (size_t)index->length, error);
    if (status == ZT_OK)
        index->hash = zt_xxh3(index->bytes, (size_t)index->length);
    return status;
}

/* The index is all of the file, so that JSON which ends too early has been cut off. */
static enum zt_status explain_end(const struct zt_index *index, struct zt_error *error)
{
    if (error == NULL || error->offset != index->length || strcmp(error->rule, SYNTAX) != 0)
        return ZT_INVALID;
    if (index->length == 0)
        return zt_fail(error, ZT_INVALID, SYNTAX, 0, "the file is empty");
    return zt_fail(error, ZT_INVALID, SYNTAX, error->offset, CUT_OFF "%s", error->message);
}

static enum zt_status parse(struct zt_index *index, struct zt_error *error)
{
    static const struct zt_json_rules rules = {SYNTAX, "index §Json JsonDepth"};
    struct reading reading = {.index = index};
    enum zt_status status;

    reading.json =
        (struct zt_json_reader){.bytes = index->bytes,
                                .length = (size_t)index->length,
                                .takes_non_finite = true, /* Python writes NaN and Infinity */
                                .rules = &rules};
    status = read_root(&reading, error);
    if (status == ZT_INVALID)
        return explain_end(index, error);
    if (status == ZT_OK)
        status = sort_entries(index, error);
    if (status == ZT_OK)
        status = sort_parts(index, error);
    if (status == ZT_OK)
        zt_array_trim(&index->entries, &reading.entry_capacity, index->entry_count,
                      sizeof(*index->entries));
    return status;
}

enum zt_status zt_index_read(struct zt_source *source, struct zt_index **out_index,
                             struct zt_error *error)
{
    struct zt_index *index = calloc(1, sizeof(*index));
    enum zt_status status;

    if (index == NULL)
        return zt_fail_memory(error, "an index");
    status = read_bytes(index, source, error);
    if (status == ZT_OK)
        status = parse(index, error);
    if (status != ZT_OK) {
        zt_index_free(index);
        return status;
    }
    *out_index = index;
    return ZT_OK;
}

void zt_index_free(struct zt_index *index)
{
    if (index == NULL)
        return;
    free(index->bytes);
    free(index->entries);
    free(index->parts);
    free(index);
}

const struct zt_text *zt_index_parts(const struct zt_index *index, size_t *out_count)
{
    *out_count = index->part_count;
    return index->parts;
}

bool zt_index_total_size(const struct zt_index *index, uint64_t *out_bytes)
{
    if (index->has_total_size)
        *out_bytes = index->total_size_bytes;
    return index->has_total_size;
}

/* --- parts that are numbered --- */

/* Without number, count and extension: what all parts of a series begin and end with. */
struct series {
    struct zt_text stem;
    struct zt_text extension;
    uint32_t count;
};

static bool read_series(struct zt_text name, struct series *out_series)
{
    struct zt_text base = name;
    uint32_t number;

    while (base.length > 0 && base.bytes[base.length - 1] != '.')
        base.length--;
    if (base.length == 0)
        return false;
    base.length--;
    out_series->extension = (struct zt_text){name.bytes + base.length, name.length - base.length};
    out_series->stem.bytes = name.bytes;
    return zt_part_name_split(base, &out_series->stem.length, &number, &out_series->count);
}

uint32_t zt_index_series(const struct zt_index *index)
{
    struct series first;
    struct series other;

    assert(index->part_count > 0);
    if (!read_series(index->parts[0], &first) || first.count > ZT_PARTS_MAX)
        return 0;
    for (uint32_t i = 1; i < index->part_count; i++)
        if (!read_series(index->parts[i], &other) || other.count != first.count ||
            !zt_text_equal(other.stem, first.stem) ||
            !zt_text_equal(other.extension, first.extension))
            return 0;
    return first.count;
}

bool zt_index_unnamed(const struct zt_index *index, uint32_t number,
                      char out_name[ZT_PART_NAME_SIZE])
{
    struct series series;

    if (!read_series(index->parts[0], &series))
        assert(!"the parts are a series");
    assert(number >= 1 && number <= series.count);
    snprintf(out_name, ZT_PART_NAME_SIZE, "%.*s-%05" PRIu32 "-of-%05" PRIu32 "%.*s",
             (int)series.stem.length, series.stem.bytes, number, series.count,
             (int)series.extension.length, series.extension.bytes);
    return zt_index_part(index, zt_text_from(out_name)) == index->part_count;
}

/* --- looking things up --- */

const struct zt_index_entry *zt_index_find(const struct zt_index *index, struct zt_text tensor)
{
    const struct zt_named_array array = entries_of(index);

    return zt_names_find(&array, tensor);
}

uint64_t zt_index_position(const struct zt_index *index, const struct zt_index_entry *entry)
{
    assert(entry->name >= index->bytes && entry->name <= index->bytes + index->length);
    return (uint64_t)(entry->name - index->bytes);
}

uint32_t zt_index_part(const struct zt_index *index, struct zt_text name)
{
    uint32_t low = 0;
    uint32_t high = index->part_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = zt_text_compare(index->parts[middle], name);

        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == high);
    return index->part_count;
}
