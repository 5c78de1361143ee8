/* One mutex per upload decides which parts may write. It is never held during a write. Parts become
 * durable in groups: one sync covers all parts that are complete when it begins. */
#include "s3/write/s3api_arrival.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "s3/write/s3api_records.h"
#include "zt/digest.h"

struct s3api_arrival {
    struct s3api_upload *upload;
    struct s3api_arrival *next;       /* in the upload's list */
    struct s3api_arrival *next_ready; /* in its list of parts to be recorded */
    struct s3api_part part;           /* offset and version say where it goes */
    uint64_t unit;                    /* of the placement; 0: not known at the end */
    uint64_t expected;                /* or S3API_UNKNOWN */
    uint64_t client;
    struct staged_file *aside; /* NULL: it is written to its place */
    struct zt_hasher *xxh3;
    struct job job; /* removes it */
    /* Guarded by the upload's lock. */
    bool has_entered; /* uses the common file */
    bool is_revoked;
    /* Guarded by its record lock. */
    bool is_recorded;
    struct failure failure; /* why it could not be recorded */
};

static bool refuse_over(struct failure *failure)
{
    return failure_refuse(failure, PROBLEM_UPLOAD_NOT_FOUND,
                          "the upload is completed, aborted or expired");
}

/* --- the upload's list; with its lock --- */

void s3api_arrivals_revoke(struct s3api_upload *upload)
{
    for (struct s3api_arrival *one = upload->arrivals; one != NULL; one = one->next)
        one->is_revoked = true;
}

static void leave(struct s3api_arrival *arrival)
{
    if (arrival->has_entered)
        kept_data_leave(&arrival->upload->data);
    arrival->has_entered = false;
}

void s3api_arrivals_leave(struct s3api_upload *upload)
{
    for (struct s3api_arrival *one = upload->arrivals; one != NULL; one = one->next) {
        assert(one->is_revoked);
        leave(one);
    }
}

static void unlink_arrival(struct s3api_arrival *arrival)
{
    struct s3api_arrival **link = &arrival->upload->arrivals;

    while (*link != NULL && *link != arrival)
        link = &(*link)->next;
    assert(*link == arrival);
    *link = arrival->next;
}

/* Returns true if no bytes that count, and none that arrive, are in the place of a number. */
static bool place_is_free(const struct s3api_upload *upload, uint32_t number)
{
    const struct s3api_part *part = s3api_parts_find(&upload->parts, number);

    if (part != NULL && part->version == 0)
        return false;
    for (const struct s3api_arrival *one = upload->arrivals; one != NULL; one = one->next)
        if (one->part.number == number && one->part.version == 0)
            return false;
    return true;
}

/* Decides where a part goes. After a failed write the common file is left alone: its parts are
 * durable, but nothing written to it later would be. */
static void place(struct s3api_upload *upload, struct s3api_arrival *arrival)
{
    struct s3api_part *part = &arrival->part;

    if (arrival->expected != S3API_UNKNOWN &&
        s3api_placement_find(&upload->placement, part->number, arrival->expected, &part->offset) &&
        !atomic_load(&upload->data.has_failed_write) && place_is_free(upload, part->number))
        return;
    part->offset = 0;
    part->version = ++upload->versions;
}

/* --- beginning --- */

/* Adds the part to the upload's list, as a writer. Returns false with failure set. */
static bool join(struct s3api_arrival *arrival, struct failure *failure)
{
    struct s3api_upload *upload = arrival->upload;
    const uint64_t most = (uint64_t)config_number(&upload->kept.server->config->upload.max_bytes);
    bool is_open;
    bool fits;

    pthread_mutex_lock(&upload->lock);
    is_open = upload->state == S3API_UPLOAD_OPEN;
    fits = (arrival->expected == S3API_UNKNOWN || arrival->expected <= most) &&
           upload->parts.bytes <= most;
    if (is_open && fits) {
        place(upload, arrival);
        arrival->next = upload->arrivals;
        upload->arrivals = arrival;
        upload->writing++;
    }
    pthread_mutex_unlock(&upload->lock);
    if (is_open && !fits)
        return failure_refuse(failure, PROBLEM_TOO_LARGE,
                              "the file is larger than this server accepts");
    return is_open || refuse_over(failure);
}

