/* What was found, kept across restarts: a file a model in the state folder's "digests"
 * (state_file.h), which grows.
 *
 * A header (magic, ETag of the version, size of a piece, its hash), then a record a component: its
 * number, the count of digests, the digests, the hash of the record. What was found since is added
 * at the end, so that the whole is written once; a record is taken whole or not at all, and nothing
 * behind one that is not. The ETag covers the identity of the file, of its shards, and the
 * manifest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "verify/found_work.h"
#include "verify/verifier_runs.h"

/* The last digit is the version of this form. */
#define MAGIC       "ZTSDIG01"
#define HEADER_SIZE (8 + GENERATION_ETAG_SIZE + 8)

static void put_header(struct state_image *image, const struct generation *generation)
{
    state_put(image, MAGIC, 8);
    state_put(image, generation->etag, GENERATION_ETAG_SIZE);
    state_put_number(image, generation->found->piece_bytes, 8);
    state_put_hash(image, 0);
}

static uint64_t digest_count(const struct generation *generation, uint32_t component)
{
    return found_block_count(generation->model->components[component].length,
                             generation->found->piece_bytes);
}

static void put_record(struct state_image *image, const struct generation *generation,
                       uint32_t component)
{
    const uint8_t *block = found_block(generation, component);
    const uint64_t count = digest_count(generation, component);
    const size_t from = image->length;

    if (block == NULL || count > UINT32_MAX)
        return;
    state_put_number(image, component, 4);
    state_put_number(image, count, 4);
    state_put(image, block, (size_t)count * FOUND_DIGEST_SIZE);
    state_put_hash(image, from);
}

/* --- writing --- */

static void write_anew(struct state_folder *folder, struct generation *generation)
{
    struct state_image image = {NULL, 0, 0, false};

    put_header(&image, generation);
    for (uint32_t i = 0; i < generation->model->component_count; i++)
        put_record(&image, generation, i);
    if (state_file_write(folder, generation->path, &image)) {
        generation->found->saved_bytes = image.length;
    } else {
        generation->found->saved_bytes = 0;
        log_write(LOG_LEVEL_WARN, "digests found of %s cannot be written down: %s",
                  generation->path, strerror(errno));
    }
    free(image.bytes);
}

static bool add(struct state_folder *folder, struct generation *generation,
                const struct component_list *list)
{
    struct state_image image = {NULL, 0, 0, false};
    bool added;

    for (uint32_t i = 0; i < list->count; i++)
        put_record(&image, generation, list->items[i]);
    added = state_file_append(folder, generation->path, generation->found->saved_bytes, &image);
    if (added)
        generation->found->saved_bytes += image.length;
    free(image.bytes);
    return added;
}

void found_state_save(struct verifier *verifier, struct generation *generation)
{
    struct state_folder *folder = &verifier->found.folder;
    struct component_list unsaved;

    if (generation->found == NULL)
        return;
    unsaved = found_queue_take_unsaved(verifier, generation);
    if (unsaved.count > 0 && folder->descriptor >= 0 && !atomic_load(&generation->retired) &&
        (generation->found->saved_bytes == 0 || !add(folder, generation, &unsaved)))
        write_anew(folder, generation);
    free(unsaved.items);
}

/* --- reading --- */

static bool take_header(struct state_cursor *cursor, const struct generation *generation)
{
    struct state_image wanted = {NULL, 0, 0, false};
    const uint8_t *header;
    bool same;

    put_header(&wanted, generation);
    header = state_take(cursor, HEADER_SIZE + STATE_FILE_HASH_SIZE);
    same = header != NULL && !wanted.failed && memcmp(header, wanted.bytes, wanted.length) == 0;
    free(wanted.bytes);
    return same;
}

static bool take_record(struct state_cursor *cursor, struct generation *generation)
{
    const uint8_t *from = cursor->at;
    const uint64_t component = state_take_number(cursor, 4);
    const uint64_t count = state_take_number(cursor, 4);
    const uint8_t *digests;
    uint8_t *block;

    if (cursor->failed || component >= generation->model->component_count ||
        count != digest_count(generation, (uint32_t)component))
        return false;
    digests = state_take(cursor, (size_t)count * FOUND_DIGEST_SIZE);
    if (digests == NULL || !state_take_hash(cursor, from))
        return false;
    block = malloc((size_t)count * FOUND_DIGEST_SIZE);
    if (block == NULL)
        return false;
    memcpy(block, digests, (size_t)count * FOUND_DIGEST_SIZE);
    if (!found_block_put(generation, (uint32_t)component, NULL, block))
        free(block);
    return true;
}

void found_state_recall(struct state_folder *folder, struct generation *generation)
{
    struct state_cursor cursor = {NULL, 0, false};
    size_t length = 0;
    uint8_t *bytes;

    if (folder->descriptor < 0)
        return;
    bytes = state_file_read(folder, generation->path, &length);
    if (bytes == NULL)
        return;
    cursor = (struct state_cursor){bytes, length, false};
    if (take_header(&cursor, generation)) {
        while (cursor.left > 0 && take_record(&cursor, generation))
            continue;
        /* What is torn at its end is written anew. */
        generation->found->saved_bytes = cursor.left == 0 && !cursor.failed ? length : 0;
    }
    free(bytes);
}
