/* The files of a multipart upload: what it was created with, its parts, and how they are found
 * again after a restart. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/server.h"
#include "s3/s3api_meta.h"
#include "s3/write/s3api_records.h"
#include "s3/write/s3api_upload.h"
#include "upload/shared/kept_files.h"
#include "upload/shared/write_checks.h"

#define PART_PREFIX "part-"

void s3api_part_file_name(uint32_t number, uint32_t version, char out_name[STAGING_NAME_MAX + 1])
{
    assert(version != 0);
    snprintf(out_name, STAGING_NAME_MAX + 1, PART_PREFIX "%05" PRIu32 "-%" PRIu32, number, version);
}

/* Returns true if a file contains an acknowledged part. */
static bool is_part(const struct s3api_upload *upload, const char *name)
{
    char own[STAGING_NAME_MAX + 1];
    struct zt_text rest = {name + strlen(PART_PREFIX), 0};
    const struct s3api_part *part;
    uint64_t number;

    if (strncmp(name, PART_PREFIX, strlen(PART_PREFIX)) != 0)
        return false;
    rest.length = strlen(rest.bytes);
    if (!zt_decimal_take(&rest, &number) || number > S3API_PARTS_MAX)
        return false;
    part = s3api_parts_find(&upload->parts, (uint32_t)number);
    if (part == NULL || part->version == 0)
        return false;
    s3api_part_file_name(part->number, part->version, own);
    return strcmp(name, own) == 0;
}

/* A published upload keeps only its outcome. */
static bool keeps(const void *context, const char *name)
{
    const struct s3api_upload *upload = context;

    assert(upload != NULL && name[0] != '\0');
    if (strcmp(name, S3API_DESCRIPTION_NAME) == 0 || strcmp(name, S3API_RECORDS_NAME) == 0)
        return true;
    return s3api_upload_state(upload) != S3API_UPLOAD_PUBLISHED &&
           (strcmp(name, S3API_DATA_NAME) == 0 || strcmp(name, S3API_WHOLE_NAME) == 0 ||
            is_part(upload, name));
}

void s3api_upload_clean(const struct s3api_upload *upload)
{
    const struct kept_upload *kept = &upload->kept;

    staging_folder_clean(kept->server->store->staging, kept->entry.id, keeps, upload);
}

/* --- the description --- */

/* Metadata may contain any bytes. */
static void print_metadata(const char *metadata, FILE *stream)
{
    fputs("metadata ", stream);
    for (const char *at = metadata; *at != '\0'; at++)
        fprintf(stream, "%02x", (unsigned char)*at);
    fputc('\n', stream);
}

static void print_description(const struct kept_upload *kept, FILE *stream)
{
    const struct s3api_terms *terms = &((const struct s3api_upload *)kept)->terms;

    assert(kept->entry.model[0] != '\0');
    fprintf(stream, "key %s\ncreated %" PRId64 "\n", kept->entry.model,
            (int64_t)kept->entry.created);
    if (terms->algorithm[0] != '\0')
        fprintf(stream, "checksum %s%s\n", terms->algorithm, terms->is_full_object ? " full" : "");
    if (terms->metadata != NULL)
        print_metadata(terms->metadata, stream);
}

struct description {
    char key[MODEL_NAME_MAX + 1];
    uint64_t created;
    struct s3api_terms terms;
};

static bool read_metadata(const char *value, struct s3api_terms *terms)
{
    const size_t length = strlen(value) / 2;

    if (terms->metadata != NULL)
        return false;
    terms->metadata = malloc(length + 1);
    if (terms->metadata == NULL)
        return false;
    terms->metadata[length] = '\0';
    return zt_hex_read_lower(zt_text_from(value), terms->metadata, length) &&
           strlen(terms->metadata) == length && s3api_meta_is_sound(terms->metadata);
}

