/* All tensors are kept in one array, sorted by length and type. A tensor is hashed only if a server
 * has one of its length and type. */
#include "transfers/local_tensors.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "base/processors.h"
#include "commands/commands.h"
#include "files/model_folder.h"
#include "files/opened_file.h"
#include "store/store.h"
#include "transfers/repository_folder.h"
#include "zt/digest.h"
#include "zt/source.h"

#define SHA256_LENGTH 32
#define XXH3_LENGTH   8
/* The rule of an error about a file that is not a model. */
#define UNKNOWN_FORMAT "zt §Detection UnknownFormat"
#define BLOCK_BYTES    ((size_t)1 << 20)

/* Of the digests of a tensor. */
enum digest_state { DIGEST_UNKNOWN, DIGEST_NEEDED, DIGEST_KNOWN, DIGEST_FAILED };

struct local_digest {
    enum digest_state state;
    bool is_listed;               /* of the first of a length and type: all of them are */
    uint8_t bytes[SHA256_LENGTH]; /* of XXH3, the first 8 */
};

enum digest_kind { KIND_SHA256, KIND_XXH3, DIGEST_KINDS };

static const enum zt_digest_algorithm algorithms[DIGEST_KINDS] = {ZT_DIGEST_SHA256, ZT_DIGEST_XXH3};
static const size_t lengths[DIGEST_KINDS] = {SHA256_LENGTH, XXH3_LENGTH};

struct local_tensor {
    struct tensor_subject subject;
    struct zt_source *source;
    uint64_t at;
    uint64_t length;
    uint8_t dtype;
    struct local_digest digests[DIGEST_KINDS];
};

struct local_tensors {
    struct opened_file *files; /* model NULL: not a model */
    size_t file_count;
    size_t file_capacity;
    struct local_tensor *tensors;
    size_t count;
    size_t capacity;
    atomic_uint refusals;
    void (*watch)(void *context, uint64_t total, uint64_t done);
    void *context;
};

/* --- opening --- */

static enum zt_status add(struct local_tensors *local, const struct local_tensor *tensor,
                          struct zt_error *error)
{
    if (tensor->length == 0 || zt_source_descriptor(tensor->source) < 0)
        return ZT_OK;
    if (zt_array_reserve(&local->tensors, &local->capacity, local->count + 1, sizeof(*tensor),
                         UINT32_MAX) != ZT_OK)
        return zt_fail_memory(error, "local tensors");
    local->tensors[local->count++] = *tensor;
    return ZT_OK;
}

bool stored_digest_of(const struct zt_model *model, const struct zt_component *component,
                      struct zt_digest *out_digest)
{
    return component->digest != NULL &&
           (zt_digest_covers_stored(model) || zt_component_is_plain(component)) &&
           zt_component_digest(model, component, out_digest, NULL) == ZT_OK;
}

static void take_stated(const struct zt_model *model, const struct zt_component *component,
                        struct local_tensor *tensor)
{
    struct zt_digest digest;

    if (!stored_digest_of(model, component, &digest))
        return;
    for (unsigned i = 0; i < DIGEST_KINDS; i++)
        if (digest.algorithm == algorithms[i]) {
            assert(digest.length_bytes == lengths[i]);
            tensor->digests[i].state = DIGEST_KNOWN;
            memcpy(tensor->digests[i].bytes, digest.bytes, lengths[i]);
        }
}

/* Says why a damaged model has no tensors. Other files are of use as a whole. */
static void complain(const char *path, const struct zt_error *reason)
{
    char name[MODEL_NAME_MAX + 1];
    const bool is_model = model_path_name(path, name) && !model_path_needs_sniffing(path);
    struct zt_error error;

    if (!is_model && reason->rule != NULL && strcmp(reason->rule, UNKNOWN_FORMAT) == 0)
        return;
    zt_fail(&error, reason->status, reason->rule, reason->offset, "its tensors cannot be used: %s",
            reason->message);
    failure_complain(path, &error);
}

