/* What must be true of every file that opens. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zt/attributes.h"
#include "zt/shards.h"
#include "zt/utf8.h"
#include "zt/verify.h"

/* The most that is decoded of one component: compressed data may claim a million times its size. */
#define DECODED_MAX ((uint64_t)1 << 20)
/* The most components that are examined. */
#define COMPONENTS_MAX 64

_Noreturn void fuzz_broken(const char *file, int line, const char *promise)
{
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
    abort();
}

char *fuzz_string(const uint8_t *bytes, size_t length)
{
    char *text = malloc(length + 1);

    FUZZ_ASSERT(text != NULL);
    if (length > 0)
        memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}

void fuzz_failure(enum zt_status status, const struct zt_error *error, uint64_t limit)
{
    FUZZ_ASSERT(error->status == status);
    FUZZ_ASSERT(error->message[0] != '\0' && strlen(error->message) < sizeof(error->message));
    FUZZ_ASSERT(zt_utf8_valid(error->message, strlen(error->message)));
    FUZZ_ASSERT(zt_utf8_valid(error->object, strlen(error->object)));
    /* The offset of an object's failure may be the place that the object claims: past the end, or
     * in a shard. */
    FUZZ_ASSERT(error->offset == ZT_NO_OFFSET || error->offset <= limit || error->has_object);
    /* The bytes are in memory, and there is enough of it: these would come from unchecked
     * bounds. */
    FUZZ_ASSERT(status != ZT_IO && status != ZT_NO_MEMORY && status != ZT_ARGUMENT);
    if (status == ZT_INVALID)
        FUZZ_ASSERT(error->rule != NULL);
}

/* --- the model --- */

struct json_text {
    size_t length;
    unsigned char last;
};

static void count_json(void *context, const char *text, size_t length)
{
    struct json_text *json = context;

    FUZZ_ASSERT(zt_utf8_valid(text, length));
    json->length += length;
    if (length > 0)
        json->last = (unsigned char)text[length - 1];
}

static void check_attributes(struct zt_text attributes)
{
    struct json_text json = {0, 0};
    struct zt_error error;

    /* A map, without a tag before it: CBOR's major type 5. */
    FUZZ_ASSERT(attributes.length == 0 || (unsigned char)attributes.bytes[0] >> 5 == 5);
    FUZZ_ASSERT(zt_attributes_write_json(attributes, count_json, &json, &error) == ZT_OK);
    FUZZ_ASSERT(json.length >= 2 && json.last == '}');
}

static void check_part(const struct zt_model *model, const struct zt_component *part)
{
    FUZZ_ASSERT(zt_utf8_valid(part->name, part->name_length));
    FUZZ_ASSERT(part->encoding_name != NULL && part->dtype < ZT_DTYPE_COUNT &&
                part->logical < ZT_LOGICAL_COUNT);
    FUZZ_ASSERT(part->shard <= model->shard_count);
    if (part->shard == 0) {
        FUZZ_ASSERT(part->offset <= model->file_size);
        FUZZ_ASSERT(part->length <= model->file_size - part->offset);
    }
    if (part->encoding == ZT_ENCODING_RAW)
        FUZZ_ASSERT(part->decoded_length == part->length);
    if (part->arrangement != NULL && part->encoding == ZT_ENCODING_RAW)
        FUZZ_ASSERT(part->arrangement->lead_bytes <= part->offset);
}

static void check_dense(const struct zt_model *model, const struct zt_object *object)
{
    const struct zt_component *data = zt_object_find(model, object, (struct zt_text){"data", 4});
    uint64_t elements = zt_object_elements(model, object);
    uint64_t bytes;

    if (object->layout != ZT_LAYOUT_DENSE || data == NULL ||
        data->decoded_length == ZT_LENGTH_UNKNOWN)
        return;
    if (zt_element_bytes((enum zt_dtype)data->dtype, (enum zt_logical)data->logical, elements,
                         &bytes) == ZT_OK)
        FUZZ_ASSERT(data->decoded_length == bytes);
}

static void check_object(const struct zt_model *model, uint32_t number)
{
    const struct zt_object *object = &model->objects[number];
    const struct zt_component *parts = zt_object_components(model, object);

    FUZZ_ASSERT(zt_utf8_valid(object->name, object->name_length));
    FUZZ_ASSERT(zt_model_find(model, zt_object_name(object)) == object);
    FUZZ_ASSERT(object->first_component <= model->component_count);
    FUZZ_ASSERT(object->component_count <= model->component_count - object->first_component);
    for (uint32_t i = 0; i < object->component_count; i++) {
        FUZZ_ASSERT(zt_object_find(model, object, zt_component_name(&parts[i])) == &parts[i]);
        FUZZ_ASSERT(zt_component_index(model, &parts[i]) == object->first_component + i);
    }
    check_attributes((struct zt_text){(const char *)object->attributes, object->attributes_length});
    check_dense(model, object);
}

static void check_model(const struct zt_model *model, size_t length)
{
    FUZZ_ASSERT(model->file_size == length);
    FUZZ_ASSERT(model->manifest_offset <= length &&
                model->manifest_length <= length - model->manifest_offset);
    check_attributes(model->attributes);
    for (uint32_t i = 0; i < model->object_count; i++)
        check_object(model, i);
    for (uint32_t i = 0; i < model->component_count; i++)
        check_part(model, &model->components[i]);
}

/* --- the data --- */

