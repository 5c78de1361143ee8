/* ONNX: external data (docs/ExternalData.md of ONNX). A tensor names a file and a range of it by
 * entries of key and value; each file becomes a shard of the model.
 *
 * A file lies beside the model or below its folder: absolute paths, ".." and hidden files are
 * refused. Whoever opens it sees to it that no link leads elsewhere. */
#include "base/decimal.h"
#include "formats/onnx/onnx.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/index_sort.h"
#include "base/relative_path.h"

#define LOCATION_RULE "onnx §External Location"
#define ENTRY_RULE    "onnx §External Entry"
/* The longest key that is looked at; keys of later versions may be longer. */
#define KEY_MAX_BYTES 16
/* 2^64 - 1 in decimal. */
#define NUMBER_MAX_BYTES 20

/* A file of external data, as one or more tensors in a row name it. */
struct onnx_location {
    const char *name; /* in the model's arena */
    uint32_t length;
    uint32_t shard;     /* its place in the model's table, set when that is made */
    uint64_t end_bytes; /* where the last byte ends that a tensor needs */
    uint64_t at;        /* of the first entry of its first tensor */
    const char *digest; /* in the model's arena; NULL: no checksum is stated */
    uint32_t digest_length;
};

/* --- one entry --- */

struct entry {
    struct onnx_reading *reading;
    struct onnx_field key; /* number 0: none yet */
    struct onnx_field value;
};

static enum zt_status keep_field(struct onnx_field *kept, const struct onnx_field *field,
                                 struct zt_error *error)
{
    if (kept->number != 0)
        return zt_fail(error, ZT_INVALID, ENTRY_RULE, field->at,
                       "an entry of external data has two keys or values");
    *kept = *field;
    return ZT_OK;
}

static enum zt_status read_key(void *context, const struct onnx_field *field,
                               struct zt_error *error)
{
    struct entry *entry = context;

    return keep_field(&entry->key, field, error);
}

static enum zt_status read_value(void *context, const struct onnx_field *field,
                                 struct zt_error *error)
{
    struct entry *entry = context;

    return keep_field(&entry->value, field, error);
}

static enum zt_status take_location(struct onnx_reading *reading, const struct onnx_field *value,
                                    struct onnx_external *external, struct zt_error *error)
{
    const char *fault;
    enum zt_status status;

    if (value->length > sizeof(external->location))
        return zt_fail(error, ZT_INVALID, LOCATION_RULE, value->offset,
                       "the name of a data file has %" PRIu64 " bytes, more than %d", value->length,
                       ONNX_LOCATION_MAX);
    status = onnx_bytes_read(reading, value, external->location, error);
    if (status != ZT_OK)
        return status;
    external->location_length = (size_t)value->length;
    external->has_location = true;
    fault = zt_relative_path_clean(external->location, &external->location_length);
    return fault == NULL ? ZT_OK
                         : zt_fail(error, ZT_INVALID, LOCATION_RULE, value->offset,
                                   "the location of external data %s", fault);
}

/* A text of another length is no SHA-1, and cannot be checked; it is kept as an empty one. */
static enum zt_status take_checksum(struct onnx_reading *reading, const struct onnx_field *value,
                                    struct onnx_external *external, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    external->has_checksum = true;
    if (value->length != sizeof(external->checksum))
        return ZT_OK;
    status = onnx_bytes_read(reading, value, external->checksum, error);
    if (status == ZT_OK)
        external->checksum_length = sizeof(external->checksum);
    return status;
}

static enum zt_status take_number(struct onnx_reading *reading, const struct onnx_field *value,
                                  uint64_t *out_number, struct zt_error *error)
{
    char digits[NUMBER_MAX_BYTES];
    const bool is_short = value->length <= sizeof(digits);
    const enum zt_status status = is_short ? onnx_bytes_read(reading, value, digits, error) : ZT_OK;

    if (status != ZT_OK)
        return status;
    if (!is_short ||
        !zt_decimal_read((struct zt_text){digits, (size_t)value->length}, UINT64_MAX, out_number))
        return zt_fail(error, ZT_INVALID, ENTRY_RULE, value->offset,
                       "the offset or length of external data is not a whole number below 2^64");
    return ZT_OK;
}

static enum zt_status fail_twice(const struct entry *entry, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, ENTRY_RULE, entry->key.at,
                   "a key of external data occurs twice");
}

/* Keys other than these four are passed over. */
static enum zt_status take_entry(const struct entry *entry, struct zt_text key,
                                 struct onnx_external *external, struct zt_error *error)
{
    struct onnx_reading *reading = entry->reading;

