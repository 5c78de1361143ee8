#include "files/tensor_differences.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/processors.h"
#include "client/model_source.h"
#include "client/remote_digests.h"
#include "client/web_source.h"
#include "files/decoded_file.h"
#include "input/json_read.h"
#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/shards.h"

#define BLOCK_BYTES   ((size_t)256 << 10)
#define SHA256_LENGTH 32

/* One of the two models. */
struct compared_model {
    const char *path;
    struct opened_file file;
    struct json_t **manifests; /* the servers', of each file of a remote model; else NULL */
};

struct tensor_differences {
    struct compared_model before;
    struct compared_model after;
    struct progress_line *line;
    struct tensor_difference *items;
    uint32_t count;
};

/* --- the models --- */

static struct zt_source *source_at(const struct compared_model *model, uint32_t shard)
{
    assert(shard <= model->file.model->shard_count);
    return shard == 0 ? model->file.source : model->file.shards[shard - 1];
}

/* The manifest of the file that has a component; NULL: there is none. */
static struct json_t *ask_manifest(const struct zt_source *source)
{
    const struct web_file *web = source != NULL ? web_source_file(source) : NULL;
    struct client *client;
    struct zt_error error;

    return web != NULL && model_source_client(&client, &error) == ZT_OK
               ? remote_digests_ask(client, &web->place)
               : NULL;
}

/* A missing shard makes only its tensors unreadable. */
static enum zt_status open_model(struct compared_model *model, struct zt_error *error)
{
    enum zt_status status = opened_file_open(model->path, &model->file, error);
    const uint32_t shards = status == ZT_OK ? model->file.model->shard_count : 0;
    struct zt_error ignored;

    for (uint32_t i = 0; i < shards; i++)
        (void)opened_file_shard(&model->file, model->path, i, &ignored);
    if (status != ZT_OK || !web_address_is_meant(model->path))
        return status;
    model->manifests = calloc(shards + 1, sizeof(struct json_t *));
    for (uint32_t i = 0; model->manifests != NULL && i <= shards; i++)
        if (i > 0 || shards == 0 || model->file.model->shards[0].kind != ZT_SHARD_PART)
            model->manifests[i] = ask_manifest(source_at(model, i));
    return ZT_OK;
}

static void close_model(struct compared_model *model)
{
    const uint32_t shards = model->file.model != NULL ? model->file.model->shard_count : 0;

    for (uint32_t i = 0; model->manifests != NULL && i <= shards; i++)
        json_object_free(model->manifests[i]);
    free(model->manifests);
    opened_file_close(&model->file);
}

enum zt_status tensor_differences_open(const char *const paths[2],
                                       struct tensor_differences **out_differences,
                                       const char **out_path, struct zt_error *error)
{
    struct tensor_differences *differences = calloc(1, sizeof(*differences));
    enum zt_status status = ZT_OK;

    *out_path = paths[0];
    if (differences == NULL)
        return zt_fail_memory(error, "differences");
    differences->before.path = paths[0];
    differences->after.path = paths[1];
    status = open_model(&differences->before, error);
    if (status == ZT_OK) {
        *out_path = paths[1];
        status = open_model(&differences->after, error);
    }
    if (status == ZT_OK)
        *out_differences = differences;
    else
        tensor_differences_free(differences);
    return status;
}

void tensor_differences_free(struct tensor_differences *differences)
{
    if (differences == NULL)
        return;
    for (uint32_t i = 0; i < differences->count; i++)
        free(differences->items[i].error);
    free(differences->items);
    close_model(&differences->before);
    close_model(&differences->after);
    free(differences);
}

const struct zt_model *tensor_differences_before(const struct tensor_differences *differences)
{
    return differences->before.file.model;
}

const struct zt_model *tensor_differences_after(const struct tensor_differences *differences)
{
    return differences->after.file.model;
}

/* --- one tensor --- */

/* A tensor of one of the models. */
struct side {
    const struct compared_model *model;
    const struct zt_object *object;
    const struct zt_component *component; /* at work on */
};

