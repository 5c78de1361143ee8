/* A hash table in order of use, and a ledger to which each change is appended. The ledger is
 * replaced when most of it is obsolete:
 *
 *   magic (8 bytes), hash; then records: path, key of the version (16), fields, hash */
#include "s3/s3api_meta.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/recency.h"
#include "base/server.h"
#include "digests/hash_table.h"
#include "disk/ledger.h"
#include "store/state_place.h"
#include "zt/digest.h"

/* The last digit is the format version. */
#define MAGIC       "ZTSS3F01"
#define MAGIC_BYTES 8
/* Takes the place of a path in ledger.h. */
#define SAVED "object-fields"
/* A longer ledger is replaced: half of it is obsolete. */
#define SAVED_MAX    ((uint64_t)2 * S3API_META_BYTES + ((uint64_t)16 << 20))
#define BUCKET_COUNT ((size_t)1 << 14)

struct entry {
    struct recency_link link; /* first */
    struct entry *next;       /* in its bucket */
    struct hash_key version;
    char *path;
    char *fields;
};

struct s3api_meta {
    pthread_mutex_t lock; /* guards the following four */
    struct entry **buckets;
    struct recency recency;
    size_t bytes;
    pthread_mutex_t saving; /* guards the following; taken before the other lock */
    struct ledger_folder folder;
    uint64_t saved_bytes; /* length of the ledger; 0: replace it */
};

/* --- the table --- */

static size_t bytes_of(const struct entry *entry)
{
    return sizeof(*entry) + strlen(entry->path) + strlen(entry->fields) + 2;
}

static struct entry **bucket_of(const struct s3api_meta *meta, const char *path)
{
    return &meta->buckets[zt_xxh3(path, strlen(path)) % BUCKET_COUNT];
}

static struct entry *find(const struct s3api_meta *meta, const char *path)
{
    struct entry *entry = *bucket_of(meta, path);

    assert(path[0] != '\0');
    while (entry != NULL && strcmp(entry->path, path) != 0)
        entry = entry->next;
    return entry;
}

static void free_entry(struct entry *entry)
{
    free(entry->path);
    free(entry->fields);
    free(entry);
}

/* The lock must be held. */
static void drop(struct s3api_meta *meta, struct entry *entry)
{
    struct entry **at = bucket_of(meta, entry->path);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    recency_remove(&meta->recency, &entry->link);
    assert(meta->bytes >= bytes_of(entry));
    meta->bytes -= bytes_of(entry);
    free_entry(entry);
}

/* The lock must be held. Takes over the entry, which replaces another one of its path. */
static void put(struct s3api_meta *meta, struct entry *entry)
{
    struct entry *old = find(meta, entry->path);
    struct entry **bucket = bucket_of(meta, entry->path);

    assert(entry->fields[0] != '\0');
    if (old != NULL)
        drop(meta, old);
    entry->next = *bucket;
    *bucket = entry;
    recency_add(&meta->recency, &entry->link);
    meta->bytes += bytes_of(entry);
    while (meta->bytes > S3API_META_BYTES)
        drop(meta, (struct entry *)meta->recency.oldest);
}

/* Returns NULL if out of memory. */
static struct entry *new_entry(const char *path, const struct hash_key *version, const char *fields)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL)
        return NULL;
    entry->version = *version;
    entry->path = strdup(path);
    entry->fields = strdup(fields);
    if (entry->path != NULL && entry->fields != NULL)
        return entry;
    free_entry(entry);
    return NULL;
}

/* --- the ledger --- */

static void put_header(struct record_writer *image)
{
    record_write_bytes(image, MAGIC, MAGIC_BYTES);
    record_write_hash(image, 0);
}

/* Without fields, the record says that an object has none. */
static void put_record(struct record_writer *image, const char *path,
                       const struct hash_key *version, const char *fields)
{
    const size_t from = image->length;

    record_write_text(image, path);
    record_write_uint(image, version->words[0], 8);
    record_write_uint(image, version->words[1], 8);
    record_write_text(image, fields);
    record_write_hash(image, from);
}

/* Names and values come in pairs. */
bool s3api_meta_is_sound(const char *fields)
{
    size_t ends = 0;

    for (const char *at = fields; *at != '\0'; at++)
        ends += *at == '\n';
    return ends % 2 == 0 && ends > 0 && ends <= 2 * S3API_META_FIELDS_MAX &&
           fields[strlen(fields) - 1] == '\n';
}

/* The lock must be held. */
static void take(struct s3api_meta *meta, const char *path, const struct hash_key *version,
                 const char *fields)
{
    struct entry *entry = find(meta, path);

    if (entry != NULL)
        drop(meta, entry);
    entry = fields != NULL ? new_entry(path, version, fields) : NULL;
    if (entry != NULL)
        put(meta, entry);
}

