/* The last whole list, kept in the cache's folder: with it a server that starts while the store is
 * away knows which versions of which files it has in its cache.
 *
 *     ztserve list 1
 *     <origin> <bucket> <prefix, percent-encoded>
 *     <when it was begun, ns>
 *     <ETag> <size> <modified, s> <path>       for each file
 *     <XXH3-64 of all above, hex> */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/s3/percent.h"
#include "store/s3/s3_listing.h"
#include "zt/digest.h"

#define FILE_NAME "bucket-list"
#define HEADING   "ztserve list 1\n"
#define LINE_SIZE (BUCKET_ETAG_SIZE + MODEL_NAME_MAX + 128)
/* Millions of files. */
#define FILE_BYTES_MAX ((off_t)1 << 30)
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

/* What the files are, without the time of the list. */
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

static bool write_all(int file, const struct zt_buffer *buffer)
{
    size_t at = 0;

    while (at < buffer->length) {
        const ssize_t done = write(file, buffer->bytes + at, buffer->length - at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += (size_t)done;
    }
    return true;
}

/* Failing is harmless: a later start knows less, or older things. Not synced: the sum tells. */
static void write_file(const char *folder, const struct zt_buffer *buffer)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    int file;
    bool written;

    if (buffer->failed ||
        (size_t)snprintf(fresh, sizeof(fresh), "%s/%s.new", folder, FILE_NAME) >= sizeof(fresh))
        return;
    snprintf(path, sizeof(path), "%s/%s", folder, FILE_NAME);
    file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    written = write_all(file, buffer);
    if (close(file) != 0 || !written || rename(fresh, path) != 0)
        (void)unlink(fresh);
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

static char *read_file(const char *folder, size_t *out_length)
{
    char path[PATH_MAX];
    struct stat about;
    char *text = NULL;
    int file;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, FILE_NAME) >= sizeof(path))
        return NULL;
    file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return NULL;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= FILE_BYTES_MAX)
        text = malloc((size_t)about.st_size + 1);
    if (text != NULL && read(file, text, (size_t)about.st_size) != about.st_size) {
        free(text);
        text = NULL;
    }
    close(file);
    if (text != NULL) {
        *out_length = (size_t)about.st_size;
        text[*out_length] = '\0';
    }
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

/* A number with a blank behind it; moves behind that. */
static bool read_number(char **at, int64_t *out_number)
{
    char *end;

    errno = 0;
    *out_number = strtoll(*at, &end, 10);
    if (errno != 0 || end == *at || *end != ' ')
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
    *out_wall_ns = strtoll(at, &at, 10);
    at += *at == '\n';
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
