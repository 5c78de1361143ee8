/* Makes statistics and previews in jobs, and keeps them in a memo.
 *
 * The key is the version of the file and what was asked. Only the job holds the generation, which
 * would keep its files open. */
#include "numbers/component_numbers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "derived/decoded.h"
#include "numbers/computation.h"
#include "numbers/statistics_json.h"
#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/elements.h"

#define FINDINGS_MAX 512
/* The largest preview takes 4 MiB. */
#define FINDINGS_BYTES_MAX ((uint64_t)32 << 20)
/* After a failure it is tried again after this time. */
#define RETRY_MS 1000

struct making {
    struct job job; /* first: the job is the structure */
    struct server *server;
    struct numbers_entry *entry;
    struct generation *generation;
    struct numbers_query order;
    struct zt_slice slice; /* if order.slice points to it */
};

static void free_entry(void *entry)
{
    free(((struct numbers_entry *)entry)->bytes);
}

struct memo *numbers_memo_new(void)
{
    return memo_new(&(struct memo_rules){.value_bytes = sizeof(struct numbers_entry),
                                         .free_value = free_entry,
                                         .most = {FINDINGS_BYTES_MAX, FINDINGS_MAX}});
}

/* --- the key --- */

#define KEY_NUMBERS (18 + 3 * ZT_SLICE_RANK_MAX)

static size_t describe_slice(const struct zt_slice *slice, uint64_t *out_numbers)
{
    size_t count = 0;

    out_numbers[count++] = (uint64_t)slice->rank << 32 | slice->loop_count;
    out_numbers[count++] = slice->offset;
    out_numbers[count++] = slice->run_bytes;
    out_numbers[count++] = slice->length;
    for (unsigned i = 0; i < slice->rank; i++)
        out_numbers[count++] = slice->shape[i];
    for (unsigned i = 0; i < slice->loop_count; i++) {
        out_numbers[count++] = slice->loops[i].count;
        out_numbers[count++] = slice->loops[i].stride_bytes;
    }
    return count;
}

static void make_key(const struct generation *generation, const struct numbers_query *order,
                     uint64_t out_key[2])
{
    const struct zt_preview *preview = &order->preview;
    struct {
        char etag[GENERATION_ETAG_SIZE];
        uint64_t numbers[KEY_NUMBERS];
    } key;
    size_t count = 0;

    memset(&key, 0, sizeof(key));
    memcpy(key.etag, generation->etag, sizeof(key.etag));
    key.numbers[count++] = generation->identity.device;
    key.numbers[count++] = (uint64_t)generation->identity.changed_ns;
    key.numbers[count++] = order->component;
    key.numbers[count++] = order->bins;
    if (order->bins == 0) {
        key.numbers[count++] = (uint64_t)preview->reduction;
        key.numbers[count++] = (uint64_t)preview->out_rows << 32 | preview->out_cols;
        key.numbers[count++] = preview->block_rows;
        key.numbers[count++] = preview->block_cols;
        key.numbers[count++] = preview->cols;
        key.numbers[count++] = preview->first;
        key.numbers[count++] = preview->count;
    }
    if (order->slice != NULL)
        count += describe_slice(order->slice, key.numbers + count);
    assert(count <= KEY_NUMBERS);
    zt_xxh3_128(&key, sizeof(key), out_key);
}

/* --- the elements --- */

/* The elements of a component; a cleared structure can be closed. */
struct decoded_elements {
    struct zt_elements elements;
    bool is_sequential;       /* parallel readers would disturb each other */
    struct decoded *decoded;  /* held, or NULL */
    struct zt_source *source; /* owned, or NULL */
};

/* A component whose frames can be decoded one by one, and which would not fit into the cache. */
static bool is_read_by_frames(const struct server *server, const struct zt_component *component)
{
    return component->encoding == ZT_ENCODING_ZSTD_SEEKABLE && !component->big_endian &&
           component->decoded_length != ZT_LENGTH_UNKNOWN &&
           component->decoded_length >
               (uint64_t)config_number(&server->config->limits.decoded_bytes);
}

