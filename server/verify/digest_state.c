/* Digests of stored bytes across restarts: one file for each model in the state folder's "digests"
 * (state_file.h), which grows.
 *
 * A header (magic, ETag of the version, size of a piece, hash), then a record for each component:
 * its number, the count of digests, the digests, the hash of the record. New records are appended,
 * so that each is written once. On reading, the first record that is not whole ends the file. The
 * ETag covers the identity of the file and of its shards, and the manifest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "verify/verifier_work.h"

/* The last digit is the version of this format. */
#define MAGIC       "ZTSDIG01"
#define HEADER_SIZE (8 + GENERATION_ETAG_SIZE + 8)

static void put_header(struct record_writer *image, const struct generation *generation)
{
    record_write_bytes(image, MAGIC, 8);
    record_write_bytes(image, generation->etag, GENERATION_ETAG_SIZE);
    record_write_uint(image, digest_table_of(generation)->piece_bytes, 8);
    record_write_hash(image, 0);
}

static uint64_t digest_count(const struct generation *generation, uint32_t component)
{
    return digest_block_count(generation->model->components[component].length,
                              digest_table_of(generation)->piece_bytes);
}

static void put_record(struct record_writer *image, const struct generation *generation,
                       uint32_t component)
{
    const uint8_t *block = digest_block(generation, component);
    const uint64_t count = digest_count(generation, component);
    const size_t from = image->length;

    if (block == NULL || count > UINT32_MAX)
        return;
    record_write_uint(image, component, 4);
    record_write_uint(image, count, 4);
    record_write_bytes(image, block, (size_t)count * SHA256_BYTES);
    record_write_hash(image, from);
}

/* --- writing --- */

static void write_whole(struct state_folder *folder, struct generation *generation)
{
    struct record_writer image = {.bytes = NULL};

    put_header(&image, generation);
    for (uint32_t i = 0; i < generation->model->component_count; i++)
        put_record(&image, generation, i);
    if (state_file_write(folder, generation->path, &image)) {
        digest_table_of(generation)->saved_bytes = image.length;
    } else {
        digest_table_of(generation)->saved_bytes = 0;
        log_write(LOG_LEVEL_WARN, "digests of %s cannot be saved: %s", generation->path,
                  strerror(errno));
    }
    record_writer_free(&image);
}

static bool append(struct state_folder *folder, struct generation *generation,
                   const struct component_list *list)
{
    struct record_writer image = {.bytes = NULL};
    bool added;

    for (uint32_t i = 0; i < list->count; i++)
        put_record(&image, generation, list->items[i]);
    added = state_file_append(folder, generation->path, digest_table_of(generation)->saved_bytes,
                              &image);
    if (added)
        digest_table_of(generation)->saved_bytes += image.length;
    record_writer_free(&image);
    return added;
}

void digest_state_save(struct verifier *verifier, struct generation *generation)
{
    struct state_folder *folder = &verifier->finders.folder;
    struct component_list unsaved;

    if (!digests_are_on(generation))
        return;
    unsaved = digest_finder_take_unsaved(verifier, generation);
    if (unsaved.count > 0 && folder->descriptor >= 0 && !atomic_load(&generation->retired) &&
        (digest_table_of(generation)->saved_bytes == 0 || !append(folder, generation, &unsaved)))
        write_whole(folder, generation);
    free(unsaved.items);
}

/* --- reading --- */

static bool take_header(struct record_reader *cursor, const struct generation *generation)
{
    struct record_writer wanted = {.bytes = NULL};
    const uint8_t *header;
    bool same;

    put_header(&wanted, generation);
    header = record_read_bytes(cursor, HEADER_SIZE + RECORD_HASH_BYTES);
    same = header != NULL && !wanted.failed && memcmp(header, wanted.bytes, wanted.length) == 0;
    record_writer_free(&wanted);
    return same;
}

static bool take_record(struct record_reader *cursor, struct generation *generation)
{
    const uint8_t *from = cursor->at;
    const uint64_t component = record_read_uint(cursor, 4);
    const uint64_t count = record_read_uint(cursor, 4);
    const uint8_t *digests;
    uint8_t *block;

    if (cursor->failed || component >= generation->model->component_count ||
        count != digest_count(generation, (uint32_t)component))
        return false;
    digests = record_read_bytes(cursor, (size_t)count * SHA256_BYTES);
    if (digests == NULL || !record_read_hash(cursor, from))
        return false;
    block = malloc((size_t)count * SHA256_BYTES);
    if (block == NULL)
        return false;
    memcpy(block, digests, (size_t)count * SHA256_BYTES);
    if (!digest_block_put(generation, (uint32_t)component, NULL, block))
        free(block);
    return true;
}

void digest_state_recall(struct state_folder *folder, struct generation *generation)
{
    struct record_reader cursor = {.at = NULL};
    size_t length = 0;
    uint8_t *bytes;

    if (folder->descriptor < 0)
        return;
    bytes = state_file_read(folder, generation->path, &length);
    if (bytes == NULL)
        return;
    cursor = (struct record_reader){.at = bytes, .left = length};
    if (take_header(&cursor, generation)) {
        while (cursor.left > 0 && take_record(&cursor, generation))
            continue;
        /* A file with a torn end is written from the start. */
        digest_table_of(generation)->saved_bytes = cursor.left == 0 && !cursor.failed ? length : 0;
    }
    free(bytes);
}