/* with_parts: false in a folder, where parts are opened as separate models. */
static enum zt_status add_component(struct local_tensors *local, struct opened_file *file,
                                    const struct tensor_subject *subject, const char *path,
                                    bool with_parts, struct zt_error *error)
{
    const struct zt_model *model = file->model;
    const struct zt_component *component = subject->component;
    const uint32_t shard = component->shard;
    struct local_tensor tensor = {.subject = *subject,
                                  .source = file->source,
                                  .at = component->offset,
                                  .length = component->length,
                                  .dtype = component->dtype};
    struct zt_error ignored;

    if (shard > 0 && ((model->shards[shard - 1].kind == ZT_SHARD_PART && !with_parts) ||
                      opened_file_shard(file, path, shard - 1, &ignored) != ZT_OK))
        return ZT_OK;
    if (shard > 0)
        tensor.source = file->shards[shard - 1];
    take_stated(model, component, &tensor);
    return add(local, &tensor, error);
}

static enum zt_status add_components(struct local_tensors *local, struct opened_file *file,
                                     const char *path, bool with_parts, struct zt_error *error)
{
    const struct zt_model *model = file->model;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        for (uint32_t j = 0; j < object->component_count && status == ZT_OK; j++) {
            const struct tensor_subject subject = {model, object,
                                                   &zt_object_components(model, object)[j]};

            status = add_component(local, file, &subject, path, with_parts, error);
        }
    }
    return status;
}

static enum zt_status add_file(struct local_tensors *local, const char *path, bool is_named,
                               struct zt_error *error)
{
    struct opened_file file = {.source = NULL};
    struct zt_source *whole = NULL;
    struct zt_error reason;
    enum zt_status status = zt_source_open_file(path, &whole, &reason);

    if (status != ZT_OK && is_named)
        *error = reason;
    if (status != ZT_OK)
        return is_named ? status : ZT_OK;
    if (zt_array_reserve(&local->files, &local->file_capacity, local->file_count + 2, sizeof(file),
                         UINT32_MAX) != ZT_OK) {
        zt_source_close(whole);
        return zt_fail_memory(error, "local files");
    }
    local->files[local->file_count++] = (struct opened_file){.source = whole};
    status = add(local,
                 &(struct local_tensor){
                     .source = whole, .length = zt_source_size(whole), .dtype = WHOLE_FILE},
                 error);
    if (status != ZT_OK)
        return status;
    if (opened_file_open(path, &file, &reason) != ZT_OK) {
        if (is_named)
            complain(path, &reason);
        return ZT_OK;
    }
    status = add_components(local, &file, path, is_named, error);
    local->files[local->file_count++] = file;
    return status;
}

static enum zt_status add_folder(struct local_tensors *local, const char *path,
                                 struct zt_error *error)
{
    struct repository_folder folder = {.files = NULL};
    enum zt_status status = repository_folder_list(path, &folder, error);

    for (size_t i = 0; i < folder.count && status == ZT_OK; i++)
        status = add_file(local, folder.files[i].path, false, error);
    repository_folder_free(&folder);
    return status;
}

static int compare_kinds(const void *a, const void *b)
{
    const struct local_tensor *one = a;
    const struct local_tensor *other = b;

    if (one->length != other->length)
        return one->length < other->length ? -1 : 1;
    return (int)one->dtype - (int)other->dtype;
}

enum zt_status local_tensors_open(const char *const *paths, unsigned count,
                                  struct local_tensors **out_local, const char **out_path,
                                  struct zt_error *error)
{
    struct local_tensors *local = calloc(1, sizeof(*local));
    enum zt_status status = local != NULL ? ZT_OK : zt_fail_memory(error, "local files");

    opened_files_raise_limit();
    for (unsigned i = 0; i < count && status == ZT_OK; i++) {
        *out_path = paths[i];
        status = is_folder(paths[i]) ? add_folder(local, paths[i], error)
                                     : add_file(local, paths[i], true, error);
    }
    if (status != ZT_OK) {
        local_tensors_free(local);
        return status;
    }
    if (local->count > 0)
        qsort(local->tensors, local->count, sizeof(*local->tensors), compare_kinds);
    *out_local = local;
    return ZT_OK;
}