static bool read_checksum(char *value, struct s3api_terms *terms)
{
    char *blank = strchr(value, ' ');

    if (blank != NULL && strcmp(blank, " full") != 0)
        return false;
    terms->is_full_object = blank != NULL;
    if (blank != NULL)
        *blank = '\0';
    if (value[0] == '\0' || strlen(value) >= sizeof(terms->algorithm))
        return false;
    strcpy(terms->algorithm, value);
    return true;
}

static bool read_key(const char *value, struct description *description)
{
    if (strlen(value) >= sizeof(description->key) || !file_path_is_writable(zt_text_from(value)))
        return false;
    strcpy(description->key, value);
    return true;
}

static bool take_line(void *out_description, const char *key, char *value)
{
    struct description *description = out_description;

    if (strcmp(key, "key") == 0)
        return read_key(value, description);
    if (strcmp(key, "created") == 0)
        return zt_decimal_read(zt_text_from(value), INT64_MAX, &description->created);
    if (strcmp(key, "checksum") == 0)
        return read_checksum(value, &description->terms);
    return strcmp(key, "metadata") == 0 && read_metadata(value, &description->terms);
}

static const struct kept_description description_format = {
    .name = S3API_DESCRIPTION_NAME,
    .format = "ztserve-multipart",
    .version = 1,
    .print = print_description,
    .take = take_line,
};

enum zt_status s3api_upload_describe(const struct s3api_upload *upload, struct zt_error *error)
{
    return kept_description_write(&description_format, &upload->kept, true, error);
}

/* --- the records --- */

/* Opens the file, or creates it for the first part. */
static enum zt_status open_records(const struct s3api_upload *upload, struct staged_file **out_file,
                                   struct zt_error *error)
{
    const struct kept_upload *kept = &upload->kept;
    struct staging *staging = kept->server->store->staging;
    enum zt_status status =
        staging_folder_open(staging, kept->entry.id, S3API_RECORDS_NAME, out_file, error);

    if (status != ZT_NOT_FOUND || upload->records > 0)
        return status;
    return staging_folder_create(staging, kept->entry.id, S3API_RECORDS_NAME, 0, out_file, error);
}

enum zt_status s3api_upload_record(struct s3api_upload *upload, const char *lines, size_t length,
                                   uint32_t count, struct zt_error *error)
{
    struct staged_file *file;
    enum zt_status status = open_records(upload, &file, error);

    if (status != ZT_OK)
        return status;
    assert(count > 0 && length > 0);
    file->is_record = true;
    status = staged_file_write_at(file, upload->records_length, lines, length, error);
    if (status == ZT_OK)
        status = staged_file_sync(file, error);
    /* Otherwise the next process would take lines that failed for records. */
    if (status != ZT_OK)
        (void)staged_file_truncate(file, upload->records_length, NULL);
    staged_file_close(file);
    if (status != ZT_OK)
        return status;
    upload->records_length += length;
    upload->records += count;
    return ZT_OK;
}

/* --- reading the records --- */

static bool take_part(struct s3api_upload *upload, const struct s3api_record *record)
{
    const struct s3api_part *part = &record->part;
    uint64_t ignored;

    assert(record->kind == S3API_RECORD_PART);
    if (!s3api_parts_reserve(&upload->parts, 1))
        return false;
    s3api_parts_put(&upload->parts, part);
    if (part->version > upload->versions)
        upload->versions = part->version;
    if (record->unit != 0)
        upload->placement.unit = record->unit;
    else if (part->length > 0)
        (void)s3api_placement_find(&upload->placement, part->number, part->length, &ignored);
    return true;
}

/* Takes the lines of a text. *out_end: the last one, if publication was about to begin. Returns
 * false if out of memory. */
static bool take_records(struct s3api_upload *upload, struct zt_text text,
                         struct s3api_record *out_end)
{
    struct s3api_record record;
    size_t length;

