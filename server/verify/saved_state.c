/* Verdicts and digests across restarts: two ledgers for each model in the state folder
 * (disk/ledger.h). Numbers are little-endian; a hash covers everything before it in its part.
 *
 *   verified/   magic, identity (inode, size, modified, changed), ETag, count of components, count
 *               of failures, whether the SHA-256 of the file is known (1 byte), and that (32),
 *               a byte for each component (its state; the highest bit if its content breaks a
 *               rule), the failures, hash. Replaced as a whole.
 *   digests/    magic, ETag, size of a piece, hash; then for each component a record of its number,
 *               the count of digests, the digests, hash.
 *
 * The ETag covers the identity of the file and of its shards, and the manifest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "digests/file_hashes.h"
#include "verify/verifier_work.h"

/* The last digit is the format version. */
#define VERDICTS_MAGIC        "ZTSVFY03"
#define VERDICTS_HEADER_BYTES (8 + 4 * 8 + GENERATION_ETAG_SIZE + 4 + 4)
#define BREAKS_RULE           0x80
#define DIGESTS_MAGIC         "ZTSDIG01"

/* --- verdicts: saving --- */

static void put_failure(struct record_writer *image, const struct failure *failure)
{
    record_write_uint(image, failure->object, 4);
    record_write_uint(image, failure->component, 4);
    record_write_text(image, failure->expected);
    record_write_text(image, failure->actual);
    record_write_text(image, failure->rule);
    record_write_text(image, failure->detail);
}

static void put_verdict_header(struct record_writer *image, const struct generation *generation,
                               uint32_t failure_count)
{
    const struct file_identity *identity = &generation->identity;

    record_write_bytes(image, VERDICTS_MAGIC, 8);
    record_write_uint(image, identity->inode, 8);
    record_write_uint(image, identity->size_bytes, 8);
    record_write_uint(image, (uint64_t)identity->modified_ns, 8);
    record_write_uint(image, (uint64_t)identity->changed_ns, 8);
    record_write_bytes(image, generation->etag, GENERATION_ETAG_SIZE);
    record_write_uint(image, generation->model->component_count, 4);
    record_write_uint(image, failure_count, 4);
}

/* Writes the digest of the whole file. */
static void put_file_sha256(struct record_writer *image, const struct generation *generation,
                            struct file_hashes *hashes)
{
    uint8_t sha256[SHA256_BYTES] = {0};

    record_write_uint(image,
                      file_hashes_find(hashes, generation->path, &generation->identity, sha256), 1);
    record_write_bytes(image, sha256, SHA256_BYTES);
}

static void put_verdicts(struct generation *generation, struct file_hashes *hashes,
                         struct record_writer *image)
{
    struct verification *verification = verification_of(generation);

    pthread_mutex_lock(&verification->lock);
    put_verdict_header(image, generation, verification->failure_count);
    put_file_sha256(image, generation, hashes);
    for (uint32_t i = 0; i < generation->model->component_count; i++) {
        uint8_t state = atomic_load(&generation->states[i]);

        state |= verification->broken[i] ? BREAKS_RULE : 0;
        record_write_bytes(image, &state, 1);
    }
    for (const struct failure *failure = verification->failures; failure != NULL;
         failure = failure->next)
        put_failure(image, failure);
    pthread_mutex_unlock(&verification->lock);
    record_write_hash(image, 0);
}

void verification_save(struct verifier *verifier, struct generation *generation)
{
    struct ledger_folder *folder = &verifier->folder;
    struct record_writer image = {.bytes = NULL};

    if (folder->descriptor < 0 || atomic_load(&generation->retired))
        return;
    put_verdicts(generation, verifier->server->hashes, &image);
    if (!ledger_replace(folder, generation->path, &image))
        log_write(LOG_LEVEL_WARN, "verification results of %s cannot be saved: %s",
                  generation->path, strerror(errno));
    record_writer_free(&image);
}

/* --- verdicts: recalling --- */

static bool take_verdict_header(struct record_reader *reader, const struct generation *generation,
                                uint32_t *out_failures)
{
    struct record_writer wanted = {.bytes = NULL};
    const uint8_t *header = record_read_bytes(reader, VERDICTS_HEADER_BYTES - 4);
    bool same;

    put_verdict_header(&wanted, generation, 0);
    same = header != NULL && !wanted.failed && wanted.length == VERDICTS_HEADER_BYTES &&
           memcmp(header, wanted.bytes, VERDICTS_HEADER_BYTES - 4) == 0;
    record_writer_free(&wanted);
    *out_failures = (uint32_t)record_read_uint(reader, 4);
    return same && !reader->failed && *out_failures <= FAILURES_MAX;
}