    reading->cursor.position = entry->value.offset;
    if (zt_text_is(key, "location")) {
        if (external->has_location)
            return fail_twice(entry, error);
        return take_location(reading, &entry->value, external, error);
    }
    if (zt_text_is(key, "offset")) {
        if (external->has_offset)
            return fail_twice(entry, error);
        external->has_offset = true;
        return take_number(reading, &entry->value, &external->offset, error);
    }
    if (zt_text_is(key, "length")) {
        if (external->has_length)
            return fail_twice(entry, error);
        external->has_length = true;
        return take_number(reading, &entry->value, &external->length, error);
    }
    if (zt_text_is(key, "checksum")) {
        if (external->has_checksum)
            return fail_twice(entry, error);
        return take_checksum(reading, &entry->value, external, error);
    }
    return ZT_OK;
}

enum zt_status onnx_external_read(struct onnx_reading *reading, const struct onnx_field *field,
                                  struct onnx_external *external, struct zt_error *error)
{
    static const struct onnx_known_field known[] = {
        {1, ONNX_BYTES, read_key},
        {2, ONNX_BYTES, read_value},
    };
    struct entry entry = {.reading = reading};
    char key[KEY_MAX_BYTES];
    enum zt_status status =
        onnx_message_read(reading, field, known, sizeof(known) / sizeof(known[0]), &entry, error);

    if (external->at == 0)
        external->at = field->at;
    if (status == ZT_OK && entry.key.length <= sizeof(key) && entry.key.number != 0 &&
        entry.value.number != 0) {
        reading->cursor.position = entry.key.offset;
        status = onnx_bytes_read(reading, &entry.key, key, error);
        if (status == ZT_OK)
            status = take_entry(&entry, (struct zt_text){key, (size_t)entry.key.length}, external,
                                error);
    }
    reading->cursor.position = field->offset + field->length;
    return status;
}

/* --- one tensor --- */

static enum zt_status check_range(const struct onnx_external *external, uint64_t bytes,
                                  uint64_t *out_end, struct zt_error *error)
{
    if (!external->has_location)
        return zt_fail(error, ZT_INVALID, LOCATION_RULE, external->at,
                       "external data names no file");
    /* ONNX Runtime reads a length of 0 as all that the tensor takes. */
    if (external->has_length && external->length != 0 && external->length != bytes)
        return zt_fail(error, ZT_INVALID, "onnx §External Length", external->at,
                       "%" PRIu64 " bytes where shape and type take %" PRIu64, external->length,
                       bytes);
    if (__builtin_add_overflow(external->offset, bytes, out_end) || *out_end > INT64_MAX)
        return zt_fail(error, ZT_INVALID, "onnx §External Length", external->at,
                       "the range of external data does not end below 2^63");
    return ZT_OK;
}

static enum zt_status add_location(struct onnx_reading *reading,
                                   const struct onnx_external *external, struct zt_error *error)
{
    const size_t length = external->location_length;
    struct onnx_location *location;
    void *name;
    enum zt_status status =
        zt_array_reserve(&reading->locations, &reading->location_capacity,
                         reading->location_count + 1, sizeof(*reading->locations), UINT32_MAX);

    if (status != ZT_OK)
        return zt_fail_memory(error, "the names of data files");
    status = zt_arena_take(&reading->builder->model->storage->arena, length, &name, error);
    if (status != ZT_OK)
        return status;
    memcpy(name, external->location, length);
    location = &reading->locations[reading->location_count++];
    *location =
        (struct onnx_location){.name = name, .length = (uint32_t)length, .at = external->at};
    return ZT_OK;
}

static enum zt_status fail_checksums(uint64_t at, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, "onnx §External Checksum", at,
                   "tensors state different checksums of one data file");
}

/* The checksum is that of the whole file, and a tensor need not state it. */
static enum zt_status keep_checksum(struct onnx_reading *reading, struct onnx_location *location,
                                    const struct onnx_external *external, struct zt_error *error)
{
    static const char prefix[] = "sha1:";
    const size_t prefix_length = strlen(prefix);
    const size_t length = prefix_length + external->checksum_length;
    void *digest;
    enum zt_status status;

    if (!external->has_checksum)
        return ZT_OK;
    if (location->digest != NULL)
        return location->digest_length == length &&
                       strncasecmp(location->digest + prefix_length, external->checksum,
                                   external->checksum_length) == 0
                   ? ZT_OK
                   : fail_checksums(external->at, error);
    status = zt_arena_take(&reading->builder->model->storage->arena, length, &digest, error);
    if (status != ZT_OK)
        return status;
    memcpy(digest, prefix, prefix_length);
    memcpy((char *)digest + prefix_length, external->checksum, external->checksum_length);
    location->digest = digest;
    location->digest_length = (uint32_t)length;
    return ZT_OK;
}

