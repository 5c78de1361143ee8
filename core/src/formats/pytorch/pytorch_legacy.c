/* PyTorch up to 1.5: five pickles one after another (a magic number, the version 1001, facts of the
 * system, what was saved, the list of storage keys), then for each key its number of elements in 8
 * bytes and its bytes, to the end of the file.
 *
 * The pickles are the manifest. Data is little-endian; the system information is ignored. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index_sort.h"
#include "bytes/cursor.h"
#include "formats/pytorch/pytorch.h"

#define PICKLE_COUNT     5
#define PROTOCOL_VERSION 1001
#define COUNT_BYTES      8

/* A storage of the list. */
struct stored {
    struct zt_text key;
    uint64_t offset; /* absolute, of its bytes */
    uint64_t length; /* in bytes; what the first tensor that names it says */
    uint64_t count;
    bool is_used;
};

struct reading {
    struct pytorch_reading shared;
    struct zt_source *source;
    struct stored *storages; /* in the list's order */
    uint32_t storage_count;
    uint32_t *by_key;
    uint32_t position_of_keys; /* of the last pickle */
};

/* --- the pickles --- */

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    const uint64_t size = zt_source_size(source);
    const uint64_t limit = size < PICKLE_BYTES_MAX ? size : PICKLE_BYTES_MAX - 1;
    uint64_t position = 0;
    enum zt_status status = ZT_OK;

    (void)state;
    for (unsigned i = 0; i < PICKLE_COUNT && status == ZT_OK; i++)
        status = pickle_measure(source, &position, limit, error);
    if (status == ZT_OK)
        *out_place = (struct zt_manifest_place){.offset = 0, .length = position};
    return status;
}

static enum zt_status run_head(struct pickle *pickle, struct zt_error *error)
{
    pickle_value magic;
    pickle_value version = 0;
    pickle_value facts = 0;
    uint64_t number = 0;
    enum zt_status status = pickle_run(pickle, &magic, error); /* open.c has compared it */

    if (status == ZT_OK)
        status = pickle_run(pickle, &version, error);
    if (status == ZT_OK &&
        (!pickle_size_of(pickle, version, &number) || number != PROTOCOL_VERSION))
        return pickle_fail(pickle, pickle_position_of(version), "pt §Legacy Version", error,
                           "the version is not %d", PROTOCOL_VERSION);
    if (status == ZT_OK)
        status = pickle_run(pickle, &facts, error);
    if (status == ZT_OK && pickle_kind_of(facts) != PICKLE_MAP)
        return pickle_fail(pickle, pickle_position_of(facts), "pt §Legacy Header", error,
                           "the system information is not a map");
    return status;
}

/* --- the list of keys --- */

static bool is_key_after(const void *context, uint32_t a, uint32_t b)
{
    const struct stored *storages = context;

    return zt_text_compare(storages[a].key, storages[b].key) > 0;
}

/* No more keys than persistent ids, because each key is used and differs from all others. */
static uint32_t count_ids(const struct pickle *pickle)
{
    uint32_t count = 0;

    for (uint32_t at = pickle_storage_next(pickle, 0); at != 0;
         at = pickle_storage_next(pickle, at))
        count++;
    return count;
}

static enum zt_status take_keys(struct reading *reading, pickle_value keys, struct zt_error *error)
{
    const struct pickle *pickle = &reading->shared.pickle;
    const uint32_t most = count_ids(pickle);
    struct pickle_items items;
    pickle_value key;

    if (pickle_kind_of(keys) != PICKLE_LIST)
        return pickle_fail(pickle, pickle_position_of(keys), "pt §Legacy Keys", error,
                           "the storages' keys are not a list");
    reading->storages = calloc((size_t)most + 1, sizeof(*reading->storages));
    if (reading->storages == NULL)
        return zt_fail_memory(error, "the storages of a file");
    pickle_items_begin(pickle, keys, &items);
    while (pickle_items_next(pickle, &items, &key)) {
        if (pickle_kind_of(key) != PICKLE_TEXT || reading->storage_count == most)
            return pickle_fail(pickle, pickle_position_of(key), "pt §Legacy Keys", error,
                               "a key is not a text, or names a storage that no tensor uses");
        reading->storages[reading->storage_count++].key = pickle_text(pickle, key);
    }
    return ZT_OK;
}

static enum zt_status sort_keys(struct reading *reading, struct zt_error *error)
{
    const struct zt_index_order order = {is_key_after, reading->storages};

    if (zt_index_make(reading->storage_count, &order, &reading->by_key) != ZT_OK)
        return zt_fail_memory(error, "the order of storages");
    return ZT_OK;
}

static struct stored *find_key(const struct reading *reading, struct zt_text key)
{
    uint32_t low = 0;
    uint32_t high = reading->storage_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        struct stored *stored = &reading->storages[reading->by_key[middle]];
        const int order = zt_text_compare(stored->key, key);

        if (order == 0)
            return stored;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* --- storages --- */

static enum zt_status use_storages(struct reading *reading, struct zt_error *error)
{
    struct pickle *pickle = &reading->shared.pickle;

