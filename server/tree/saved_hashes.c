/* The digests of files in the state folder (hashes/): one file of records, to which those that are
 * new are appended. It is written anew when most of it is forgotten.
 *
 *   magic (8 bytes), hash; then records: key (16), SHA-256 (32), hash
 *
 * The first damaged record ends the file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/state_place.h"
#include "tree/hash_work.h"

/* The last digit is the version of the format. */
#define MAGIC        "ZTSHSH01"
#define MAGIC_BYTES  8
#define HEADER_BYTES (MAGIC_BYTES + RECORD_HASH_BYTES)
#define RECORD_BYTES (16 + FILE_SHA256_BYTES + RECORD_HASH_BYTES)
/* The name that the file has for state_file.h. */
#define SAVED "file-hashes"
/* A longer file is written anew: half of it is forgotten. */
#define SAVED_MAX (HEADER_BYTES + 2 * HASHES_MAX * RECORD_BYTES)

static void put_header(struct record_writer *image)
{
    record_write_bytes(image, MAGIC, MAGIC_BYTES);
    record_write_hash(image, 0);
}

static void put_record(struct record_writer *image, const struct hash_key *key,
                       const uint8_t sha256[FILE_SHA256_BYTES])
{
    const size_t from = image->length;

    record_write_uint(image, key->words[0], 8);
    record_write_uint(image, key->words[1], 8);
    record_write_bytes(image, sha256, FILE_SHA256_BYTES);
    record_write_hash(image, from);
}

/* --- writing --- */

/* The caller frees its items. */
static struct hash_records take_unsaved(struct file_hashes *hashes)
{
    struct hash_records taken;

    pthread_mutex_lock(&hashes->lock);
    taken = hashes->unsaved;
    hashes->unsaved = (struct hash_records){.items = NULL};
    pthread_mutex_unlock(&hashes->lock);
    return taken;
}

static bool append(struct file_hashes *hashes, const struct hash_records *records)
{
    struct record_writer image = {.bytes = NULL};
    bool is_added = false;

    for (size_t i = 0; i < records->count; i++)
        put_record(&image, &records->items[i].key, records->items[i].sha256);
    if (hashes->saved_bytes > 0 && hashes->saved_bytes + image.length <= SAVED_MAX)
        is_added = state_file_append(&hashes->folder, SAVED, hashes->saved_bytes, &image);
    if (is_added)
        hashes->saved_bytes += image.length;
    record_writer_free(&image);
    return is_added;
}

/* Oldest first, so that reading them restores the order of use. */
static void write_all(struct file_hashes *hashes)
{
    struct record_writer image = {.bytes = NULL};

    put_header(&image);
    pthread_mutex_lock(&hashes->lock);
    for (const struct recency_link *link = hashes->table.recency.oldest; link != NULL;
         link = link->newer) {
        const struct hash_entry *entry = (const struct hash_entry *)link;

        if (entry->is_known)
            put_record(&image, &entry->key, entry->sha256);
    }
    pthread_mutex_unlock(&hashes->lock);
    hashes->saved_bytes =
        state_file_write(&hashes->folder, SAVED, &image) ? (uint64_t)image.length : 0;
    record_writer_free(&image);
}

void saved_hashes_write(struct file_hashes *hashes)
{
    struct hash_records unsaved;

    if (hashes->folder.descriptor < 0) {
        unsaved = take_unsaved(hashes);
        free(unsaved.items);
        return;
    }
    pthread_mutex_lock(&hashes->saving);
    unsaved = take_unsaved(hashes);
    if (unsaved.count > 0 && !append(hashes, &unsaved))
        write_all(hashes);
    pthread_mutex_unlock(&hashes->saving);
    free(unsaved.items);
}

/* --- reading --- */

static bool take_record(struct record_reader *reader, struct hash_table *table)
{
    const uint8_t *from = reader->at;
    struct hash_key key;
    const uint8_t *sha256;
    struct hash_entry *entry;

    key.words[0] = record_read_uint(reader, 8);
    key.words[1] = record_read_uint(reader, 8);
    sha256 = record_read_bytes(reader, FILE_SHA256_BYTES);
    if (sha256 == NULL || !record_read_hash(reader, from))
        return false;
    entry = hash_table_put(table, &key);
    if (entry == NULL)
        return false;
    entry->is_known = true;
    memcpy(entry->sha256, sha256, FILE_SHA256_BYTES);
    return true;
}

static bool take_header(struct record_reader *reader)
{
    const uint8_t *magic = record_read_bytes(reader, MAGIC_BYTES);

    return magic != NULL && memcmp(magic, MAGIC, MAGIC_BYTES) == 0 &&
           record_read_hash(reader, magic);
}

void saved_hashes_recall(struct file_hashes *hashes)
{
    const int state_folder = state_folder_open(hashes->server->config);
    struct record_reader reader = {.at = NULL};
    size_t length = 0;
    uint8_t *bytes = NULL;

    state_folder_enter(&hashes->folder, state_folder, "hashes");
    if (state_folder >= 0)
        close(state_folder);
    if (hashes->folder.descriptor >= 0)
        bytes = state_file_read(&hashes->folder, SAVED, &length);
    if (bytes == NULL)
        return;
    reader = (struct record_reader){.at = bytes, .left = length};
    if (take_header(&reader)) {
        while (reader.left > 0 && take_record(&reader, &hashes->table))
            continue;
        /* A file with a torn end is written anew. */
        hashes->saved_bytes = reader.left == 0 && !reader.failed ? length : 0;
    }
    free(bytes);
}