/* Tensors in a row mostly lie in the same file. */
static bool is_last_location(const struct onnx_reading *reading,
                             const struct onnx_external *external)
{
    const struct onnx_location *last;

    if (reading->location_count == 0)
        return false;
    last = &reading->locations[reading->location_count - 1];
    return last->length == external->location_length &&
           memcmp(last->name, external->location, last->length) == 0;
}

enum zt_status onnx_external_place(struct onnx_reading *reading,
                                   const struct onnx_external *external, uint64_t bytes,
                                   uint32_t *out_location, struct zt_error *error)
{
    struct onnx_location *location;
    uint64_t end_bytes = 0;
    enum zt_status status = check_range(external, bytes, &end_bytes, error);

    if (status == ZT_OK && !is_last_location(reading, external))
        status = add_location(reading, external, error);
    if (status != ZT_OK)
        return status;
    location = &reading->locations[reading->location_count - 1];
    location->end_bytes = location->end_bytes > end_bytes ? location->end_bytes : end_bytes;
    *out_location = (uint32_t)reading->location_count;
    return keep_checksum(reading, location, external, error);
}

/* --- all tensors --- */

static int compare(const struct onnx_location *a, const struct onnx_location *b)
{
    const uint32_t shorter = a->length < b->length ? a->length : b->length;
    const int order = memcmp(a->name, b->name, shorter);

    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static bool is_after(const void *locations, uint32_t a, uint32_t b)
{
    const struct onnx_location *all = locations;

    return compare(&all[a], &all[b]) > 0;
}

static enum zt_status add_shard(struct zt_builder *builder, const struct onnx_location *location,
                                struct zt_error *error)
{
    struct zt_shard *shard;
    enum zt_status status = zt_builder_shard(builder, &shard, error);

    if (status != ZT_OK)
        return status;
    shard->name = location->name;
    shard->name_length = location->length;
    shard->kind = ZT_SHARD_DATA;
    return ZT_OK;
}

/* False: the shard has another one. */
static bool add_digest(struct zt_shard *shard, const struct onnx_location *location)
{
    if (location->digest == NULL)
        return true;
    if (shard->digest != NULL)
        return shard->digest_length == location->digest_length &&
               strncasecmp(shard->digest, location->digest, shard->digest_length) == 0;
    shard->digest = location->digest;
    shard->digest_length = location->digest_length;
    return true;
}

/* Adds one shard for each name, in the order of names. */
static enum zt_status add_shards(struct onnx_reading *reading, const uint32_t *sorted,
                                 struct zt_error *error)
{
    struct zt_builder *builder = reading->builder;
    const struct onnx_location *previous = NULL;

    for (size_t i = 0; i < reading->location_count; i++) {
        struct onnx_location *location = &reading->locations[sorted[i]];
        struct zt_shard *shard;

        if (previous == NULL || compare(previous, location) != 0) {
            enum zt_status status = add_shard(builder, location, error);

            if (status != ZT_OK)
                return status;
        }
        location->shard = builder->model->shard_count;
        shard = &builder->shards[location->shard - 1];
        if (shard->size_bytes < location->end_bytes)
            shard->size_bytes = location->end_bytes;
        if (!add_digest(shard, location))
            return fail_checksums(location->at, error);
        previous = location;
    }
    return ZT_OK;
}

enum zt_status onnx_external_finish(struct onnx_reading *reading, struct zt_error *error)
{
    const struct zt_index_order order = {is_after, reading->locations};
    struct zt_builder *builder = reading->builder;
    uint32_t *sorted;
    enum zt_status status;

    if (reading->location_count == 0)
        return ZT_OK;
    if (zt_index_make((uint32_t)reading->location_count, &order, &sorted) != ZT_OK)
        return zt_fail_memory(error, "the names of data files");
    status = add_shards(reading, sorted, error);
    free(sorted);
    if (status != ZT_OK)
        return status;
    for (uint32_t i = 0; i < builder->model->component_count; i++) {
        uint32_t *shard = &builder->components[i].shard;

        assert(*shard <= reading->location_count);
        if (*shard != 0)
            *shard = reading->locations[*shard - 1].shard;
    }
    return ZT_OK;
}
