/* The last whole list, saved in the cache's folder. If the store is away at start, the server
 * learns from it which versions of which files are in its cache. One record (base/record.h):
 *
 *   magic, origin, bucket, prefix, when the list began (ns), count of files; for each file its
 *   ETag, size, modification time (s) and path; hash */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/record.h"
#include "disk/whole_file.h"
#include "store/s3/s3_listing.h"
#include "zt/digest.h"

#define FILE_NAME "bucket-list"
/* The last digit is the format version. */
#define MAGIC       "ZTSLST02"
#define MAGIC_BYTES 8
/* Enough for millions of files. */
#define FILE_BYTES_MAX ((uint64_t)1 << 30)

/* Writes which bucket the list is of. */
static void put_place(struct record_writer *image, const struct bucket *bucket)
{
    record_write_bytes(image, MAGIC, MAGIC_BYTES);
    record_write_text(image, bucket->origin);
    record_write_text(image, bucket->name);
    record_write_text(image, bucket->prefix);
}

static void put_files(struct record_writer *image, const struct s3_entries *entries)
{
    record_write_uint(image, entries->count, 8);
    for (size_t i = 0; i < entries->count; i++) {
        const struct s3_entry *entry = entries->items[i];

        record_write_text(image, entry->etag);
        record_write_uint(image, entry->size_bytes, 8);
        record_write_uint(image, (uint64_t)entry->modified_s, 8);
        record_write_text(image, entry->path);
    }
}

/* A failure is harmless: a later start just knows less, or knows older versions. */
static void write_file(const char *path, const struct record_writer *image)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return;
    (void)whole_file_replace(folder, FILE_NAME, image->bytes, image->length);
    close(folder);
}

void s3_saved_write(struct s3_store *store, const struct s3_entries *entries, int64_t begun_wall_ns)
{
    struct record_writer image = {.limit_bytes = FILE_BYTES_MAX};
    uint64_t hash = 0;
    size_t files;

    put_place(&image, &store->bucket);
    record_write_uint(&image, (uint64_t)begun_wall_ns, 8);
    files = image.length;
    put_files(&image, entries);
    if (!image.failed)
        hash = zt_xxh3(image.bytes + files, image.length - files);
    record_write_hash(&image, 0);
    /* A list that differs only in its time is not written again. */
    if (!image.failed && hash != store->listing->saved_hash)
        write_file(store->folder, &image);
    store->listing->saved_hash = hash;
    record_writer_free(&image);
}

/* --- reading --- */

static uint8_t *read_file(const char *path, size_t *out_length)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint8_t *bytes;

    if (folder < 0)
        return NULL;
    bytes = whole_file_read(folder, FILE_NAME, FILE_BYTES_MAX, out_length);
    close(folder);
    return bytes;
}

static bool take_place(struct record_reader *reader, const struct bucket *bucket)
{
    struct record_writer wanted = {.bytes = NULL};
    const uint8_t *place;
    bool is_same;

    put_place(&wanted, bucket);
    place = record_read_bytes(reader, wanted.length);
    is_same = !wanted.failed && place != NULL && memcmp(place, wanted.bytes, wanted.length) == 0;
    record_writer_free(&wanted);
    return is_same;
}

static bool take_file(struct record_reader *reader, struct s3_entries *entries)
{
    char *etag = record_read_text(reader);
    const uint64_t size_bytes = record_read_uint(reader, 8);
    const int64_t modified_s = (int64_t)record_read_uint(reader, 8);
    char *path = record_read_text(reader);
    size_t name_length;
    unsigned rank;
    const bool is_taken = !reader->failed && etag != NULL && strlen(etag) < BUCKET_ETAG_SIZE &&
                          path != NULL && model_path_split(path, &name_length, &rank) &&
                          s3_entries_add(entries, path, etag, size_bytes, modified_s);

    free(etag);
    free(path);
    return is_taken;
}

static bool take_list(struct record_reader *reader, const struct bucket *bucket,
                      struct s3_entries *entries, int64_t *out_wall_ns)
{
    uint64_t count;

    if (!take_place(reader, bucket))
        return false;
    *out_wall_ns = (int64_t)record_read_uint(reader, 8);
    count = record_read_uint(reader, 8);
    for (uint64_t i = 0; i < count; i++)
        if (!take_file(reader, entries))
            return false;
    return !reader->failed && reader->left == 0;
}

void s3_saved_read(struct s3_store *store)
{
    struct s3_entries entries = {NULL, 0, 0};
    struct record_reader reader;
    size_t length = 0;
    uint8_t *bytes = read_file(store->folder, &length);
    int64_t wall_ns = 0;

    if (bytes == NULL)
        return;
    reader = record_reader_checked(bytes, length);
    if (!reader.failed && take_list(&reader, &store->bucket, &entries, &wall_ns)) {
        s3_entries_sort(&entries);
        log_write(LOG_LEVEL_INFO, "the saved list of the bucket has %zu files", entries.count);
        s3_listing_replace(store->listing, &entries, 0, wall_ns);
    }
    s3_entries_free(&entries);
    free(bytes);
}