static void take_file_sha256(struct record_reader *reader, const struct generation *generation,
                             struct file_hashes *hashes)
{
    const bool is_known = record_read_uint(reader, 1) == 1;
    const uint8_t *sha256 = record_read_bytes(reader, SHA256_BYTES);

    if (sha256 != NULL && is_known)
        file_hashes_keep(hashes, generation->path, &generation->identity, sha256);
}

static bool take_failure(struct record_reader *reader, struct generation *generation)
{
    const struct zt_model *model = generation->model;
    struct failure failure = {.object = (uint32_t)record_read_uint(reader, 4)};

    failure.component = (uint32_t)record_read_uint(reader, 4);
    failure.expected = record_read_text(reader);
    failure.actual = record_read_text(reader);
    failure.rule = record_read_text(reader);
    failure.detail = record_read_text(reader);
    reader->failed =
        reader->failed || failure.object >= model->object_count ||
        (failure.component != NO_COMPONENT && failure.component >= model->component_count) ||
        !verification_add_failure(verification_of(generation), &failure);
    free(failure.expected);
    free(failure.actual);
    free(failure.rule);
    free(failure.detail);
    return !reader->failed;
}

/* No other thread has seen the generation yet, so this takes no lock. */
static void take_verdicts(struct record_reader *reader, struct generation *generation,
                          struct file_hashes *hashes)
{
    uint32_t count = generation->model->component_count;
    uint32_t failures = 0;
    const uint8_t *states;

    if (!take_verdict_header(reader, generation, &failures))
        return;
    take_file_sha256(reader, generation, hashes);
    states = record_read_bytes(reader, count);
    if (states == NULL)
        return;
    for (uint32_t i = 0; i < failures; i++)
        if (!take_failure(reader, generation))
            return;
    /* Use only verdicts of components that can be checked; the other states follow from the
     * manifest. */
    for (uint32_t i = 0; i < count; i++) {
        enum component_state state = states[i] & ~BREAKS_RULE;
        bool verdict = state == COMPONENT_VERIFIED || state == COMPONENT_CORRUPT;

        verification_set_broken(generation, i, (states[i] & BREAKS_RULE) != 0);
        /* A component without its own digest is corrupt if its shard is. */
        if ((verdict && atomic_load(&generation->states[i]) == COMPONENT_UNCHECKED) ||
            (state == COMPONENT_CORRUPT &&
             atomic_load(&generation->states[i]) == COMPONENT_UNDIGESTED))
            verification_set(generation, i, state);
    }
}

void verification_recall(struct verifier *verifier, struct generation *generation)
{
    struct record_reader reader;
    size_t length = 0;
    uint8_t *bytes = ledger_read(&verifier->folder, generation->path, &length);

    if (bytes == NULL)
        return;
    reader = record_reader_checked(bytes, length);
    if (!reader.failed)
        take_verdicts(&reader, generation, verifier->server->hashes);
    free(bytes);
}

/* --- digests --- */

static void put_digest_header(struct record_writer *image, const struct generation *generation)
{
    record_write_bytes(image, DIGESTS_MAGIC, 8);
    record_write_bytes(image, generation->etag, GENERATION_ETAG_SIZE);
    record_write_uint(image, digest_table_of(generation)->piece_bytes, 8);
    record_write_hash(image, 0);
}

static uint64_t digest_count(const struct generation *generation, uint32_t component)
{
    return hash_digest_count(generation->model->components[component].length,
                             digest_table_of(generation)->piece_bytes);
}