static bool take_record(void *context, struct record_reader *reader)
{
    const uint8_t *from = reader->at;
    char *path = record_read_text(reader);
    struct hash_key version = {{0, 0}};
    char *fields;
    bool is_whole;

    version.words[0] = record_read_uint(reader, 8);
    version.words[1] = record_read_uint(reader, 8);
    fields = record_read_text(reader);
    is_whole = record_read_hash(reader, from) && path != NULL && path[0] != '\0' &&
               (fields == NULL || s3api_meta_is_sound(fields));
    if (is_whole)
        take(context, path, &version, fields);
    free(path);
    free(fields);
    return is_whole;
}

static void read_saved(struct s3api_meta *meta, const struct config *config)
{
    const int state_folder = state_folder_open(config);
    struct record_writer header = {.bytes = NULL};
    size_t length = 0;
    uint8_t *bytes;

    ledger_folder_open(&meta->folder, state_folder, "objects");
    if (state_folder >= 0)
        close(state_folder);
    bytes = ledger_read(&meta->folder, SAVED, &length);
    if (bytes == NULL)
        return;
    put_header(&header);
    meta->saved_bytes = ledger_scan(bytes, length, &header, take_record, meta);
    record_writer_free(&header);
    free(bytes);
}

/* The lock of saving must be held. */
static void write_all(struct s3api_meta *meta)
{
    struct record_writer image = {.bytes = NULL};

    put_header(&image);
    pthread_mutex_lock(&meta->lock);
    for (const struct recency_link *link = meta->recency.oldest; link != NULL; link = link->newer) {
        const struct entry *entry = (const struct entry *)link;

        put_record(&image, entry->path, &entry->version, entry->fields);
    }
    pthread_mutex_unlock(&meta->lock);
    assert(meta->folder.descriptor >= 0);
    meta->saved_bytes = ledger_replace(&meta->folder, SAVED, &image) ? (uint64_t)image.length : 0;
    record_writer_free(&image);
}

static void save(struct s3api_meta *meta, const char *path, const struct hash_key *version,
                 const char *fields)
{
    struct record_writer record = {.bytes = NULL};

    put_record(&record, path, version, fields);
    if (!ledger_append(&meta->folder, SAVED, &record, SAVED_MAX, &meta->saved_bytes))
        write_all(meta);
    record_writer_free(&record);
}

/* --- life and use --- */

struct s3api_meta *s3api_meta_new(const struct config *config)
{
    struct s3api_meta *meta = calloc(1, sizeof(*meta));

    if (meta == NULL)
        return NULL;
    meta->buckets = calloc(BUCKET_COUNT, sizeof(struct entry *));
    if (meta->buckets == NULL) {
        free(meta);
        return NULL;
    }
    pthread_mutex_init(&meta->lock, NULL);
    pthread_mutex_init(&meta->saving, NULL);
    read_saved(meta, config);
    return meta;
}

void s3api_meta_free(struct s3api_meta *meta)
{
    if (meta == NULL)
        return;
    while (meta->recency.oldest != NULL)
        drop(meta, (struct entry *)meta->recency.oldest);
    assert(meta->bytes == 0);
    free(meta->buckets);
    ledger_folder_close(&meta->folder);
    pthread_mutex_destroy(&meta->saving);
    pthread_mutex_destroy(&meta->lock);
    free(meta);
}

void s3api_meta_keep(struct s3api_meta *meta, const char *path,
                     const struct file_identity *identity, const char *fields)
{
    const struct hash_key version = hash_key_of(path, identity);
    bool has_changed;

    assert(fields == NULL || s3api_meta_is_sound(fields));
    /* The records must have the order of the changes. */
    pthread_mutex_lock(&meta->saving);
    pthread_mutex_lock(&meta->lock);
    has_changed = fields != NULL || find(meta, path) != NULL;
    take(meta, path, &version, fields);
    pthread_mutex_unlock(&meta->lock);
    if (has_changed && meta->folder.descriptor >= 0)
        save(meta, path, &version, fields);
    pthread_mutex_unlock(&meta->saving);
}

void s3api_meta_forget(struct s3api_meta *meta, const char *path)
{
    static const struct file_identity none = {.size_bytes = 0};

    s3api_meta_keep(meta, path, &none, NULL);
}

char *s3api_meta_find(struct s3api_meta *meta, const char *path,
                      const struct file_identity *identity)
{
    const struct hash_key version = hash_key_of(path, identity);
    struct entry *entry;
    char *fields = NULL;

    pthread_mutex_lock(&meta->lock);
    entry = find(meta, path);
    if (entry != NULL && memcmp(&entry->version, &version, sizeof(version)) == 0) {
        fields = strdup(entry->fields);
        recency_touch(&meta->recency, &entry->link);
    }
    pthread_mutex_unlock(&meta->lock);
    return fields;
}