struct subject {
    struct side before;
    struct side after;
    struct comparing *comparing;
    uint64_t advanced; /* stored bytes */
};

/* What threads share. */
struct comparing {
    struct tensor_differences *differences;
    pthread_mutex_t lock;
};

static const struct zt_model *model_of(const struct side *side)
{
    return side->model->file.model;
}

const struct zt_component *tensor_component(const struct zt_model *model,
                                            const struct zt_object *object)
{
    const struct zt_component *components = zt_object_components(model, object);
    struct zt_slice_tensor tensor;

    for (uint32_t i = 0; i < object->component_count; i++)
        if (components[i].encoding != ZT_ENCODING_UNKNOWN &&
            zt_elements_tensor(model, object, &components[i], &tensor))
            return &components[i];
    return object->component_count > 0 ? components : NULL;
}

static bool has_elements(const struct side *side, enum zt_dtype *out_dtype)
{
    struct zt_slice_tensor tensor;

    if (side->component == NULL || side->component->encoding == ZT_ENCODING_UNKNOWN ||
        !zt_elements_tensor(model_of(side), side->object, side->component, &tensor))
        return false;
    *out_dtype = tensor.dtype;
    return true;
}

static enum zt_status open_decoded(const struct side *side, struct decoded_file *out_file,
                                   struct zt_error *error)
{
    struct zt_source *source = source_at(side->model, side->component->shard);

    if (source == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the file with its data is missing");
    return decoded_file_open(side->component, source, out_file, error);
}

static void advance(struct subject *subject, uint64_t bytes)
{
    struct comparing *comparing = subject->comparing;

    pthread_mutex_lock(&comparing->lock);
    subject->advanced += bytes;
    progress_line_advance(comparing->differences->line, bytes);
    pthread_mutex_unlock(&comparing->lock);
}

/* --- digests --- */

/* Finds the SHA-256 of decoded bytes that the file, or its server, states. */
static bool find_sha256(const struct side *side, uint8_t out_sha256[SHA256_LENGTH])
{
    const struct json_t *manifest =
        side->model->manifests != NULL ? side->model->manifests[side->component->shard] : NULL;

    return zt_component_decoded_sha256(model_of(side), side->component, out_sha256) ||
           (manifest != NULL && zt_component_is_plain(side->component) &&
            remote_digests_find(manifest, side->object, side->component, out_sha256));
}

static bool find_xxh3(const struct side *side, struct zt_digest *out_digest)
{
    return side->component->digest != NULL &&
           (!zt_digest_covers_stored(model_of(side)) || zt_component_is_plain(side->component)) &&
           zt_component_digest(model_of(side), side->component, out_digest, NULL) == ZT_OK &&
           out_digest->algorithm == ZT_DIGEST_XXH3;
}

static bool read_sha256(const struct side *side, uint8_t out_sha256[SHA256_LENGTH])
{
    struct zt_source *source = source_at(side->model, side->component->shard);
    struct zt_decoder *decoder = NULL;
    struct zt_hasher *hasher = NULL;
    uint8_t *block = malloc(BLOCK_BYTES);
    bool is_read = block != NULL && source != NULL &&
                   zt_hasher_new(ZT_DIGEST_SHA256, &hasher) == ZT_OK &&
                   zt_decoder_open(side->component, source, &decoder, NULL) == ZT_OK;
    size_t length = 1;
    struct zt_digest digest;

    while (is_read && length > 0) {
        is_read = zt_decoder_read(decoder, block, BLOCK_BYTES, &length, NULL) == ZT_OK;
        if (is_read)
            zt_hasher_update(hasher, block, length);
    }
    if (is_read) {
        zt_hasher_finish(hasher, &digest);
        memcpy(out_sha256, digest.bytes, SHA256_LENGTH);
    }
    zt_decoder_close(decoder);
    zt_hasher_free(hasher);
    free(block);
    return is_read;
}

/* Reads a local tensor if that may save fetching the other one. */
static bool need_sha256(const struct side *side, bool is_known, uint8_t out_sha256[SHA256_LENGTH])
{
    return is_known || (side->model->manifests == NULL && read_sha256(side, out_sha256));
}

static bool have_equal_digests(const struct subject *subject)
{
    const struct side *before = &subject->before;
    const struct side *after = &subject->after;
    uint8_t sha256[2][SHA256_LENGTH];
    struct zt_digest xxh3[2];
    const bool is_before_known = find_sha256(before, sha256[0]);
    const bool is_after_known = find_sha256(after, sha256[1]);

    if (find_xxh3(before, &xxh3[0]) && find_xxh3(after, &xxh3[1]))
        return zt_digest_equal(&xxh3[0], &xxh3[1]);
    if (is_before_known == is_after_known)
        return is_before_known && memcmp(sha256[0], sha256[1], SHA256_LENGTH) == 0;
    if ((before->model->manifests == NULL) == (after->model->manifests == NULL))
        return false;
    return need_sha256(before, is_before_known, sha256[0]) &&
           need_sha256(after, is_after_known, sha256[1]) &&
           memcmp(sha256[0], sha256[1], SHA256_LENGTH) == 0;
}

/* --- numbers --- */

static enum zt_status compare_elements(struct subject *subject, const struct zt_elements *before,
                                       const struct zt_elements *after,
                                       struct zt_difference *out_numbers, struct zt_error *error)
{
    const uint64_t pieces = zt_elements_pieces(before);
    const uint64_t share = pieces > 0 ? subject->after.component->length / pieces : 0;
    enum zt_status status = ZT_OK;