    out_end->kind = S3API_RECORD_OPEN;
    while ((length = s3api_record_read(text, &record)) > 0) {
        if (record.kind == S3API_RECORD_PART && !take_part(upload, &record))
            return false;
        if (record.kind != S3API_RECORD_PART)
            *out_end = record;
        upload->records_length += length;
        upload->records++;
        text = (struct zt_text){text.bytes + length, text.length - length};
    }
    atomic_store(&upload->kept.entry.received, upload->parts.bytes);
    return true;
}

static enum kept_opened read_records(struct s3api_upload *upload, struct s3api_record *out_end)
{
    const struct kept_upload *kept = &upload->kept;
    char *text = NULL;
    enum kept_opened opened =
        kept_text_read(kept->server->store->staging, kept->entry.id, S3API_RECORDS_NAME,
                       (size_t)S3API_RECORDS_MAX * S3API_RECORD_MAX, &text);

    out_end->kind = S3API_RECORD_OPEN;
    /* Without this file, no part has been acknowledged yet. */
    if (opened == KEPT_NOT_OURS)
        return KEPT_OPENED;
    if (opened == KEPT_OPENED && !take_records(upload, zt_text_from(text), out_end))
        opened = KEPT_UNREADABLE;
    free(text);
    return opened;
}

/* --- opening --- */

static enum kept_opened find_file(const struct s3api_upload *upload, const char *name)
{
    const struct kept_upload *kept = &upload->kept;
    struct staged_file *file;
    enum kept_opened opened = kept_opened_by(
        staging_folder_open(kept->server->store->staging, kept->entry.id, name, &file, NULL));

    if (opened == KEPT_OPENED)
        staged_file_close(file);
    return opened;
}

/* The process that published it may have failed to sync the folder. */
static void take_outcome(struct s3api_upload *upload, const struct s3api_record *end)
{
    assert(upload->state == S3API_UPLOAD_OPEN && end->kind == S3API_RECORD_END);
    memcpy(upload->published.sha256, end->sha256, sizeof(end->sha256));
    upload->published.remains.is_unsynced = true;
    upload->state = S3API_UPLOAD_PUBLISHED;
    atomic_store(&upload->kept.entry.active, (time_t)end->when);
    atomic_store(&upload->kept.entry.touched_ms, kept_upload_ms_of((time_t)end->when));
}

/* A file that was about to be published, and is gone, was published. */
static enum kept_opened open_end(struct s3api_upload *upload)
{
    struct s3api_record end;
    enum kept_opened opened = read_records(upload, &end);

    if (opened != KEPT_OPENED)
        return opened;
    opened = find_file(upload, end.kind == S3API_RECORD_END && end.is_whole ? S3API_WHOLE_NAME
                                                                            : S3API_DATA_NAME);
    upload->has_end = end.kind == S3API_RECORD_END;
    if (opened != KEPT_NOT_OURS || !upload->has_end)
        return opened;
    take_outcome(upload, &end);
    return KEPT_OUTCOME;
}

static enum kept_opened open_described(struct server *server, const char *id,
                                       struct description *description,
                                       struct kept_upload **out_upload)
{
    struct s3api_upload *upload =
        s3api_upload_new(server, id, zt_text_from(description->key), &description->terms);
    enum kept_opened opened;

    if (upload == NULL)
        return KEPT_UNREADABLE;
    upload->kept.entry.created = (time_t)description->created;
    opened = open_end(upload);
    if (opened != KEPT_OPENED && opened != KEPT_OUTCOME) {
        kept_upload_release(upload);
        return opened;
    }
    /* Parts that were still arriving left files that no request will finish. */
    s3api_upload_clean(upload);
    *out_upload = &upload->kept;
    return opened;
}

enum kept_opened s3api_upload_files_open(struct server *server, const char *id,
                                         struct kept_upload **out_upload)
{
    struct description description = {.created = 0};
    enum kept_opened opened =
        kept_description_read(&description_format, server->store->staging, id, &description, NULL);

    if (opened == KEPT_OPENED)
        opened = description.key[0] != '\0' ? open_described(server, id, &description, out_upload)
                                            : KEPT_NOT_OURS;
    free(description.terms.metadata);
    return opened;
}
