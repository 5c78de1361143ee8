/* Makes statistics and previews in jobs, and keeps them in a memo.
 *
 * The key is the version of the file and what was asked. Only the job holds the generation, which
 * would keep its files open. */
#include "numbers/component_statistics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/computation.h"
#include "numbers/decoded_elements.h"
#include "numbers/statistics_json.h"
#include "zt/digest.h"

#define FINDINGS_MAX 512
/* The largest preview takes 4 MiB. */
#define FINDINGS_BYTES_MAX ((uint64_t)32 << 20)
/* After a failure it is tried again after this time. */
#define RETRY_MS 1000

struct making {
    struct job job; /* first: the job is the structure */
    struct server *server;
    struct statistics_entry *statistics_entry;
    struct generation *generation;
    struct statistics_query order;
    struct zt_slice slice; /* if order.slice points to it */
};

static void free_statistics(void *statistics_entry)
{
    free(((struct statistics_entry *)statistics_entry)->bytes);
}

struct memo *statistics_memo_new(void)
{
    return memo_new(&(struct memo_rules){.value_bytes = sizeof(struct statistics_entry),
                                         .free_value = free_statistics,
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

static void make_key(const struct generation *generation, const struct statistics_query *order,
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

/* --- making --- */

static enum zt_status write_statistics(const struct making *making,
                                       const struct zt_elements *elements,
                                       const struct computing *computing,
                                       struct statistics_entry *out, struct zt_error *error)
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
            *out = (struct statistics_entry){json.text, json.length};
        }
    }
    free(statistics);
    return status;
}

static enum zt_status make_preview(const struct making *making, const struct zt_elements *elements,
                                   const struct computing *computing, struct statistics_entry *out,
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
        *out = (struct statistics_entry){values, cells * sizeof(*values)};
    else
        free(values);
    return status;
}

static enum zt_status make(const struct making *making, struct statistics_entry *out,
                           struct zt_error *error)
{
    const struct statistics_query *order = &making->order;
    struct decoded_elements opened;
    struct computing computing = {.cancellation = {memo_is_wanted, making->statistics_entry}};
    enum zt_status status =
        decoded_elements_open(making->server, making->generation, order, &opened, error);

    if (status != ZT_OK)
        return status;
    computing.workers = opened.is_sequential ? NULL : server_waiters(making->server);
    status = order->bins > 0 ? write_statistics(making, &opened.elements, &computing, out, error)
                             : make_preview(making, &opened.elements, &computing, out, error);
    decoded_elements_close(&opened);
    return status;
}

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;
    struct statistics_entry *statistics_entry = making->statistics_entry;
    struct zt_error error;
    enum zt_status status;

    if (!memo_begin(statistics_entry, job))
        assert(!"only jobs make entries");
    status = make(making, statistics_entry, &error);
    generation_release(making->generation);
    free(making);
    if (status == ZT_OK)
        memo_done(statistics_entry, (struct memo_charge){statistics_entry->length, 1});
    else
        memo_fail(statistics_entry, &error, (struct memo_charge){0, 1}, RETRY_MS);
    memo_release(statistics_entry);
}

/* Queues the job that makes an entry, or fails. */
static void begin(struct server *server, struct statistics_entry *statistics_entry,
                  struct generation *generation, const struct statistics_query *order,
                  struct waiter *waiter)
{
    struct making *making = calloc(1, sizeof(*making));
    struct zt_error error;

    if (making == NULL) {
        zt_fail_memory(&error, "statistics");
        memo_await(statistics_entry, waiter);
        memo_fail(statistics_entry, &error, MEMO_NOT_KEPT, 0);
        memo_release(statistics_entry);
        return;
    }
    making->job.run = run_making;
    making->server = server;
    making->statistics_entry = statistics_entry;
    making->generation = generation_hold(generation);
    making->order = *order;
    if (order->slice != NULL) {
        making->slice = *order->slice;
        making->order.slice = &making->slice;
    }
    memo_submit(statistics_entry, waiter,
                &(struct memo_job){server_waiters(server), &making->job, order->bytes});
}

struct statistics_entry *statistics_hold(struct memo *statistics_memo,
                                         const struct generation *generation,
                                         const struct statistics_query *order)
{
    uint64_t key[2];

    make_key(generation, order, key);
    return memo_hold(statistics_memo, (struct zt_text){(const char *)key, sizeof(key)});
}

size_t statistics_length(struct memo *statistics_memo, const struct generation *generation,
                         const struct statistics_query *order)
{
    struct statistics_entry *statistics_entry;
    size_t length;
    uint64_t key[2];

    make_key(generation, order, key);
    statistics_entry = memo_find(statistics_memo, (struct zt_text){(const char *)key, sizeof(key)});
    length = statistics_entry != NULL ? statistics_entry->length : 0;
    memo_release(statistics_entry);
    return length;
}

enum memo_answer statistics_ask(struct server *server, struct statistics_entry *statistics_entry,
                                struct generation *generation, const struct statistics_query *order,
                                struct waiter *waiter, struct zt_error *error)
{
    enum memo_answer answer;

    if (memo_is_stopping(server->statistics_memo)) {
        zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
        return MEMO_FAILED;
    }
    answer = memo_ask(statistics_entry, 1, waiter, error);
    if (answer != MEMO_MAKE)
        return answer;
    begin(server, statistics_entry, generation, order, waiter);
    return MEMO_PENDING;
}
