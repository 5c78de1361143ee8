/* The last whole list, saved in the cache's folder. If the store is away at start, the server
 * learns from it which versions of which files are in its cache.
 *
 *     ztserve list 1
 *     <origin> <bucket> <prefix, percent-encoded>
 *     <when the list began, ns>
 *     <ETag> <size> <modified, s> <path>       for each file
 *     <XXH3-64 of everything above, hex> */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/decimal.h"
#include "base/log.h"
#include "base/memory.h"
#include "disk/whole_file.h"
#include "store/s3/percent.h"
#include "store/s3/s3_listing.h"
#include "zt/digest.h"

#define FILE_NAME "bucket-list"
#define HEADING   "ztserve list 1\n"
#define LINE_SIZE (BUCKET_ETAG_SIZE + MODEL_NAME_MAX + 128)
/* Enough for millions of files. */
#define FILE_BYTES_MAX ((uint64_t)1 << 30)
#define SUM_LENGTH     16

static void append(struct zt_buffer *buffer, const char *text)
{
    zt_buffer_append(buffer, text, strlen(text));
}

static void append_place(struct zt_buffer *buffer, const struct bucket *bucket)
{
    char prefix[3 * BUCKET_KEY_SIZE] = "";
    size_t used = 0;

    (void)percent_append(prefix, sizeof(prefix), &used, zt_text_from(bucket->prefix), true);
    append(buffer, HEADING);
    append(buffer, bucket->origin);
    append(buffer, " ");
    append(buffer, bucket->name);
    append(buffer, " ");
    append(buffer, prefix);
    append(buffer, "\n");
}

/* Appends the lines of the files. Does not include the time of the list. */
static void append_files(struct zt_buffer *buffer, const struct s3_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct s3_entry *entry = entries->items[i];
        char line[LINE_SIZE];

        snprintf(line, sizeof(line), "%s %" PRIu64 " %" PRId64 " %s\n", entry->etag,
                 entry->size_bytes, entry->modified_s, entry->path);
        append(buffer, line);
    }
}

static void append_time(struct zt_buffer *buffer, int64_t wall_ns)
{
    char line[32];

    snprintf(line, sizeof(line), "%" PRId64 "\n", wall_ns);
    append(buffer, line);
}

static void append_sum(struct zt_buffer *buffer)
{
    char line[SUM_LENGTH + 2];

    if (buffer->failed)
        return;
    snprintf(line, sizeof(line), "%016" PRIx64 "\n", zt_xxh3(buffer->bytes, buffer->length));
    append(buffer, line);
}

/* --- writing --- */

/* A failure is harmless: a later start just knows less, or knows older versions. */
static void write_file(const char *path, const struct zt_buffer *buffer)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return;
    if (!buffer->failed)
        (void)whole_file_replace(folder, FILE_NAME, buffer->bytes, buffer->length);
    close(folder);
}

void s3_saved_write(struct s3_store *store, const struct s3_entries *entries, int64_t begun_wall_ns)
{
    struct s3_listing *listing = store->listing;
    struct zt_buffer whole = {NULL, 0, 0, false};
    struct zt_buffer files = {NULL, 0, 0, false};
    uint64_t hash;
    bool is_saved;

    append_files(&files, entries);
    hash = files.length > 0 ? zt_xxh3(files.bytes, files.length) : 1;
    is_saved = hash == listing->saved_hash;
    listing->saved_hash = hash;
    append_place(&whole, &store->bucket);
    append_time(&whole, begun_wall_ns);
    if (!is_saved && !files.failed) {
        zt_buffer_append(&whole, files.bytes, files.length);
        append_sum(&whole);
        write_file(store->folder, &whole);
    }
    zt_buffer_free(&files);
    zt_buffer_free(&whole);
}

/* --- reading --- */

static char *read_file(const char *path, size_t *out_length)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *text = NULL;

    if (folder < 0)
        return NULL;
    text = (char *)whole_file_read(folder, FILE_NAME, FILE_BYTES_MAX, out_length);
    close(folder);
    return text;
}

static bool is_undamaged(const char *text, size_t length)
{
    char sum[SUM_LENGTH + 2];

    if (length < SUM_LENGTH + 1 || memchr(text, '\0', length) != NULL)
        return false;
    length -= SUM_LENGTH + 1;
    snprintf(sum, sizeof(sum), "%016" PRIx64 "\n", zt_xxh3(text, length));
    return strcmp(text + length, sum) == 0;
}

/* Reads a number and the space after it, and advances past them. */
static bool read_number(char **at, int64_t *out_number)
{
    char *end = strchrnul(*at, ' ');

    if (*end != ' ' ||
        !zt_decimal_read_signed((struct zt_text){*at, (size_t)(end - *at)}, out_number))
        return false;
    *at = end + 1;
    return true;
}

/* "ETag size modified path" */
static bool read_line(char *line, struct s3_entries *entries)
{
    char *at = strchr(line, ' ');
    int64_t size_bytes;
    int64_t modified_s;
    size_t name_length;
    unsigned rank;

    if (at == NULL || at - line >= BUCKET_ETAG_SIZE)
        return false;
    *at++ = '\0';
    return read_number(&at, &size_bytes) && size_bytes >= 0 && read_number(&at, &modified_s) &&
           model_path_split(at, &name_length, &rank) &&
           s3_entries_add(entries, at, line, (uint64_t)size_bytes, modified_s);
}

static bool read_entries(const struct bucket *bucket, char *text, size_t length,
                         struct s3_entries *out_entries, int64_t *out_wall_ns)
{
    struct zt_buffer place = {NULL, 0, 0, false};
    char *at = text;
    char *line_end;
    bool fits;

    if (!is_undamaged(text, length))
        return false;
    text[length - SUM_LENGTH - 1] = '\0';
    append_place(&place, bucket);
    fits = !place.failed && length > place.length && memcmp(text, place.bytes, place.length) == 0;
    at += fits ? place.length : 0;
    zt_buffer_free(&place);
    if (!fits)
        return false;
    line_end = strchrnul(at, '\n');
    if (!zt_decimal_read_signed((struct zt_text){at, (size_t)(line_end - at)}, out_wall_ns))
        return false;
    at = line_end + (*line_end == '\n');
    while (*at != '\0') {
        char *end = strchr(at, '\n');

        if (end == NULL)
            return false;
        *end = '\0';
        if (!read_line(at, out_entries))
            return false;
        at = end + 1;
    }
    s3_entries_sort(out_entries);
    return true;
}

void s3_saved_read(struct s3_store *store)
{
    struct s3_entries entries = {NULL, 0, 0};
    size_t length = 0;
    char *text = read_file(store->folder, &length);
    int64_t wall_ns = 0;

    if (text != NULL && read_entries(&store->bucket, text, length, &entries, &wall_ns)) {
        log_write(LOG_LEVEL_INFO, "%zu files are known from the last list of the bucket",
                  entries.count);
        s3_listing_replace(store->listing, &entries, 0, wall_ns);
    }
    s3_entries_free(&entries);
    free(text);
}