    assert(pieces == zt_elements_pieces(after));
    for (uint64_t i = 0; i < pieces && status == ZT_OK; i++) {
        struct zt_difference next;

        status = zt_difference_piece(before, after, i, &next, error);
        if (status == ZT_OK)
            zt_difference_merge(out_numbers, &next);
        advance(subject, share);
    }
    return status;
}

struct opened_tensor {
    struct decoded_file decoded;
    struct zt_elements elements;
};

static enum zt_status open_tensor(const struct side *side, struct opened_tensor *tensor,
                                  struct zt_error *error)
{
    struct zt_stored_tensor stored = {model_of(side), side->object, side->component, NULL, 0};
    enum zt_status status = open_decoded(side, &tensor->decoded, error);

    if (status != ZT_OK)
        return status;
    stored.decoded = tensor->decoded.source;
    stored.base = tensor->decoded.base;
    return zt_elements_open(&stored, NULL, &tensor->elements, error);
}

static void close_tensor(struct opened_tensor *tensor)
{
    zt_elements_close(&tensor->elements);
    decoded_file_close(&tensor->decoded);
}

static enum zt_status compare_numbers(struct subject *subject, struct zt_difference *out_numbers,
                                      struct zt_error *error)
{
    struct opened_tensor before = {.decoded = {.source = NULL}};
    struct opened_tensor after = {.decoded = {.source = NULL}};
    enum zt_status status = open_tensor(&subject->before, &before, error);

    if (status == ZT_OK)
        status = open_tensor(&subject->after, &after, error);
    if (status == ZT_OK)
        status = compare_elements(subject, &before.elements, &after.elements, out_numbers, error);
    close_tensor(&after);
    close_tensor(&before);
    return status;
}

/* --- bytes --- */

/* Reads until the decoders have as much as the block holds, or end. */
static enum zt_status read_block(struct zt_decoder *decoder, uint8_t *block, size_t *out_length,
                                 struct zt_error *error)
{
    size_t got = 1;
    enum zt_status status = ZT_OK;

