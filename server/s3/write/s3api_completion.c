/* The steps of a completion: find the parts, take the upload from all requests that still send
 * parts, join the parts, hash, record that publication begins, publish. No acknowledged part
 * changes until the last step has succeeded. */
#include "s3/write/s3api_completion.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/server.h"
#include "s3/write/s3api_records.h"
#include "s3/write/s3api_write_checks.h"
#include "upload/shared/publication.h"

void s3api_completion_free(struct s3api_completion *completion)
{
    free(completion->list);
    completion->list = NULL;
}

/* --- the list of parts --- */

static bool refuse_part(struct s3api_completion *completion, uint32_t number)
{
    completion->refusal = S3API_REFUSAL_PART;
    return failure_refuse(&completion->failure, PROBLEM_INVALID_REQUEST,
                          "part %u was not uploaded, or its ETag or checksum is another one",
                          (unsigned)number);
}

/* A checksum that only one side knows is not compared. */
static bool has_checksum(const struct s3api_part *part, const struct s3api_named_part *named)
{
    enum checksum checksum;

    return !checksum_find_name(zt_text_from(part->checksum.algorithm), &checksum) ||
           named->checksums[checksum][0] == '\0' ||
           strcmp(named->checksums[checksum], part->checksum.value) == 0;
}

/* The upload's lock must be held. */
static bool take_part(struct s3api_completion *completion, const struct s3api_named_part *named)
{
    const struct s3api_part *part = s3api_parts_find(&completion->upload->parts, named->number);

    if (part == NULL || !s3api_part_has_etag(part, zt_text_from(named->etag)) ||
        !has_checksum(part, named))
        return refuse_part(completion, named->number);
    completion->list[completion->count++] = *part;
    completion->bytes += part->length;
    return true;
}

static bool check_sizes(struct s3api_completion *completion)
{
    const struct server *server = completion->upload->kept.server;
    const uint64_t most = (uint64_t)config_number(&server->config->upload.max_bytes);

    assert(completion->count == completion->named->count);
    for (size_t i = 0; i + 1 < completion->count; i++) {
        if (completion->list[i].length >= S3API_PART_LEAST_BYTES)
            continue;
        completion->refusal = S3API_REFUSAL_SMALL;
        return failure_refuse(&completion->failure, PROBLEM_INVALID_REQUEST,
                              "part %u has less than 5 MiB, and is not the last one",
                              (unsigned)completion->list[i].number);
    }
    if (completion->stated_bytes != UINT64_MAX && completion->stated_bytes != completion->bytes)
        return failure_refuse(&completion->failure, PROBLEM_INVALID_REQUEST,
                              "the parts have %llu bytes together, not %llu",
                              (unsigned long long)completion->bytes,
                              (unsigned long long)completion->stated_bytes);
    return completion->bytes <= most ||
           failure_refuse(&completion->failure, PROBLEM_TOO_LARGE,
                          "the file is larger than this server accepts");
}

static void find_checksum(struct s3api_completion *completion)
{
    const struct s3api_terms *terms = &completion->upload->terms;
    struct zt_digest value;
    enum checksum checksum;

    completion->checksum[0] = '\0';
    if (!checksum_find_name(zt_text_from(terms->algorithm), &checksum))
        return;
    if (!terms->is_full_object)
        (void)s3api_checksum_compose(checksum, completion->list, completion->count,
                                     completion->checksum);
    else if (s3api_checksum_combine(checksum, completion->list, completion->count, &value))
        checksum_write(&value, completion->checksum);
}

static bool check_composite(struct s3api_completion *completion, enum checksum checksum)
{
    char computed[S3API_WHOLE_CHECKSUM_SIZE];
    char stated[CHECKSUM_TEXT_SIZE];

    assert(completion->is_stated[checksum]);
    if (!s3api_checksum_compose(checksum, completion->list, completion->count, computed))
        return failure_refuse(&completion->failure, PROBLEM_INVALID_REQUEST,
                              "%s cannot be verified: a part was uploaded without this checksum",
                              checksum_field(checksum));
    checksum_write(&completion->stated[checksum], stated);
    return (completion->part_counts[checksum] == completion->count &&
            strncmp(computed, stated, strlen(stated)) == 0) ||
           failure_refuse(&completion->failure, PROBLEM_DIGEST_MISMATCH,
                          "the checksums of the parts do not match %s", checksum_field(checksum));
}