static enum zt_status decode(struct server *server, struct generation *generation, uint32_t number,
                             uint64_t expected, struct decoded_elements *elements,
                             struct zt_error *error)
{
    const enum zt_status status =
        decoded_get(server->decoded, generation, number, &elements->decoded, error);

    if (status == ZT_OK && elements->decoded->length != expected)
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                       "its decoded length does not match its shape");
    return status;
}

/* Fills in where the decoded bytes are. stored->decoded is borrowed, or one of those that elements
 * close. */
static enum zt_status open_bytes(struct server *server, struct generation *generation,
                                 struct decoded_elements *elements, struct zt_stored_tensor *stored,
                                 struct zt_error *error)
{
    const struct zt_component *component = stored->component;
    const struct zt_files files = generation_files(generation);
    struct zt_source *file = zt_files_source(&files, component);
    struct zt_slice view;
    uint64_t expected;
    enum zt_status status;

    if (zt_component_is_plain(component)) {
        stored->decoded = file;
        stored->base = component->offset;
        return ZT_OK;
    }
    if (zt_slice_of_view(NULL, component, &view)) {
        status = zt_slice_source(&view, file, component->offset, &elements->source, error);
    } else if (is_read_by_frames(server, component)) {
        elements->is_sequential = true;
        status = zt_frames_source(component, file, &elements->source, error);
    } else {
        expected = zt_elements_bytes(stored->object, component, NULL,
                                     zt_object_elements(stored->model, stored->object));
        status = decode(server, generation, (uint32_t)(component - stored->model->components),
                        expected, elements, error);
    }
    if (status == ZT_OK)
        stored->decoded = elements->decoded != NULL ? elements->decoded->source : elements->source;
    return status;
}

static void close_elements(struct decoded_elements *elements)
{
    zt_elements_close(&elements->elements);
    memo_release(elements->decoded);
    zt_source_close(elements->source);
    memset(elements, 0, sizeof(*elements));
}

/* Opens the elements that a query names by object, component and slice. Encoded ones are first
 * decoded into the cache that all requests share, as derived/export_bytes.c does. Borrows
 * generation and the query's slice. Returns ZT_CORRUPT also if the component decodes to fewer bytes
 * than its shape has. error must not be NULL. */
static enum zt_status open_elements(struct server *server, struct generation *generation,
                                    const struct numbers_query *order,
                                    struct decoded_elements *out_elements, struct zt_error *error)
{
    const struct zt_model *model = generation->model;
    struct zt_stored_tensor stored = {.model = model,
                                      .object = &model->objects[order->object],
                                      .component = &model->components[order->component]};
    struct decoded_elements elements;
    enum zt_status status;

    memset(&elements, 0, sizeof(elements));
    zt_error_clear(error);
    status = open_bytes(server, generation, &elements, &stored, error);
    if (status == ZT_OK)
        status = zt_elements_open(&stored, order->slice, &elements.elements, error);
    if (status != ZT_OK) {
        close_elements(&elements);
        return status;
    }
    *out_elements = elements;
    return ZT_OK;
}

/* --- making --- */

static enum zt_status write_statistics(const struct making *making,
                                       const struct zt_elements *elements,
                                       const struct computing *computing, struct numbers_entry *out,
                                       struct zt_error *error)
{
    const struct zt_model *model = making->generation->model;
    const struct statistics_subject subject = {.model = model,
                                               .object = &model->objects[making->order.object],
                                               .component =
                                                   &model->components[making->order.component],
                                               .slice = making->order.slice};
    struct statistics *statistics = malloc(sizeof(*statistics));
    enum zt_status status;
    struct json json;

    if (statistics == NULL)
        return zt_fail_memory(error, "statistics");
    status = statistics_compute(elements, making->order.bins, computing, statistics, error);
    if (status == ZT_OK) {
        json_init(&json, false);
        statistics_write(&json, &subject, statistics);
        if (json.failed) {
            json_free(&json);
            status = zt_fail_memory(error, "statistics");
        } else {
            *out = (struct numbers_entry){json.text, json.length};
        }
    }
    free(statistics);
    return status;
}