void digest_state_put(struct record_writer *image, const struct generation *generation,
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

/* --- digests: saving --- */

void digest_state_encode(struct record_writer *image, const struct generation *generation)
{
    put_digest_header(image, generation);
    for (uint32_t i = 0; i < generation->model->component_count; i++)
        digest_state_put(image, generation, i);
}

static void save_all(struct ledger_folder *folder, struct generation *generation)
{
    struct record_writer image = {.bytes = NULL};
    bool is_saved;

    digest_state_encode(&image, generation);
    is_saved = ledger_replace(folder, generation->path, &image);
    if (!is_saved)
        log_write(LOG_LEVEL_WARN, "digests of %s cannot be saved: %s", generation->path,
                  strerror(errno));
    digest_table_of(generation)->saved_bytes = is_saved ? image.length : 0;
    record_writer_free(&image);
}

void digest_state_save(struct verifier *verifier, struct generation *generation)
{
    struct ledger_folder *folder = &verifier->wanted.folder;
    struct digest_table *table = digest_table_of(generation);
    struct record_writer unsaved;
    bool is_new;

    if (!digests_are_on(generation))
        return;
    pthread_mutex_lock(&verifier->wanted.lock);
    unsaved = record_writer_take(&table->unsaved);
    pthread_mutex_unlock(&verifier->wanted.lock);
    is_new = unsaved.length > 0 || unsaved.failed;
    if (is_new && folder->descriptor >= 0 && !atomic_load(&generation->retired) &&
        !ledger_append(folder, generation->path, &unsaved, LEDGER_MAX_BYTES, &table->saved_bytes))
        save_all(folder, generation);
    record_writer_free(&unsaved);
    if (is_new || table->is_owed) {
        table->is_owed = !shared_digests_offer(verifier, generation);
        if (table->is_owed)
            verifier_mark_dirty(verifier, generation);
    }
}

/* --- digests: recalling --- */

/* Takes the records that are about this version, up to the first damaged one. Returns the length of
 * the ledger, or 0 if it has others or a damaged one. */
static size_t scan(const uint8_t *bytes, size_t length, const struct generation *generation,
                   ledger_take take, void *context)
{
    struct record_writer header = {.bytes = NULL};
    size_t taken;

    put_digest_header(&header, generation);
    taken = ledger_scan(bytes, length, &header, take, context);
    record_writer_free(&header);
    return taken;
}

/* Reads the digests of one component, and their number. Returns NULL if the record is damaged. */
static const uint8_t *take_digests(struct record_reader *reader,
                                   const struct generation *generation, uint32_t *out_component,
                                   size_t *out_length)
{
    const uint8_t *from = reader->at;
    const uint64_t component = record_read_uint(reader, 4);
    const uint64_t count = record_read_uint(reader, 4);
    const uint8_t *digests;

    if (reader->failed || component >= generation->model->component_count ||
        count != digest_count(generation, (uint32_t)component))
        return NULL;
    digests = record_read_bytes(reader, (size_t)count * SHA256_BYTES);
    if (digests == NULL || !record_read_hash(reader, from))
        return NULL;
    *out_component = (uint32_t)component;
    *out_length = (size_t)count * SHA256_BYTES;
    return digests;
}

static uint8_t *copy_of(const uint8_t *digests, size_t length)
{
    uint8_t *block = malloc(length);

    if (block != NULL)
        memcpy(block, digests, length);
    return block;
}

static bool recall_digests(void *context, struct record_reader *reader)
{
    struct generation *generation = context;
    uint32_t component;
    size_t length;
    const uint8_t *digests = take_digests(reader, generation, &component, &length);
    uint8_t *block = digests != NULL ? copy_of(digests, length) : NULL;

    if (block == NULL)
        return false;
    if (!digest_block_put(generation, component, NULL, block))
        free(block);
    return true;
}

void digest_state_recall(struct ledger_folder *folder, struct generation *generation)
{
    size_t length = 0;
    uint8_t *bytes = ledger_read(folder, generation->path, &length);

    if (bytes == NULL)
        return;
    digest_table_of(generation)->saved_bytes =
        scan(bytes, length, generation, recall_digests, generation);
    free(bytes);
}

/* --- digests: of others --- */

static bool contradicts(const struct generation *generation, uint32_t component,
                        const uint8_t *digests)
{
    uint8_t stated[SHA256_BYTES];

    return stored_digest_stated(generation, component, stated) &&
           memcmp(stated, digests, SHA256_BYTES) != 0;
}

/* The generation is in use, so another thread may be computing or storing the component's digests
 * at the same time. */
static bool put_found(struct generation *generation, uint32_t component, const uint8_t *digests,
                      size_t length)
{
    uint8_t *block = copy_of(digests, length);

    if (block != NULL && (digest_block_put(generation, component, NULL, block) ||
                          digest_block_put(generation, component, DIGEST_WANTED, block) ||
                          digest_block_put(generation, component, DIGEST_READING, block)))
        return true;
    free(block);
    return false;
}

struct decoding {
    struct generation *generation;
    void (*took)(void *context, uint32_t component);
    void *context;
};

static bool decode_digests(void *context, struct record_reader *reader)
{
    const struct decoding *decoding = context;
    uint32_t component;
    size_t length;
    const uint8_t *digests = take_digests(reader, decoding->generation, &component, &length);

    if (digests == NULL || contradicts(decoding->generation, component, digests))
        return false;
    if (digest_block(decoding->generation, component) == NULL &&
        put_found(decoding->generation, component, digests, length))
        decoding->took(decoding->context, component);
    return true;
}

void digest_state_decode(const uint8_t *bytes, size_t length, struct generation *generation,
                         void (*took)(void *context, uint32_t component), void *context)
{
    struct decoding decoding = {generation, took, context};

    (void)scan(bytes, length, generation, decode_digests, &decoding);
}