static bool check_composites(struct s3api_completion *completion)
{
    for (enum checksum i = 0; i < CHECKSUM_MD5; i++)
        if (completion->part_counts[i] != 0 && !check_composite(completion, i))
            return false;
    return true;
}

/* Finds the current parts with the tags that the client names. */
static bool find_parts(struct s3api_completion *completion)
{
    struct s3api_upload *upload = completion->upload;
    bool are_found = true;

    assert(completion->list != NULL && completion->named->count > 0);
    completion->count = 0;
    completion->bytes = 0;
    pthread_mutex_lock(&upload->lock);
    for (size_t i = 0; i < completion->named->count && are_found; i++)
        are_found = take_part(completion, &completion->named->parts[i]);
    pthread_mutex_unlock(&upload->lock);
    if (!are_found || !check_sizes(completion) || !check_composites(completion))
        return false;
    find_checksum(completion);
    return true;
}

/* --- records --- */

/* A record that publication begins counts even if it failed: it may be on the disk. */
static bool record(struct s3api_upload *upload, const struct s3api_record *line,
                   struct failure *failure)
{
    char text[S3API_RECORD_MAX];
    const size_t length = s3api_record_print(line, text);
    const bool is_end = line->kind == S3API_RECORD_END;
    struct zt_error error;
    enum zt_status status;

    pthread_mutex_lock(&upload->record_lock);
    upload->has_end = upload->has_end || is_end;
    status = s3api_upload_record(upload, text, length, 1, &error);
    if (status == ZT_OK)
        upload->has_end = is_end;
    pthread_mutex_unlock(&upload->record_lock);
    return status == ZT_OK || failure_of_store(failure, &error);
}

/* Takes back the record of an earlier attempt. Before that, no file may be removed that this
 * attempt was about to publish: without it, the upload would count as published. */
static bool void_end(struct s3api_upload *upload, struct failure *failure)
{
    const struct s3api_record line = {.kind = S3API_RECORD_OPEN};

    return !upload->has_end || record(upload, &line, failure);
}

static bool note_end(struct s3api_completion *completion, bool is_whole)
{
    struct s3api_record line = {
        .kind = S3API_RECORD_END, .when = (uint64_t)time(NULL), .is_whole = is_whole};

    memcpy(line.sha256, completion->published.sha256, sizeof(line.sha256));
    return record(completion->upload, &line, &completion->failure);
}

/* --- joining --- */

static bool open_part(struct s3api_completion *completion, const struct s3api_part *part,
                      struct staged_file **out_file)
{
    const struct kept_upload *kept = &completion->upload->kept;
    char name[STAGING_NAME_MAX + 1];
    struct zt_error error;

    s3api_part_file_name(part->number, part->version, name);
    return staging_folder_open(kept->server->store->staging, kept->entry.id, name, out_file,
                               &error) == ZT_OK ||
           failure_of_store(&completion->failure, &error);
}

/* Copies a part to an offset of a file, unless the file already contains it. */
static bool copy_part(struct s3api_completion *completion, const struct s3api_part *part,
                      struct staged_file *to, uint64_t offset)
{
    struct staged_file *data = completion->upload->data.file;
    struct staged_file *from = data;
    struct zt_error error;
    bool is_copied;

    assert(data != NULL && to != NULL);
    if (part->length == 0 || (part->version == 0 && to == data))
        return true;
    if (part->version != 0 && !open_part(completion, part, &from))
        return false;
    is_copied = staged_file_copy(from, part->version != 0 ? 0 : part->offset, to, offset,
                                 part->length, &error) == ZT_OK ||
                failure_of_store(&completion->failure, &error);
    if (from != data)
        staged_file_close(from);
    return is_copied;
}