    for (uint32_t at = pickle_storage_next(pickle, 0); at != 0;
         at = pickle_storage_next(pickle, at)) {
        struct pickle_storage storage;
        struct stored *stored;
        uint64_t length;

        pickle_storage_read(pickle, at, &storage);
        stored = find_key(reading, storage.key);
        if (stored == NULL)
            return pickle_fail(pickle, storage.position, "pt §Storage Missing", error,
                               "the file lacks a storage that a tensor uses");
        length = storage.count * storage.type->width_bytes;
        if (stored->is_used && (stored->count != storage.count || stored->length != length))
            return pickle_fail(pickle, storage.position, "pt §Storage Size", error,
                               "a storage has two different sizes");
        stored->count = storage.count;
        stored->length = length;
        stored->is_used = true;
        pickle_storage_place(pickle, at, (uint32_t)(stored - reading->storages));
    }
    return ZT_OK;
}

static enum zt_status pass_storage(struct reading *reading, struct stored *stored,
                                   struct zt_cursor *cursor, struct zt_error *error)
{
    const uint64_t at = cursor->position;
    uint64_t count = 0;
    enum zt_status status;

    if (!stored->is_used) /* of two equal keys, only one is found */
        return pickle_fail(&reading->shared.pickle, reading->position_of_keys, "pt §Legacy Keys",
                           error, "a key names a storage that no tensor uses, or occurs twice");
    status = zt_cursor_u64(cursor, &count, error);
    if (status != ZT_OK)
        return status;
    if (count != stored->count)
        return zt_fail(error, ZT_INVALID, "pt §Storage Size", at,
                       "a storage of %" PRIu64 " elements, but the pickle says %" PRIu64, count,
                       stored->count);
    stored->offset = cursor->position;
    return zt_cursor_skip(cursor, stored->length, error);
}

static enum zt_status pass_storages(struct reading *reading, uint64_t first_at,
                                    struct zt_error *error)
{
    struct zt_cursor cursor;
    enum zt_status status = zt_cursor_open(&cursor, reading->source, error);

    if (status != ZT_OK)
        return status;
    cursor.position = first_at;
    cursor.bounds_rule = "pt §Storage Bounds";
    for (uint32_t i = 0; i < reading->storage_count && status == ZT_OK; i++)
        status = pass_storage(reading, &reading->storages[i], &cursor, error);
    if (status == ZT_OK && zt_cursor_left(&cursor) > 0)
        status = zt_fail(error, ZT_INVALID, "pt §Legacy Trailing", cursor.position,
                         "%" PRIu64 " bytes follow the last storage", zt_cursor_left(&cursor));
    zt_cursor_close(&cursor);
    return status;
}

static void find_blob(const void *storages, uint32_t place, struct pytorch_blob *out_blob)
{
    const struct reading *reading = storages;
    const struct stored *stored = &reading->storages[place];

    *out_blob = (struct pytorch_blob){
        .offset = stored->offset, .stored_length = stored->length, .length = stored->length};
}

/* --- the whole --- */

static enum zt_status read_storages(struct reading *reading, struct zt_error *error)
{
    struct pickle *pickle = &reading->shared.pickle;
    pickle_value keys = 0;
    enum zt_status status;

    reading->position_of_keys = pickle->position;
    status = pickle_run(pickle, &keys, error);
    pickle_drop_stack(pickle);
    if (status == ZT_OK)
        status = take_keys(reading, keys, error);
    if (status == ZT_OK)
        status = sort_keys(reading, error);
    if (status == ZT_OK)
        status = use_storages(reading, error);
    if (status == ZT_OK)
        status = pass_storages(reading, pickle->length, error);
    return status;
}

static enum zt_status read_pickles(void *state, struct zt_builder *builder, struct zt_error *error)
{
    struct reading *reading = state;
    struct pickle *pickle = &reading->shared.pickle;
    const uint64_t length = builder->model->manifest_length;
    pickle_value root = 0;
    enum zt_status status;

    reading->shared.builder = builder;
    reading->shared.find = find_blob;
    reading->shared.storages = reading;
    pickle_init(pickle, builder->model->storage->manifest, (size_t)length, 0);
    pickle->is_legacy = true;
    status = run_head(pickle, error);
    if (status == ZT_OK)
        status = pickle_run(pickle, &root, error);
    if (status == ZT_OK)
        status = read_storages(reading, error);
    if (status != ZT_OK)
        return status;
    pytorch_set_budget(&reading->shared, length,
                       (sizeof(*reading->storages) + sizeof(*reading->by_key)) *
                           (uint64_t)reading->storage_count);
    return pytorch_tree_read(&reading->shared, root, error);
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_PYTORCH,
    .name = "pytorch",
    .duplicate_rule = "pt §Names DuplicateName",
    .locate = locate,
    .read = read_pickles,
    .check = pytorch_drop_manifest,
};

enum zt_status pytorch_legacy_open(struct zt_source *source, struct zt_model **out_model,
                                   struct zt_error *error)
{
    struct reading reading = {.source = source};
    enum zt_status status = zt_reader_open(&reader, &reading, source, out_model, error);

    pickle_free(&reading.shared.pickle);
    free(reading.storages);
    free(reading.by_key);
    return status;
}
