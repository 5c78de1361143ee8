/* Makes the JSON of whole manifests, plain and in each content coding, once per version of a model.
 * Short plain texts are written at once; others are made by a worker.
 *
 * The texts live as long as the generation, except that a long plain text is freed if it has not
 * been requested for a while. The length of the JSON is limited in proportion to the manifest, and
 * a coded text has about a tenth of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "derived/manifest_json.h"
#include "zt/coding.h"

/* Manifests up to this size take at most about 100 µs, so the loop writes them itself. */
#define INLINE_MANIFEST_BYTES 16384
/* Larger manifests take more than about 10 ms to write or compress. */
#define LONG_MANIFEST_BYTES 262144
/* Shorter plain texts are kept as long as the generation. */
#define LONG_TEXT_BYTES ((size_t)1 << 20)
/* CODING_IDENTITY, CODING_ZSTD, CODING_GZIP */
#define CODINGS CODING_NONE

/* A generation's side table, so that its texts are dropped with it. */
struct texts {
    struct side_table base;
    struct memo *manifests;
};

struct making {
    struct job job; /* first: the job is the structure */
    struct memo *manifests;
    struct manifest_text *text;
    struct generation *generation;
    enum coding coding;
};

static void free_text(void *text)
{
    free(((struct manifest_text *)text)->bytes);
}

struct memo *manifest_memo_new(void)
{
    return memo_new(&(struct memo_rules){.value_bytes = sizeof(struct manifest_text),
                                         .free_value = free_text,
                                         .most = {UINT64_MAX, SIZE_MAX}});
}

/* A key; its path has no NUL. The plain text's ETag identifies the version. */
struct key {
    char etag[GENERATION_ETAG_SIZE];
    uint64_t numbers[3];
    char path[MODEL_PATH_SIZE];
};

struct manifest_text *manifest_hold(struct memo *manifests, const struct generation *generation,
                                    enum coding coding)
{
    struct key key;
    const size_t length = strlen(generation->path);

    assert(coding < CODINGS && length < sizeof(key.path));
    memset(&key, 0, offsetof(struct key, path));
    memcpy(key.etag, generation->etag, sizeof(key.etag));
    key.numbers[0] = generation->identity.device;
    key.numbers[1] = (uint64_t)generation->identity.changed_ns;
    key.numbers[2] = coding;
    memcpy(key.path, generation->path, length);
    return memo_hold(manifests,
                     (struct zt_text){(const char *)&key, offsetof(struct key, path) + length});
}

static void drop_texts(struct side_table *table, const struct generation *generation)
{
    struct texts *texts = (struct texts *)table;

    for (unsigned coding = 0; coding < CODINGS; coding++) {
        struct manifest_text *text = manifest_hold(texts->manifests, generation, coding);

        if (text != NULL)
            memo_drop(text);
        memo_release(text);
    }
    free(texts);
}

/* Returns false if out of memory: the generation's texts must then not be kept. */
static bool attach_table(struct memo *manifests, struct generation *generation)
{
    struct texts *texts;

    if (generation_side_table(generation, SIDE_TABLE_MANIFEST) != NULL)
        return true;
    texts = calloc(1, sizeof(*texts));
    if (texts == NULL)
        return false;
    texts->base.free = drop_texts;
    texts->manifests = manifests;
    generation_attach(generation, SIDE_TABLE_MANIFEST, &texts->base);
    return true;
}

struct manifest_source manifest_source_of(const struct generation *generation)
{
    return (struct manifest_source){.name = generation_name(generation),
                                    .path = generation->path,
                                    .base_path = generation->base_path,
                                    .is_joined = generation->is_joined,
                                    .size_bytes = generation_size(generation),
                                    .etag = generation->etag,
                                    .modified_ns = generation->is_joined
                                                       ? generation_modified_ns(generation)
                                                       : generation->identity.modified_ns};
}

/* --- making --- */

static enum zt_status write_plain(const struct generation *generation,
                                  struct manifest_text *out_text, struct zt_error *error)
{
    const struct manifest_source source = manifest_source_of(generation);
    struct json json;
    char *fitted;

    json_init(&json, false);
    manifest_write(&json, generation->model, &source, NULL);
    if (json.failed) {
        const bool is_too_long = json.too_long;

        json_free(&json);
        return is_too_long ? zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                                     "the JSON is out of proportion to the manifest")
                           : zt_fail_memory(error, "a manifest");
    }
    /* Return the unused capacity. */
    fitted = realloc(json.text, json.length);
    out_text->bytes = fitted != NULL ? fitted : json.text;
    out_text->length = json.length;
    out_text->is_plain = true;
    atomic_store(&out_text->read_ms, clock_coarse_ms());
    return ZT_OK;
}