static bool open_aside(struct s3api_arrival *arrival, struct failure *failure)
{
    const struct kept_upload *kept = &arrival->upload->kept;
    char name[STAGING_NAME_MAX + 1];
    struct zt_error error;

    s3api_part_file_name(arrival->part.number, arrival->part.version, name);
    /* 0 would make it a record. */
    return staging_folder_create(kept->server->store->staging, kept->entry.id, name,
                                 arrival->expected > 0 ? arrival->expected : S3API_UNKNOWN,
                                 &arrival->aside, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

/* The file may have been closed by expiry. */
static bool open_place(struct s3api_arrival *arrival, struct failure *failure)
{
    struct kept_data *data = &arrival->upload->data;

    if (!kept_data_enter(data, failure))
        return failure->is_set ? false : refuse_over(failure);
    if (kept_data_take_space(data, arrival->expected, failure))
        return true;
    kept_data_leave(data);
    return false;
}

static bool open_file(struct s3api_arrival *arrival, struct failure *failure)
{
    struct s3api_upload *upload = arrival->upload;
    const bool is_aside = arrival->part.version != 0;
    const bool is_open = is_aside ? open_aside(arrival, failure) : open_place(arrival, failure);

    assert(is_open || failure->is_set);
    pthread_mutex_lock(&upload->lock);
    arrival->has_entered = is_open && !is_aside;
    s3api_upload_end_writing(upload);
    pthread_mutex_unlock(&upload->lock);
    return is_open;
}

static struct s3api_arrival *new_arrival(struct s3api_upload *upload, uint32_t number,
                                         uint64_t length)
{
    struct s3api_arrival *arrival = calloc(1, sizeof(*arrival));

    if (arrival == NULL)
        return NULL;
    arrival->upload = upload;
    arrival->part.number = number;
    arrival->expected = length;
    if (zt_hasher_new(ZT_DIGEST_XXH3, &arrival->xxh3) == ZT_OK)
        return arrival;
    free(arrival);
    return NULL;
}

static void free_arrival(struct s3api_arrival *arrival)
{
    struct kept_upload *kept = &arrival->upload->kept;

    zt_hasher_free(arrival->xxh3);
    free(arrival);
    kept_upload_release(kept);
}

struct s3api_arrival *s3api_arrival_begin(struct s3api_upload *upload, uint32_t number,
                                          uint64_t length, struct failure *failure)
{
    struct s3api_arrival *arrival = new_arrival(upload, number, length);

    if (arrival == NULL) {
        failure_no_memory(failure, "a part");
        return NULL;
    }
    kept_upload_hold(&upload->kept);
    if (!join(arrival, failure)) {
        free_arrival(arrival);
        return NULL;
    }
    if (open_file(arrival, failure))
        return arrival;
    s3api_arrival_end(arrival);
    return NULL;
}

/* --- writing --- */

/* Counts as a writer from then on. Returns false with failure set if the upload was seized. */
static bool begin_writing(struct s3api_arrival *arrival, struct failure *failure)
{
    struct s3api_upload *upload = arrival->upload;
    bool is_revoked;

    pthread_mutex_lock(&upload->lock);
    is_revoked = arrival->is_revoked;
    upload->writing += !is_revoked;
    pthread_mutex_unlock(&upload->lock);
    return !is_revoked || refuse_over(failure);
}

static void end_writing(struct s3api_arrival *arrival)
{
    struct s3api_upload *upload = arrival->upload;

    pthread_mutex_lock(&upload->lock);
    s3api_upload_end_writing(upload);
    pthread_mutex_unlock(&upload->lock);
}

static bool write_aside(struct s3api_arrival *arrival, const void *bytes, size_t length,
                        struct failure *failure)
{
    struct zt_error error;

    if (staged_file_write_at(arrival->aside, arrival->part.length, bytes, length, &error) != ZT_OK)
        return failure_of_store(failure, &error);
    kept_upload_touch(&arrival->upload->kept);
    return true;
}

static bool write_bytes(struct s3api_arrival *arrival, const void *bytes, size_t length,
                        struct failure *failure)
{
    const uint64_t at = arrival->part.offset + arrival->part.length;

    assert(!arrival->is_recorded);
    assert(arrival->aside == NULL || arrival->part.offset == 0);
    if (!(arrival->aside != NULL
              ? write_aside(arrival, bytes, length, failure)
              : kept_data_write(&arrival->upload->data, at, bytes, length, failure)))
        return false;
    zt_hasher_update(arrival->xxh3, bytes, length);
    arrival->part.length += length;
    return true;
}

/* In its place, a part that is too long would overwrite the next one. */
static bool check_length(const struct s3api_arrival *arrival, size_t length,
                         struct failure *failure)
{
    const struct server *server = arrival->upload->kept.server;
    const bool is_known = arrival->expected != S3API_UNKNOWN;
    const uint64_t most =
        is_known ? arrival->expected : (uint64_t)config_number(&server->config->upload.max_bytes);

    if (arrival->part.length <= most && length <= most - arrival->part.length)
        return true;
    return is_known ? failure_refuse(failure, PROBLEM_SIZE_MISMATCH,
                                     "the part is longer than its declared %llu bytes",
                                     (unsigned long long)most)
                    : failure_refuse(failure, PROBLEM_TOO_LARGE,
                                     "the part is larger than this server accepts");
}

bool s3api_arrival_write(struct s3api_arrival *arrival, const void *bytes, size_t length,
                         struct failure *failure)
{
    bool is_written;

    if (!check_length(arrival, length, failure) || !begin_writing(arrival, failure))
        return false;
    is_written = write_bytes(arrival, bytes, length, failure);
    end_writing(arrival);
    return is_written;
}

#define COPY_BYTES ((size_t)256 << 10)

bool s3api_arrival_copy(struct s3api_arrival *arrival, struct zt_source *source, uint64_t offset,
                        uint64_t length, struct failure *failure)
{
    uint8_t *buffer = malloc(COPY_BYTES);
    struct zt_error error;
    bool is_copied = true;

    if (buffer == NULL)
        return failure_no_memory(failure, "copying");
    while (length > 0 && is_copied) {
        const size_t piece = length < COPY_BYTES ? (size_t)length : COPY_BYTES;

        if (zt_source_read_at(source, offset, buffer, piece, &error) != ZT_OK)
            is_copied = failure_of_store(failure, &error);
        else
            is_copied = s3api_arrival_write(arrival, buffer, piece, failure);
        offset += piece;
        length -= piece;
    }
    free(buffer);
    return is_copied;
}

/* --- recording; with the record lock --- */

static size_t count_ready(const struct s3api_arrival *first)
{
    size_t count = 0;

    for (; first != NULL; first = first->next_ready)
        count++;
    return count;
}

static void fail_all(struct s3api_arrival *first, const struct failure *failure)
{
    assert(failure->is_set);
    for (; first != NULL; first = first->next_ready)
        first->failure = *failure;
}

/* Takes those parts out of a list that lost the upload while they arrived, which they have as their
 * failure. A completion that failed since then may have cut their bytes off, and closed the file.
 * The upload's lock must be held. */
static struct s3api_arrival *without_revoked(struct s3api_arrival *first)
{
    struct s3api_arrival **link = &first;

    while (*link != NULL) {
        struct s3api_arrival *one = *link;

        assert(!one->is_recorded);
        if (one->is_revoked) {
            refuse_over(&one->failure);
            *link = one->next_ready;
        } else {
            link = &one->next_ready;
        }
    }
    return first;
}

/* Takes the parts that wait, and makes room for them in the table. Returns NULL if none can be
 * recorded, for the reason that each of them has as its failure. */
static struct s3api_arrival *take_ready(struct s3api_upload *upload)
{
    struct failure failure = {.is_set = false};
    struct s3api_arrival *first;
    size_t count;

    pthread_mutex_lock(&upload->lock);
    first = without_revoked(upload->ready);
    upload->ready = NULL;
    count = count_ready(first);
    if (upload->state != S3API_UPLOAD_OPEN)
        refuse_over(&failure);
    else if (upload->records + count > S3API_RECORDS_MAX)
        failure_refuse(&failure, PROBLEM_TOO_LARGE,
                       "the parts of this upload were sent again too often");
    else if (!s3api_parts_reserve(&upload->parts, count))
        failure_no_memory(&failure, "a part");
    pthread_mutex_unlock(&upload->lock);
    if (!failure.is_set)
        return first;
    fail_all(first, &failure);
    return NULL;
}

/* One sync covers all parts that are in their places. */
static bool sync_data(struct s3api_upload *upload, const struct s3api_arrival *first,
                      struct failure *failure)
{
    struct zt_error error;

    while (first != NULL && first->aside != NULL)
        first = first->next_ready;
    if (first == NULL)
        return true;
    if (staged_file_sync(upload->data.file, &error) == ZT_OK)
        return true;
    if (problem_of_write(&error) != PROBLEM_OVERLOADED)
        atomic_store(&upload->data.has_failed_write, true);
    return failure_of_store(failure, &error);
}

static bool record(struct s3api_upload *upload, const struct s3api_arrival *first,
                   struct failure *failure)
{
    const size_t count = count_ready(first);
    char *lines = malloc(count * S3API_RECORD_MAX);
    size_t length = 0;
    struct zt_error error;
    enum zt_status status;

    assert(count > 0);
    if (lines == NULL)
        return failure_no_memory(failure, "a part");
    for (; first != NULL; first = first->next_ready) {
        const struct s3api_record line = {
            .kind = S3API_RECORD_PART, .part = first->part, .unit = first->unit};

        length += s3api_record_print(&line, lines + length);
    }
    status = s3api_upload_record(upload, lines, length, (uint32_t)count, &error);
    free(lines);
    return status == ZT_OK || failure_of_store(failure, &error);
}

/* Puts a recorded part into the table. Returns the version of the replaced part, whose file can be
 * removed; 0: it has no file. */
static uint32_t replace(struct s3api_upload *upload, struct s3api_arrival *arrival)
{
    const struct s3api_part *old = s3api_parts_find(&upload->parts, arrival->part.number);
    const uint32_t version = old != NULL ? old->version : 0;

    if (old != NULL)
        s3api_prefix_note_replaced(upload, old->number);
    s3api_parts_put(&upload->parts, &arrival->part);
    atomic_store(&upload->kept.entry.received, upload->parts.bytes);
    upload->prefix.client = arrival->client;
    arrival->is_recorded = true;
    return version;
}

static void remove_replaced(const struct s3api_upload *upload, uint32_t number, uint32_t version)
{
    const struct kept_upload *kept = &upload->kept;
    char name[STAGING_NAME_MAX + 1];

    s3api_part_file_name(number, version, name);
    (void)staging_folder_remove(kept->server->store->staging, kept->entry.id, name, NULL);
}

static void show(struct s3api_upload *upload, struct s3api_arrival *first)
{
    for (; first != NULL; first = first->next_ready) {
        uint32_t replaced;

        pthread_mutex_lock(&upload->lock);
        replaced = replace(upload, first);
        pthread_mutex_unlock(&upload->lock);
        if (replaced != 0)
            remove_replaced(upload, first->part.number, replaced);
    }
    pthread_mutex_lock(&upload->lock);
    s3api_prefix_advance(upload);
    pthread_mutex_unlock(&upload->lock);
}

static void record_ready(struct s3api_upload *upload)
{
    struct s3api_arrival *first = take_ready(upload);
    struct failure failure = {.is_set = false};

    if (first == NULL)
        return;
    if (sync_data(upload, first, &failure) && record(upload, first, &failure))
        show(upload, first);
    else
        fail_all(first, &failure);
}

/* --- the end --- */

/* Returns false with failure set. */
static bool finish_bytes(struct s3api_arrival *arrival, struct failure *failure)
{
    struct zt_digest digest;
    struct zt_error error;

    if (arrival->expected != S3API_UNKNOWN && arrival->part.length != arrival->expected)
        return failure_refuse(failure, PROBLEM_SIZE_MISMATCH,
                              "the part has fewer bytes than its declared length");
    if (arrival->aside != NULL && staged_file_sync(arrival->aside, &error) != ZT_OK)
        return failure_of_store(failure, &error);
    zt_hasher_finish(arrival->xxh3, &digest);
    arrival->part.xxh3 = 0;
    for (size_t i = 0; i < sizeof(arrival->part.xxh3); i++)
        arrival->part.xxh3 = arrival->part.xxh3 << 8 | digest.bytes[i];
    arrival->part.modified = time(NULL);
    return true;
}

bool s3api_arrival_finish(struct s3api_arrival *arrival, const struct s3api_part_checksum *checksum,
                          uint64_t client, struct s3api_part *out_part, struct failure *failure)
{
    struct s3api_upload *upload = arrival->upload;

    assert(!arrival->is_recorded && !arrival->failure.is_set);
    if (!finish_bytes(arrival, failure))
        return false;
    arrival->part.checksum = *checksum;
    arrival->client = client;
    pthread_mutex_lock(&upload->lock);
    arrival->unit = upload->placement.unit;
    arrival->next_ready = upload->ready;
    upload->ready = arrival;
    pthread_mutex_unlock(&upload->lock);
    pthread_mutex_lock(&upload->record_lock);
    if (!arrival->is_recorded && !arrival->failure.is_set)
        record_ready(upload);
    assert(arrival->is_recorded != arrival->failure.is_set);
    pthread_mutex_unlock(&upload->record_lock);
    kept_upload_touch(&upload->kept);
    *failure = arrival->failure;
    *out_part = arrival->part;
    return arrival->is_recorded;
}

static void run_removal(struct job *job)
{
    struct s3api_arrival *arrival =
        (struct s3api_arrival *)((char *)job - offsetof(struct s3api_arrival, job));

    staged_file_remove(arrival->aside);
    free_arrival(arrival);
}

/* Gives back the space that was claimed for bytes that did not arrive. */
static void give_back(const struct s3api_arrival *arrival)
{
    if (arrival->has_entered && arrival->part.length < arrival->expected)
        staged_file_return_space(arrival->upload->data.file,
                                 arrival->expected - arrival->part.length);
}

void s3api_arrival_end(struct s3api_arrival *arrival)
{
    struct s3api_upload *upload;

    if (arrival == NULL)
        return;
    upload = arrival->upload;
    pthread_mutex_lock(&upload->lock);
    unlink_arrival(arrival);
    give_back(arrival);
    leave(arrival);
    pthread_mutex_unlock(&upload->lock);
    if (arrival->aside != NULL && !arrival->is_recorded) {
        arrival->job.run = run_removal;
        workers_submit(upload->kept.server->workers, &arrival->job);
        return;
    }
    staged_file_close(arrival->aside);
    free_arrival(arrival);
}