static enum zt_status make_preview(const struct making *making, const struct zt_elements *elements,
                                   const struct computing *computing, struct numbers_entry *out,
                                   struct zt_error *error)
{
    const struct zt_preview *preview = &making->order.preview;
    const size_t cells = (size_t)preview->out_rows * preview->out_cols;
    double *values = calloc(cells + 1, sizeof(*values));
    enum zt_status status;

    if (values == NULL)
        return zt_fail_memory(error, "a preview");
    status = preview_compute(elements, preview, computing, values, error);
    if (status == ZT_OK)
        *out = (struct numbers_entry){values, cells * sizeof(*values)};
    else
        free(values);
    return status;
}

static enum zt_status make(const struct making *making, struct numbers_entry *out,
                           struct zt_error *error)
{
    const struct numbers_query *order = &making->order;
    struct decoded_elements opened;
    struct computing computing = {.cancellation = {memo_is_wanted, making->entry}};
    enum zt_status status =
        open_elements(making->server, making->generation, order, &opened, error);

    if (status != ZT_OK)
        return status;
    computing.workers = opened.is_sequential ? NULL : server_waiters(making->server);
    status = order->bins > 0 ? write_statistics(making, &opened.elements, &computing, out, error)
                             : make_preview(making, &opened.elements, &computing, out, error);
    close_elements(&opened);
    return status;
}

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;
    struct numbers_entry *entry = making->entry;
    struct zt_error error;
    enum zt_status status;

    if (!memo_begin(entry, job))
        assert(!"only jobs make entries");
    status = make(making, entry, &error);
    generation_release(making->generation);
    free(making);
    if (status == ZT_OK)
        memo_done(entry, (struct memo_charge){entry->length, 1});
    else
        memo_fail(entry, &error, (struct memo_charge){0, 1}, RETRY_MS);
    memo_release(entry);
}

/* Queues the job that makes an entry, or fails. */
static void begin(struct server *server, struct numbers_entry *entry, struct generation *generation,
                  const struct numbers_query *order, struct waiter *waiter)
{
    struct making *making = calloc(1, sizeof(*making));
    struct zt_error error;

    if (making == NULL) {
        zt_fail_memory(&error, "statistics");
        memo_await(entry, waiter);
        memo_fail(entry, &error, MEMO_NOT_KEPT, 0);
        memo_release(entry);
        return;
    }
    making->job.run = run_making;
    making->server = server;
    making->entry = entry;
    making->generation = generation_hold(generation);
    making->order = *order;
    if (order->slice != NULL) {
        making->slice = *order->slice;
        making->order.slice = &making->slice;
    }
    memo_submit(entry, waiter,
                &(struct memo_job){server_waiters(server), &making->job, order->bytes});
}

struct numbers_entry *numbers_hold(struct memo *numbers_memo, const struct generation *generation,
                                   const struct numbers_query *order)
{
    uint64_t key[2];

    make_key(generation, order, key);
    return memo_hold(numbers_memo, (struct zt_text){(const char *)key, sizeof(key)});
}

size_t numbers_length(struct memo *numbers_memo, const struct generation *generation,
                      const struct numbers_query *order)
{
    struct numbers_entry *entry;
    size_t length;
    uint64_t key[2];

    make_key(generation, order, key);
    entry = memo_find(numbers_memo, (struct zt_text){(const char *)key, sizeof(key)});
    length = entry != NULL ? entry->length : 0;
    memo_release(entry);
    return length;
}

enum memo_answer numbers_ask(struct server *server, struct numbers_entry *entry,
                             struct generation *generation, const struct numbers_query *order,
                             struct waiter *waiter, struct zt_error *error)
{
    enum memo_answer answer;

    if (memo_is_stopping(server->numbers_memo)) {
        zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
        return MEMO_FAILED;
    }
    answer = memo_ask(entry, 1, waiter, error);
    if (answer != MEMO_MAKE)
        return answer;
    begin(server, entry, generation, order, waiter);
    return MEMO_PENDING;
}