void local_tensors_watch(struct local_tensors *local,
                         void (*watch)(void *context, uint64_t total, uint64_t done), void *context)
{
    local->watch = watch;
    local->context = context;
}

void local_tensors_free(struct local_tensors *local)
{
    if (local == NULL)
        return;
    for (size_t i = 0; i < local->file_count; i++)
        opened_file_close(&local->files[i]);
    free(local->files);
    free(local->tensors);
    free(local);
}

/* --- hashing --- */

/* The first tensor of a length and type; NULL: there is none. */
static struct local_tensor *find_first(const struct local_tensors *local, uint64_t length,
                                       uint8_t dtype)
{
    const struct local_tensor key = {.length = length, .dtype = dtype};
    size_t low = 0;
    size_t high = local->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (compare_kinds(&local->tensors[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < local->count && compare_kinds(&local->tensors[low], &key) == 0
               ? &local->tensors[low]
               : NULL;
}

bool local_tensors_may_have(const struct local_tensors *local, uint64_t length, uint8_t dtype)
{
    return find_first(local, length, dtype) != NULL;
}

/* Tensors whose digest of a kind is needed, and their sorted list once all are hashed. */
struct hashing {
    const struct local_tensors *local;
    pthread_mutex_t lock;
    uint64_t total_bytes;
    uint64_t done_bytes; /* under the lock */
    enum digest_kind kind;
    struct local_tensor **tensors;
    uint32_t count;
};

static void advance(struct hashing *hashing, uint64_t bytes)
{
    pthread_mutex_lock(&hashing->lock);
    hashing->done_bytes += bytes;
    assert(hashing->done_bytes <= hashing->total_bytes);
    if (hashing->local->watch != NULL)
        hashing->local->watch(hashing->local->context, hashing->total_bytes, hashing->done_bytes);
    pthread_mutex_unlock(&hashing->lock);
}

static bool update(struct hashing *hashing, const struct local_tensor *tensor,
                   struct zt_hasher *hasher)
{
    uint8_t *block = malloc(BLOCK_BYTES);
    bool is_read = block != NULL;

    for (uint64_t at = 0; is_read && at < tensor->length;) {
        const uint64_t left = tensor->length - at;
        const size_t length = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;

        is_read = zt_source_read_at(tensor->source, tensor->at + at, block, length, NULL) == ZT_OK;
        if (is_read)
            zt_hasher_update(hasher, block, length);
        advance(hashing, length);
        at += length;
    }
    free(block);
    return is_read;
}

/* A tensor that cannot be read is fetched instead. */
static bool hash(void *context, uint32_t index)
{
    struct hashing *hashing = context;
    struct local_tensor *tensor = hashing->tensors[index];
    struct local_digest *out = &tensor->digests[hashing->kind];
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    if (out->state != DIGEST_NEEDED)
        return true;
    assert(index < hashing->count && tensor->length > 0);
    out->state = DIGEST_FAILED;
    if (zt_hasher_new(algorithms[hashing->kind], &hasher) == ZT_OK &&
        update(hashing, tensor, hasher)) {
        zt_hasher_finish(hasher, &digest);
        assert(digest.length_bytes == lengths[hashing->kind]);
        memcpy(out->bytes, digest.bytes, digest.length_bytes);
        out->state = DIGEST_KNOWN;
    }
    zt_hasher_free(hasher);
    return true;
}

static const uint8_t *wanted_digest(const struct wanted_bytes *wanted, enum digest_kind kind)
{
    if (kind == KIND_SHA256)
        return wanted->has_sha256 ? wanted->sha256 : NULL;
    return wanted->has_xxh3 ? wanted->xxh3 : NULL;
}

/* Has all tensors of a length and type hashed, the first of which is given. */
static void need(const struct local_tensors *local, struct local_tensor *first,
                 enum digest_kind kind)
{
    const struct local_tensor *end = local->tensors + local->count;

    if (first == NULL || first->digests[kind].is_listed)
        return;
    assert(first == local->tensors || compare_kinds(first - 1, first) < 0);
    first->digests[kind].is_listed = true;
    for (struct local_tensor *next = first; next < end && compare_kinds(next, first) == 0; next++)
        if (next->digests[kind].state == DIGEST_UNKNOWN)
            next->digests[kind].state = DIGEST_NEEDED;
}

/* Lists the tensors whose digests are known, or needed to find the wanted bytes. */
static void list(struct local_tensors *local, const struct wanted_bytes *wanted, size_t count,
                 struct hashing *hashing)
{
    for (size_t i = 0; i < count; i++)
        if (wanted_digest(&wanted[i], hashing->kind) != NULL)
            need(local, find_first(local, wanted[i].length, wanted[i].dtype), hashing->kind);
    for (size_t i = 0; i < local->count; i++) {
        const enum digest_state state = local->tensors[i].digests[hashing->kind].state;

        if (state == DIGEST_NEEDED)
            hashing->total_bytes += local->tensors[i].length;
        if (state == DIGEST_NEEDED || state == DIGEST_KNOWN)
            hashing->tensors[hashing->count++] = &local->tensors[i];
    }
}

/* --- finding --- */

static int compare(const struct local_tensor *tensor, const uint8_t *digest, uint64_t length,
                   enum digest_kind kind)
{
    const int order = memcmp(tensor->digests[kind].bytes, digest, lengths[kind]);

    if (order != 0)
        return order;
    return tensor->length < length ? -1 : tensor->length > length;
}

static int compare_sha256(const void *a, const void *b)
{
    const struct local_tensor *other = *(struct local_tensor *const *)b;

    return compare(*(struct local_tensor *const *)a, other->digests[KIND_SHA256].bytes,
                   other->length, KIND_SHA256);
}

static int compare_xxh3(const void *a, const void *b)
{
    const struct local_tensor *other = *(struct local_tensor *const *)b;

    return compare(*(struct local_tensor *const *)a, other->digests[KIND_XXH3].bytes, other->length,
                   KIND_XXH3);
}

/* Removes what could not be hashed, and sorts. */
static void sort(struct hashing *hashing)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < hashing->count; i++)
        if (hashing->tensors[i]->digests[hashing->kind].state == DIGEST_KNOWN)
            hashing->tensors[kept++] = hashing->tensors[i];
    hashing->count = kept;
    qsort(hashing->tensors, kept, sizeof(struct local_tensor *),
          hashing->kind == KIND_SHA256 ? compare_sha256 : compare_xxh3);
}

static const struct local_tensor *find(const struct hashing *hashing,
                                       const struct wanted_bytes *wanted)
{
    const uint8_t *digest = wanted_digest(wanted, hashing->kind);
    uint32_t low = 0;
    uint32_t high = digest != NULL ? hashing->count : 0;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct local_tensor *tensor = hashing->tensors[middle];
        const int order = compare(tensor, digest, wanted->length, hashing->kind);

        if (order == 0)
            return tensor;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static enum zt_status add_found(const struct hashing *hashing, struct wanted_bytes *wanted,
                                size_t count, struct copied_bytes *copied, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (size_t i = 0; i < count && status == ZT_OK; i++) {
        const struct local_tensor *tensor = find(hashing, &wanted[i]);

        assert(tensor == NULL || tensor->length == wanted[i].length);
        if (tensor == NULL)
            continue;
        wanted[i].is_found = true;
        status = copied_bytes_add(copied, wanted[i].at, wanted[i].length,
                                  zt_source_descriptor(tensor->source), tensor->at, error);
    }
    return status;
}

/* Lists and hashes the tensors whose digests of a kind are needed. */
static void hash_listed(struct local_tensors *local, const struct wanted_bytes *wanted,
                        size_t count, struct hashing *hashing)
{
    const unsigned processors = processors_count();
    struct parallel_work work = {.run = hash, .context = hashing};

    list(local, wanted, count, hashing);
    work.count = hashing->count;
    parallel_for_threads(
        "hash", processors < PARALLEL_THREADS_MAX ? processors : PARALLEL_THREADS_MAX, &work);
}

enum zt_status local_tensors_find(struct local_tensors *local, struct wanted_bytes *wanted,
                                  size_t count, struct copied_bytes *copied, struct zt_error *error)
{
    struct local_tensor **tensors = calloc(local->count + 1, sizeof(struct local_tensor *));
    enum zt_status status = ZT_OK;

    if (tensors == NULL)
        return zt_fail_memory(error, "local tensors");
    for (unsigned kind = 0; kind < DIGEST_KINDS && status == ZT_OK; kind++) {
        struct hashing hashing = {
            .local = local, .lock = PTHREAD_MUTEX_INITIALIZER, .kind = kind, .tensors = tensors};

        hash_listed(local, wanted, count, &hashing);
        sort(&hashing);
        status = add_found(&hashing, wanted, count, copied, error);
    }
    free(tensors);
    return status;
}

/* --- other versions of a tensor --- */

static bool is_same_tensor(const struct tensor_subject *one, const struct tensor_subject *other)
{
    const unsigned rank = one->object->rank;

    return zt_text_equal(zt_object_name(one->object), zt_object_name(other->object)) &&
           zt_text_equal(zt_component_name(one->component), zt_component_name(other->component)) &&
           rank == other->object->rank &&
           (rank == 0 ||
            memcmp(zt_object_shape(one->model, one->object),
                   zt_object_shape(other->model, other->object), rank * sizeof(uint64_t)) == 0);
}

/* A difference is of decoded bytes, which here are the stored ones. */
static bool is_plain_tensor(const struct tensor_subject *subject)
{
    return subject->component != NULL && zt_component_is_plain(subject->component);
}

static struct local_tensor *find_version(const struct local_tensors *local,
                                         const struct wanted_bytes *wanted)
{
    const struct local_tensor *end = local->tensors + local->count;
    struct local_tensor *first = find_first(local, wanted->length, wanted->dtype);

    if (wanted->is_found || !is_plain_tensor(&wanted->subject) ||
        (!wanted->has_sha256 && !wanted->has_xxh3))
        return NULL;
    for (struct local_tensor *next = first;
         next != NULL && next < end && compare_kinds(next, first) == 0; next++)
        if (is_plain_tensor(&next->subject) && is_same_tensor(&next->subject, &wanted->subject))
            return next;
    return NULL;
}

static void take_version(const struct local_tensor *version, struct similar_tensor *out_similar)
{
    const struct local_digest *digest = &version->digests[KIND_SHA256];

    if (digest->state != DIGEST_KNOWN)
        return;
    out_similar->source = version->source;
    out_similar->at = version->at;
    memcpy(out_similar->sha256, digest->bytes, sizeof(out_similar->sha256));
}

enum zt_status local_tensors_find_similar(struct local_tensors *local,
                                          const struct wanted_bytes *wanted, size_t count,
                                          struct similar_tensor **out_similar,
                                          struct zt_error *error)
{
    struct local_tensor **versions = calloc(count + 1, sizeof(struct local_tensor *));
    struct local_tensor **tensors = calloc(local->count + 1, sizeof(struct local_tensor *));
    struct similar_tensor *similar = calloc(count + 1, sizeof(*similar));
    struct hashing hashing = {
        .local = local, .lock = PTHREAD_MUTEX_INITIALIZER, .kind = KIND_SHA256, .tensors = tensors};
    const bool has_memory = versions != NULL && tensors != NULL && similar != NULL;

    for (size_t i = 0; has_memory && i < count; i++) {
        versions[i] = find_version(local, &wanted[i]);
        if (versions[i] != NULL && versions[i]->digests[KIND_SHA256].state == DIGEST_UNKNOWN)
            versions[i]->digests[KIND_SHA256].state = DIGEST_NEEDED;
    }
    if (has_memory)
        hash_listed(local, NULL, 0, &hashing);
    for (size_t i = 0; has_memory && i < count; i++)
        if (versions[i] != NULL)
            take_version(versions[i], &similar[i]);
    free(versions);
    free(tensors);
    if (!has_memory) {
        free(similar);
        return zt_fail_memory(error, "local tensors");
    }
    *out_similar = similar;
    return ZT_OK;
}

atomic_uint *local_tensors_refusals(struct local_tensors *local)
{
    return &local->refusals;
}