    *out_length = 0;
    while (status == ZT_OK && got > 0 && *out_length < BLOCK_BYTES) {
        status =
            zt_decoder_read(decoder, block + *out_length, BLOCK_BYTES - *out_length, &got, error);
        *out_length += status == ZT_OK ? got : 0;
    }
    return status;
}

static enum zt_status compare_decoded(struct zt_decoder *before, struct zt_decoder *after,
                                      bool *out_is_equal, struct zt_error *error)
{
    uint8_t *blocks = malloc(2 * BLOCK_BYTES);
    size_t length = 1;
    size_t other = 1;
    enum zt_status status = blocks != NULL ? ZT_OK : zt_fail_memory(error, "comparing");

    *out_is_equal = true;
    while (status == ZT_OK && *out_is_equal && length > 0) {
        status = read_block(before, blocks, &length, error);
        if (status == ZT_OK)
            status = read_block(after, blocks + BLOCK_BYTES, &other, error);
        *out_is_equal = length == other && memcmp(blocks, blocks + BLOCK_BYTES, length) == 0;
    }
    free(blocks);
    return status;
}

static enum zt_status compare_bytes(const struct subject *subject, bool *out_is_equal,
                                    struct zt_error *error)
{
    const struct side *before = &subject->before;
    const struct side *after = &subject->after;
    struct zt_source *sources[] = {source_at(before->model, before->component->shard),
                                   source_at(after->model, after->component->shard)};
    struct zt_decoder *decoders[2] = {NULL, NULL};
    enum zt_status status;

    if (sources[0] == NULL || sources[1] == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the file with its data is missing");
    status = zt_decoder_open(before->component, sources[0], &decoders[0], error);
    if (status == ZT_OK)
        status = zt_decoder_open(after->component, sources[1], &decoders[1], error);
    if (status == ZT_OK)
        status = compare_decoded(decoders[0], decoders[1], out_is_equal, error);
    zt_decoder_close(decoders[0]);
    zt_decoder_close(decoders[1]);
    return status;
}

/* --- all components --- */

static bool is_same_kind(const struct subject *subject)
{
    const struct zt_object *before = subject->before.object;
    const struct zt_object *after = subject->after.object;
    const struct zt_component *old = zt_object_components(model_of(&subject->before), before);
    const struct zt_component *new = zt_object_components(model_of(&subject->after), after);

    const bool is_named = before->layout == ZT_LAYOUT_GGUF || before->layout == ZT_LAYOUT_OTHER;

    if (before->layout != after->layout || before->component_count != after->component_count ||
        (is_named && !zt_text_equal((struct zt_text){before->format, before->format_length},
                                    (struct zt_text){after->format, after->format_length})))
        return false;
    for (uint32_t i = 0; i < before->component_count; i++)
        if (old[i].dtype != new[i].dtype || old[i].logical != new[i].logical ||
            !zt_text_equal(zt_component_name(&old[i]), zt_component_name(&new[i])))
            return false;
    return true;
}

static bool is_same_shape(const struct subject *subject)
{
    const struct zt_object *before = subject->before.object;
    const struct zt_object *after = subject->after.object;

    return before->rank == after->rank &&
           memcmp(zt_object_shape(model_of(&subject->before), before),
                  zt_object_shape(model_of(&subject->after), after),
                  before->rank * sizeof(uint64_t)) == 0;
}

/* Returns true if both have numbers that can be compared. */
static bool choose_elements(struct subject *subject)
{
    enum zt_dtype before;
    enum zt_dtype after;

    subject->before.component =
        tensor_component(model_of(&subject->before), subject->before.object);
    subject->after.component = tensor_component(model_of(&subject->after), subject->after.object);
    return has_elements(&subject->before, &before) && has_elements(&subject->after, &after) &&
           before == after;
}

/* The components have the same kinds. */
static enum zt_status compare_components(struct subject *subject, bool *out_is_equal,
                                         struct zt_error *error)
{
    const struct zt_component *old =
        zt_object_components(model_of(&subject->before), subject->before.object);
    const struct zt_component *new =
        zt_object_components(model_of(&subject->after), subject->after.object);
    enum zt_status status = ZT_OK;

    *out_is_equal = true;
    for (uint32_t i = 0;
         i < subject->after.object->component_count && status == ZT_OK && *out_is_equal; i++) {
        subject->before.component = &old[i];
        subject->after.component = &new[i];
        if (!have_equal_digests(subject))
            status = compare_bytes(subject, out_is_equal, error);
    }
    return status;
}

static enum zt_status compare_values(struct subject *subject, struct tensor_difference *item,
                                     struct zt_error *error)
{
    const bool has_numbers = choose_elements(subject);
    enum zt_status status = ZT_OK;
    bool is_equal = true;