static void make(const struct making *making);

/* Compresses the plain text, which is made if necessary. */
static enum zt_status compress(const struct making *making, struct zt_error *error)
{
    const enum zt_coding means = making->coding == CODING_ZSTD ? ZT_CODING_ZSTD : ZT_CODING_GZIP;
    struct manifest_text *plain =
        manifest_hold(making->manifests, making->generation, CODING_IDENTITY);
    struct making first = *making;
    enum zt_status status;
    uint8_t *bytes;

    if (plain == NULL)
        return zt_fail_memory(error, "a manifest");
    first.text = plain;
    first.coding = CODING_IDENTITY;
    if (memo_get(plain, 1, error) == MEMO_MAKE)
        make(&first);
    if (memo_get(plain, 1, error) == MEMO_FAILED) {
        assert(error->status != ZT_OK);
        memo_release(plain);
        return error->status;
    }
    status =
        zt_coding_encode(means, plain->bytes, plain->length, &bytes, &making->text->length, error);
    if (status == ZT_OK)
        making->text->bytes = (char *)bytes;
    memo_release(plain);
    return status;
}

/* Runs in the maker of a text. */
static void make(const struct making *making)
{
    struct manifest_text *text = making->text;
    const bool is_kept = attach_table(making->manifests, making->generation);
    struct zt_error error;
    enum zt_status status;

    status = making->coding == CODING_IDENTITY ? write_plain(making->generation, text, &error)
                                               : compress(making, &error);
    if (status == ZT_OK)
        memo_done(text, is_kept ? (struct memo_charge){text->length, 1} : MEMO_NOT_KEPT);
    else if (status == ZT_LIMIT && is_kept)
        memo_fail(text, &error, (struct memo_charge){0, 1}, MEMO_LASTING);
    else
        /* The next request tries again, when there may be memory. */
        memo_fail(text, &error, MEMO_NOT_KEPT, 0);
    memo_release(text);
}

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;

    if (memo_begin(making->text, job))
        make(making);
    else
        memo_release(making->text);
    generation_release(making->generation);
    free(making);
}

static bool is_inline(const struct generation *generation, enum coding coding)
{
    return coding == CODING_IDENTITY && generation->model->manifest_length <= INLINE_MANIFEST_BYTES;
}

enum memo_answer manifest_ask(struct server *server, struct manifest_text *text,
                              struct generation *generation, enum coding coding,
                              struct waiter *waiter, struct zt_error *error)
{
    const enum memo_answer given = memo_ask(text, 1, waiter, error);
    const struct making first = {
        .manifests = server->manifests, .text = text, .generation = generation, .coding = coding};
    struct making *making = NULL;

    if (given == MEMO_READY)
        atomic_store(&text->read_ms, clock_coarse_ms());
    if (given != MEMO_MAKE)
        return given;
    if (!is_inline(generation, coding))
        making = malloc(sizeof(*making));
    if (making == NULL) {
        make(&first);
        return memo_ask(text, 1, waiter, error);
    }
    *making = first;
    making->job.run = run_making;
    generation_hold(generation);
    memo_submit(text, waiter,
                &(struct memo_job){
                    server->workers, &making->job,
                    generation->model->manifest_length > LONG_MANIFEST_BYTES ? UINT64_MAX : 0});
    return MEMO_PENDING;
}

uint64_t manifest_length(struct memo *manifests, struct generation *generation, enum coding coding)
{
    struct manifest_text *text = manifest_hold(manifests, generation, coding);
    const struct making making = {
        .manifests = manifests, .text = text, .generation = generation, .coding = coding};
    uint64_t length = 0;

    if (text == NULL)
        return 0;
    if (is_inline(generation, coding) && memo_get(text, 1, NULL) == MEMO_MAKE)
        make(&making);
    if (memo_is_ready(text, 1))
        length = text->length;
    memo_release(text);
    return length;
}

/* --- freeing --- */

static bool is_idle(void *context, const void *value, bool is_held)
{
    const struct manifest_text *text = value;

    (void)is_held;
    return text->is_plain && text->length > LONG_TEXT_BYTES &&
           atomic_load(&text->read_ms) < *(const int64_t *)context;
}

void manifest_release_idle(struct memo *manifests, int64_t before_ms)
{
    memo_sweep(manifests, is_idle, &before_ms);
}