static bool copy_parts(struct s3api_completion *completion, struct staged_file *to)
{
    uint64_t offset = 0;

    for (size_t i = 0; i < completion->count; i++) {
        if (!copy_part(completion, &completion->list[i], to, offset))
            return false;
        offset += completion->list[i].length;
        kept_upload_touch(&completion->upload->kept);
    }
    assert(offset == completion->bytes);
    return true;
}

static bool join_in_place(struct s3api_completion *completion)
{
    struct staged_file *data = completion->upload->data.file;
    struct zt_error error;

    return copy_parts(completion, data) &&
           (staged_file_length(data) == completion->bytes ||
            staged_file_truncate(data, completion->bytes, &error) == ZT_OK ||
            failure_of_store(&completion->failure, &error));
}

/* *out_file: the new file. */
static bool join_by_copy(struct s3api_completion *completion, struct staged_file **out_file)
{
    const struct kept_upload *kept = &completion->upload->kept;
    struct zt_error error;

    if (staging_folder_create(kept->server->store->staging, kept->entry.id, S3API_WHOLE_NAME,
                              completion->bytes > 0 ? completion->bytes : UINT64_MAX, out_file,
                              &error) != ZT_OK)
        return failure_of_store(&completion->failure, &error);
    return copy_parts(completion, *out_file);
}

/* --- checksums --- */

/* Computes the checksum of the joined file by reading it, if there is no faster way. */
static enum zt_status compute(const struct s3api_completion *completion, enum checksum checksum,
                              struct staged_file *file, struct zt_digest *out_value,
                              struct zt_error *error)
{
    assert(completion->is_stated[checksum] && file != NULL);
    *out_value = completion->stated[checksum];
    if (checksum == CHECKSUM_SHA256) {
        memcpy(out_value->bytes, completion->published.sha256, 32);
        return ZT_OK;
    }
    if (s3api_checksum_combine(checksum, completion->list, completion->count, out_value))
        return ZT_OK;
    return staged_file_digest(file, completion->stated[checksum].algorithm, NULL, out_value, error);
}

static bool check_checksums(struct s3api_completion *completion, struct staged_file *file)
{
    for (enum checksum i = 0; i < CHECKSUM_MD5; i++) {
        struct zt_digest value;
        struct zt_error error;

        if (!completion->is_stated[i] || completion->part_counts[i] != 0)
            continue;
        if (compute(completion, i, file, &value, &error) != ZT_OK)
            return failure_of_store(&completion->failure, &error);
        if (!zt_digest_equal(&value, &completion->stated[i]))
            return failure_refuse(&completion->failure, PROBLEM_DIGEST_MISMATCH,
                                  "the file does not match %s", checksum_field(i));
    }
    return true;
}

/* --- publishing --- */

static bool publish(struct s3api_completion *completion, struct staged_file **file)
{
    struct s3api_upload *upload = completion->upload;
    struct publication publication = {
        .server = upload->kept.server,
        .stored = *file,
        .name = upload->kept.entry.model,
        .is_file = true,
        .preconditions = completion->preconditions,
        .covers = completion->covers,
        .client = completion->client,
        .published = completion->published,
    };

    assert(*file != NULL && upload->has_end);
    if (!publication_run(&publication, &completion->failure))
        return false;
    *file = NULL;
    completion->published = publication.published;
    s3api_keep_fields(upload->kept.server, upload->kept.entry.model, &completion->published,
                      upload->terms.metadata);
    return true;
}

static bool hash_and_publish(struct s3api_completion *completion, struct staged_file **file,
                             bool is_whole)
{
    return s3api_prefix_finish(completion->upload, *file, completion->bytes, !is_whole,
                               completion->published.sha256, &completion->failure) &&
           check_checksums(completion, *file) && note_end(completion, is_whole) &&
           publish(completion, file);
}

/* Publishes the common file, which publication closes. */
static bool complete_in_place(struct s3api_completion *completion)
{
    struct kept_data *data = &completion->upload->data;

    return join_in_place(completion) && hash_and_publish(completion, &data->file, false);
}