    assert(item->numbers.count == 0 && item->before != NULL && item->after != NULL);
    item->change = is_same_kind(subject) ? TENSOR_EQUAL : TENSOR_RETYPED;
    if (item->change == TENSOR_RETYPED)
        return has_numbers ? compare_numbers(subject, &item->numbers, error) : ZT_OK;
    if (has_numbers && subject->after.object->component_count == 1) {
        if (!have_equal_digests(subject))
            status = compare_numbers(subject, &item->numbers, error);
        is_equal = item->numbers.changed == 0;
    } else {
        status = compare_components(subject, &is_equal, error);
    }
    if (status == ZT_OK && !is_equal)
        item->change = TENSOR_CHANGED;
    return status;
}

static uint64_t stored_bytes(const struct zt_model *model, const struct zt_object *object)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; object != NULL && i < object->component_count; i++)
        bytes += zt_object_components(model, object)[i].length;
    return bytes;
}

static bool compare(void *context, uint32_t index)
{
    struct comparing *comparing = context;
    struct tensor_differences *all = comparing->differences;
    struct tensor_difference *item = &all->items[index];
    struct subject subject = {.before = {&all->before, item->before, NULL},
                              .after = {&all->after, item->after, NULL},
                              .comparing = comparing};
    const uint64_t bytes = stored_bytes(all->after.file.model, item->after);
    struct zt_error error;

    if (item->before == NULL || item->after == NULL) {
        item->change = item->before == NULL ? TENSOR_NEW : TENSOR_GONE;
    } else if (!is_same_shape(&subject)) {
        item->change = TENSOR_RESHAPED;
    } else if (compare_values(&subject, item, &error) != ZT_OK) {
        item->change = TENSOR_UNREAD;
        item->error = malloc(sizeof(error));
        if (item->error != NULL)
            *item->error = error;
    }
    advance(&subject, bytes > subject.advanced ? bytes - subject.advanced : 0);
    return true;
}

/* --- all tensors --- */

/* Merges the objects of both, which are sorted by name. */
static void list(struct tensor_differences *differences)
{
    const struct zt_model *before = differences->before.file.model;
    const struct zt_model *after = differences->after.file.model;
    uint32_t old = 0;
    uint32_t new = 0;

    while (old < before->object_count || new < after->object_count) {
        struct tensor_difference *item = &differences->items[differences->count++];
        int order = old == before->object_count ? 1 : -1;

        if (old < before->object_count && new < after->object_count)
            order = zt_text_compare(zt_object_name(&before->objects[old]),
                                    zt_object_name(&after->objects[new]));
        if (order <= 0)
            item->before = &before->objects[old++];
        if (order >= 0)
            item->after = &after->objects[new ++];
    }
}

/* A server's file is read by one thread, ahead of it. */
static unsigned thread_count(const struct tensor_differences *differences)
{
    const unsigned processors = processors_count();

    if (web_address_is_meant(differences->before.path) ||
        web_address_is_meant(differences->after.path))
        return 1;
    return processors < PARALLEL_THREADS_MAX ? processors : PARALLEL_THREADS_MAX;
}

enum zt_status tensor_differences_find(struct tensor_differences *differences,
                                       struct progress_line *line, struct zt_error *error)
{
    const size_t most = (size_t)differences->before.file.model->object_count +
                        differences->after.file.model->object_count;
    struct comparing comparing = {differences, PTHREAD_MUTEX_INITIALIZER};
    struct parallel_work work = {.run = compare, .context = &comparing};

    assert(differences->items == NULL && line != NULL);
    differences->line = line;
    differences->items = calloc(most + 1, sizeof(*differences->items));
    if (differences->items == NULL)
        return zt_fail_memory(error, "tensors");
    list(differences);
    work.count = differences->count;
    parallel_for_threads("compare", thread_count(differences), &work);
    return ZT_OK;
}

const struct tensor_difference *tensor_differences_all(const struct tensor_differences *differences,
                                                       uint32_t *out_count)
{
    assert(differences->items != NULL);
    *out_count = differences->count;
    return differences->items;
}
