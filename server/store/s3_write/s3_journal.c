/* The journal of multipart uploads: one small file per upload, with bucket, prefix, key and id, in
 * a folder that only this process uses. There is no fsync: after a power cut, the bucket's
 * lifecycle rule removes forgotten uploads. An upload whose completion has begun is marked, because
 * it must not be aborted while the completion may be in progress. */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/s3_write/s3_multipart.h"

/* Files longer than this are not ours. */
#define FILE_MOST 8192
#define FIELDS    4
/* Fewer fields if the id is unknown, because the beginning got no response. */
#define FIELDS_LEAST 3
/* Appended for each completion that began. */
#define COMPLETING "completing"

static bool put_all(int descriptor, const char *bytes, size_t length)
{
    assert(descriptor >= 0 && length > 0);
    return write(descriptor, bytes, length) == (ssize_t)length;
}

/* Each field ends with NUL. */
static bool put_field(int descriptor, const char *text)
{
    return put_all(descriptor, text, strlen(text) + 1);
}

void s3_journal_note(struct s3_store *store, struct s3_multipart *multipart)
{
    const struct s3_writing *writing = store->writing;
    int descriptor;
    bool done;

    assert(multipart->journal[0] == '\0' && multipart->key[0] != '\0');
    s3_nonce(multipart->journal);
    descriptor = openat(writing->journal, multipart->journal,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    done = descriptor >= 0 && put_field(descriptor, store->bucket.name) &&
           put_field(descriptor, store->bucket.prefix) && put_field(descriptor, multipart->key);
    if (descriptor >= 0)
        close(descriptor);
    if (!done)
        log_write(LOG_LEVEL_WARN,
                  "%s: cannot record its multipart upload; if this server is killed now, the parts "
                  "remain in the bucket",
                  multipart->key);
}

static int open_again(const struct s3_store *store, const struct s3_multipart *multipart)
{
    return multipart->journal[0] != '\0' ? openat(store->writing->journal, multipart->journal,
                                                  O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW)
                                         : -1;
}

void s3_journal_begun(struct s3_store *store, const struct s3_multipart *multipart)
{
    const int descriptor = open_again(store, multipart);

    assert(multipart->id != NULL);
    if (descriptor < 0)
        return;
    if (!put_field(descriptor, multipart->id))
        log_write(LOG_LEVEL_WARN, "%s: cannot record the id of its upload", multipart->key);
    close(descriptor);
}

/* Writes the mark again for each completion, so that the file's time is the last one's. */
void s3_journal_completing(struct s3_store *store, struct s3_multipart *multipart)
{
    const int descriptor = open_again(store, multipart);
    bool done;

    assert(multipart->is_completing);
    if (descriptor < 0)
        return;
    done = put_field(descriptor, COMPLETING);
    close(descriptor);
    if (!done)
        log_write(LOG_LEVEL_WARN, "%s: cannot record that its upload is being completed",
                  multipart->key);
}

void s3_journal_drop(struct s3_store *store, const char *name)
{
    if (name[0] != '\0')
        unlinkat(store->writing->journal, name, 0);
}

struct noted {
    char bytes[FILE_MOST];
    const char *fields[FIELDS];
    bool is_completing;
    int64_t age_ms; /* since the last change */
};

static int64_t age_ms(int descriptor)
{
    struct stat status;
    int64_t age;

    if (fstat(descriptor, &status) != 0)
        return 0;
    age = clock_wall_ns() / CLOCK_NS_PER_MS - (int64_t)status.st_mtim.tv_sec * 1000;
    return age > 0 ? age : 0;
}

/* Reads a file. Returns false unless it is complete. *out_was_read is false if the system could not
 * read it. */
static bool read_file(int folder, const char *name, struct noted *out_noted, bool *out_was_read)
{
    const int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char *const bytes = out_noted->bytes;
    const ssize_t length = descriptor >= 0 ? read(descriptor, bytes, FILE_MOST) : -1;
    size_t at = 0;

    if (descriptor >= 0) {
        out_noted->age_ms = age_ms(descriptor);
        close(descriptor);
    }
    *out_was_read = length >= 0;
    if (length <= 0 || bytes[length - 1] != '\0')
        return false;
    for (size_t i = 0; i < FIELDS; i++) {
        out_noted->fields[i] = at < (size_t)length ? bytes + at : NULL;
        at += at < (size_t)length ? strlen(bytes + at) + 1 : 0;
    }
    out_noted->is_completing = at < (size_t)length;
    /* An object has a key, and an upload an id. */
    return out_noted->fields[FIELDS_LEAST - 1] != NULL &&
           out_noted->fields[FIELDS_LEAST - 1][0] != '\0' &&
           (out_noted->fields[FIELDS_LEAST] == NULL || out_noted->fields[FIELDS_LEAST][0] != '\0');
}

/* Returns when an upload of this age may be aborted, if it must be left alone until it is `rest`
 * old. */
static int64_t abort_after_ms(int64_t age, int64_t rest)
{
    assert(age >= 0 && rest > 0);
    return clock_ms() + (age < rest ? rest - age : 0);
}

static struct s3_multipart *from_file(const struct s3_store *store, const char *name,
                                      const struct noted *noted)
{
    const char *const *fields = noted->fields;
    struct s3_multipart *multipart;

    assert(fields[FIELDS_LEAST - 1] != NULL);
    if (strcmp(fields[0], store->bucket.name) != 0 || strcmp(fields[1], store->bucket.prefix) != 0)
        return NULL;
    multipart = calloc(1, sizeof(*multipart));
    if (multipart == NULL)
        return NULL;
    snprintf(multipart->key, sizeof(multipart->key), "%s", fields[2]);
    snprintf(multipart->journal, sizeof(multipart->journal), "%s", name);
    multipart->is_completing = noted->is_completing;
    multipart->begun_ms = clock_ms() - noted->age_ms;
    if (noted->is_completing)
        multipart->abort_after_ms = abort_after_ms(noted->age_ms, S3_COMPLETING_MS);
    if (fields[FIELDS_LEAST] == NULL) {
        multipart->abort_after_ms = abort_after_ms(noted->age_ms, S3_EMPTY_MS);
        return multipart;
    }
    multipart->id = strdup(fields[FIELDS_LEAST]);
    if (multipart->id != NULL)
        return multipart;
    free(multipart);
    return NULL;
}

/* Files of another bucket are kept until the server is started with that bucket, and files that
 * cannot be read now until the next start, since no other record leads to their uploads. */
static struct s3_multipart *read_one(const struct s3_store *store, const char *name)
{
    struct noted noted;
    bool was_read;

    if (strlen(name) != S3_NONCE_SIZE - 1)
        return NULL;
    if (read_file(store->writing->journal, name, &noted, &was_read))
        return from_file(store, name, &noted);
    if (was_read)
        unlinkat(store->writing->journal, name, 0);
    else
        log_write(LOG_LEVEL_WARN,
                  "cannot read the record %s of an upload to the bucket: its parts remain there",
                  name);
    return NULL;
}

struct s3_multipart *s3_journal_read(struct s3_store *store)
{
    const int folder = openat(store->writing->journal, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = folder >= 0 ? fdopendir(folder) : NULL;
    struct s3_multipart *first = NULL;
    const struct dirent *entry;

    if (stream == NULL && folder >= 0)
        close(folder);
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        struct s3_multipart *one = read_one(store, entry->d_name);

        if (one == NULL)
            continue;
        one->next = first;
        first = one;
    }
    if (stream != NULL)
        closedir(stream);
    return first;
}