/* Decodes in pieces of one length. Returns how that ended; *out_hash is the hash of the decoded
 * bytes, *out_whole says that they ended before DECODED_MAX. */
static enum zt_status decode(const struct zt_component *part, struct zt_source *source,
                             size_t piece, uint64_t *out_hash, bool *out_whole)
{
    static uint8_t decoded[DECODED_MAX];
    struct zt_decoder *decoder = NULL;
    struct zt_error error;
    size_t total = 0;
    size_t length = 1;
    enum zt_status status = zt_decoder_open(part, source, &decoder, &error);

    while (status == ZT_OK && length > 0 && total < DECODED_MAX) {
        size_t capacity = piece < DECODED_MAX - total ? piece : DECODED_MAX - total;

        status = zt_decoder_read(decoder, decoded + total, capacity, &length, &error);
        if (status == ZT_OK) {
            FUZZ_ASSERT(length <= capacity);
            total += length;
        }
    }
    zt_decoder_close(decoder);
    *out_whole = length == 0 || status != ZT_OK;
    *out_hash = zt_xxh3(decoded, total);
    if (status != ZT_OK)
        fuzz_failure(status, &error, zt_source_size(source));
    else if (length == 0)
        FUZZ_ASSERT(part->decoded_length == ZT_LENGTH_UNKNOWN || part->decoded_length == total);
    return status;
}

/* Whether the part decodes within bounds, or fails there. */
static bool check_decoding(const struct zt_component *part, struct zt_source *source)
{
    uint64_t hashes[2];
    bool whole[2];
    enum zt_status first = decode(part, source, (size_t)256 << 10, &hashes[0], &whole[0]);
    /* Not too small: an array in Fortran order costs one pass for each block. */
    enum zt_status second = decode(part, source, 61 + part->length % 1000, &hashes[1], &whole[1]);

    FUZZ_ASSERT(first == second);
    if (first == ZT_OK && whole[0] && whole[1])
        FUZZ_ASSERT(hashes[0] == hashes[1]);
    return whole[0];
}

static void check_digest(const struct zt_model *model, const struct zt_component *part,
                         struct zt_source *source)
{
    struct zt_component_check check;
    struct zt_error error;
    enum zt_status status = zt_component_check(model, part, source, NULL, &check, &error);

    FUZZ_ASSERT(status == ZT_OK);
    FUZZ_ASSERT((check.verdict == ZT_VERDICT_UNDIGESTED) == (part->digest == NULL));
    FUZZ_ASSERT(strlen(check.expected) < ZT_DIGEST_TEXT_SIZE &&
                strlen(check.actual) < ZT_DIGEST_TEXT_SIZE);
    FUZZ_ASSERT(check.verdict != ZT_VERDICT_VERIFIED || check.actual[0] != '\0');
}

static void check_data(const struct zt_model *model, struct zt_source *source)
{
    uint32_t examined = 0;

    for (uint32_t i = 0; i < model->object_count && examined < COMPONENTS_MAX; i++) {
        const struct zt_object *object = &model->objects[i];
        const struct zt_component *parts = zt_object_components(model, object);
        bool bounded = true;

        for (uint32_t j = 0; j < object->component_count && examined < COMPONENTS_MAX;
             j++, examined++) {
            bool here = parts[j].shard == 0 && check_decoding(&parts[j], source);

            bounded = bounded && (here || parts[j].shard != 0);
            if (here)
                check_digest(model, &parts[j], source);
        }
        if (bounded && examined < COMPONENTS_MAX) {
            const struct zt_files files = {source, NULL};
            struct zt_error error;
            enum zt_status status = zt_object_check(model, object, &files, &error);

            if (status != ZT_OK)
                fuzz_failure(status, &error, model->file_size);
        }
    }
}

static void check_zt2(const struct zt_model *model, struct zt_source *source)
{
    struct zt_digest digest;
    struct zt_error error;
    enum zt_status status = zt_canonical_check(model, source, &error);

    FUZZ_ASSERT(status == ZT_OK || status == ZT_INVALID || status == ZT_UNSUPPORTED ||
                status == ZT_CORRUPT);
    if (status != ZT_OK)
        fuzz_failure(status, &error, model->file_size);
    status = zt_content_digest(model, ZT_DIGEST_XXH3, &digest, &error);
    FUZZ_ASSERT(status == ZT_OK || error.status == status);
}

/* --- all of it --- */

void fuzz_container(const uint8_t *bytes, size_t length, fuzz_open *open)
{
    struct zt_source *source;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status;

    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, &error) == ZT_OK);
    zt_error_clear(&error);
    fuzz_hold_at_most(length);
    status = open(source, &model, &error);
    FUZZ_ASSERT(fuzz_held());
    if (status == ZT_OK) {
        check_model(model, length);
        check_data(model, source);
        if (model->format == ZT_FORMAT_ZT2)
            check_zt2(model, source);
    } else {
        FUZZ_ASSERT(model == NULL);
        fuzz_failure(status, &error, length);
    }
    zt_model_free(model);
    zt_source_close(source);
}

void fuzz_container_repaired(const uint8_t *bytes, size_t length, fuzz_open *open,
                             bool (*repair)(uint8_t *bytes, size_t length))
{
    uint8_t *copy = malloc(length > 0 ? length : 1);

    FUZZ_ASSERT(copy != NULL);
    fuzz_container(bytes, length, open);
    if (length > 0)
        memcpy(copy, bytes, length);
    if (repair(copy, length))
        fuzz_container(copy, length, open);
    free(copy);
}