/* A file that could not be published is removed, unless its record cannot be taken back. */
static bool complete_by_copy(struct s3api_completion *completion)
{
    struct failure ignored = {.is_set = false};
    struct staged_file *whole = NULL;

    if (join_by_copy(completion, &whole) && hash_and_publish(completion, &whole, true))
        return true;
    if (whole != NULL && void_end(completion->upload, &ignored))
        staged_file_remove(whole);
    else
        staged_file_close(whole);
    return false;
}

static bool complete_entered(struct s3api_completion *completion)
{
    struct s3api_upload *upload = completion->upload;
    const bool is_trusted = !atomic_load(&upload->data.has_failed_write);

    if (is_trusted && s3api_parts_plan(&upload->parts, completion->list, completion->count) ==
                          S3API_JOIN_IN_PLACE)
        return complete_in_place(completion);
    return complete_by_copy(completion);
}

/* The parts are checked again: one may have been replaced before the upload was seized. */
static bool complete_seized(struct s3api_completion *completion)
{
    struct s3api_upload *upload = completion->upload;

    return find_parts(completion) && void_end(upload, &completion->failure) &&
           kept_data_enter_closed(&upload->data, &completion->failure) &&
           complete_entered(completion);
}

/* --- afterwards --- */

static bool end_published(struct s3api_completion *completion)
{
    struct s3api_upload *upload = completion->upload;

    assert(!completion->failure.is_set);
    kept_data_end(&upload->data);
    s3api_upload_finish(upload, &completion->published);
    metric_add(METRIC_PUBLISHED_MULTIPART, 1);
    return true;
}

/* Returns true if another try with the same parts might succeed: the disk may have space again, or
 * the object store may be back. A client whose condition failed may want to complete the upload
 * without it, and one that named the wrong parts may name others. */
static bool may_succeed_later(const struct s3api_completion *completion)
{
    const enum problem problem = completion->failure.problem;

    return problem != PROBLEM_INVALID_MODEL && problem != PROBLEM_TOO_LARGE &&
           problem != PROBLEM_INVALID_NAME;
}

static bool end_failed(struct s3api_completion *completion)
{
    struct s3api_upload *upload = completion->upload;

    assert(completion->failure.is_set);
    metric_add(METRIC_FAILED_MULTIPART, 1);
    kept_data_end(&upload->data);
    if (may_succeed_later(completion))
        s3api_upload_reopen(upload);
    else
        s3api_upload_drop(upload);
    return false;
}

/* Another request may have published it: its answer was lost. */
static bool find_outcome(struct s3api_completion *completion)
{
    struct s3api_upload *upload = completion->upload;
    const struct kept_upload *kept = &upload->kept;

    if (s3api_upload_state(upload) != S3API_UPLOAD_PUBLISHED)
        return false;
    pthread_mutex_lock(&upload->record_lock);
    publication_complete(kept->server, kept->entry.model, &upload->published);
    completion->published = upload->published;
    pthread_mutex_unlock(&upload->record_lock);
    completion->is_repeated = true;
    /* The answer is the same, unless the list is another one. */
    (void)find_parts(completion);
    completion->refusal = S3API_REFUSAL_NONE;
    completion->failure = (struct failure){.is_set = false};
    return true;
}

bool s3api_completion_run(struct s3api_completion *completion)
{
    struct s3api_upload *upload = completion->upload;

    completion->list = malloc(completion->named->count * sizeof(completion->list[0]));
    if (completion->list == NULL)
        return failure_no_memory(&completion->failure, "a list of parts");
    if (find_outcome(completion))
        return true;
    if (!find_parts(completion))
        return false;
    if (!s3api_upload_seize(upload, &completion->failure)) {
        if (completion->failure.is_passing)
            completion->refusal = S3API_REFUSAL_BUSY;
        return false;
    }
    return complete_seized(completion) ? end_published(completion) : end_failed(completion);
}

bool s3api_upload_abort(struct s3api_upload *upload, struct failure *failure)
{
    if (!s3api_upload_seize(upload, failure))
        return false;
    s3api_upload_drop(upload);
    return true;
}
