/* Verdicts across restarts: one file for each model in the state folder's "verified" (state_file.h).
 *
 * Magic, identity (inode, size, modified, changed), ETag, count of components, count of failures, one
 * byte for each component (its state; the highest bit if its content breaks a rule), the failures,
 * the hash of all that precedes it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "verify/verification.h"

/* The last digit is the version of this format. */
#define MAGIC       "ZTSVFY02"
#define HEADER_SIZE (8 + 4 * 8 + GENERATION_ETAG_SIZE + 4 + 4)
#define BROKEN      0x80

/* --- writing --- */

static void put_failure(struct record_writer *image, const struct failure *failure)
{
    record_write_uint(image, failure->object, 4);
    record_write_uint(image, failure->component, 4);
    record_write_text(image, failure->expected);
    record_write_text(image, failure->actual);
    record_write_text(image, failure->rule);
    record_write_text(image, failure->detail);
}

static void put_header(struct record_writer *image, const struct generation *generation,
                       uint32_t failure_count)
{
    const struct file_identity *identity = &generation->identity;

    record_write_bytes(image, MAGIC, 8);
    record_write_uint(image, identity->inode, 8);
    record_write_uint(image, identity->size_bytes, 8);
    record_write_uint(image, (uint64_t)identity->modified_ns, 8);
    record_write_uint(image, (uint64_t)identity->changed_ns, 8);
    record_write_bytes(image, generation->etag, GENERATION_ETAG_SIZE);
    record_write_uint(image, generation->model->component_count, 4);
    record_write_uint(image, failure_count, 4);
}

static void make_image(struct generation *generation, struct record_writer *image)
{
    struct verification *verification = verification_of(generation);

    pthread_mutex_lock(&verification->lock);
    put_header(image, generation, verification->failure_count);
    for (uint32_t i = 0; i < generation->model->component_count; i++) {
        uint8_t state = atomic_load(&generation->states[i]);

        state |= verification->broken[i] ? BROKEN : 0;
        record_write_bytes(image, &state, 1);
    }
    for (const struct failure *failure = verification->failures; failure != NULL;
         failure = failure->next)
        put_failure(image, failure);
    pthread_mutex_unlock(&verification->lock);
    record_write_hash(image, 0);
}

void verification_save(struct state_folder *folder, struct generation *generation)
{
    struct record_writer image = {.bytes = NULL};

    if (folder->descriptor < 0 || atomic_load(&generation->retired))
        return;
    make_image(generation, &image);
    if (!state_file_write(folder, generation->path, &image))
        log_write(LOG_LEVEL_WARN, "verdicts about %s cannot be saved: %s", generation->path,
                  strerror(errno));
    record_writer_free(&image);
}

/* --- reading --- */

static bool take_header(struct record_reader *cursor, const struct generation *generation,
                        uint32_t *out_failures)
{
    struct record_writer wanted = {.bytes = NULL};
    const uint8_t *header = record_read_bytes(cursor, HEADER_SIZE - 4);
    bool same;

    put_header(&wanted, generation, 0);
    same = header != NULL && !wanted.failed && wanted.length == HEADER_SIZE &&
           memcmp(header, wanted.bytes, HEADER_SIZE - 4) == 0;
    record_writer_free(&wanted);
    *out_failures = (uint32_t)record_read_uint(cursor, 4);
    return same && !cursor->failed && *out_failures <= FAILURES_MAX;
}

static bool take_failure(struct record_reader *cursor, struct generation *generation)
{
    const struct zt_model *model = generation->model;
    struct failure failure = {.object = (uint32_t)record_read_uint(cursor, 4)};

    failure.component = (uint32_t)record_read_uint(cursor, 4);
    failure.expected = record_read_text(cursor);
    failure.actual = record_read_text(cursor);
    failure.rule = record_read_text(cursor);
    failure.detail = record_read_text(cursor);
    cursor->failed =
        cursor->failed || failure.object >= model->object_count ||
        (failure.component != NO_COMPONENT && failure.component >= model->component_count) ||
        !verification_add_failure(verification_of(generation), &failure);
    free(failure.expected);
    free(failure.actual);
    free(failure.rule);
    free(failure.detail);
    return !cursor->failed;
}

/* Nobody else has the generation yet: no lock is needed. */
static void recall_image(const uint8_t *bytes, size_t length, struct generation *generation)
{
    struct record_reader cursor = {.at = bytes, .left = length};
    uint32_t count = generation->model->component_count;
    uint32_t failures = 0;
    const uint8_t *states;

    if (!take_header(&cursor, generation, &failures))
        return;
    states = record_read_bytes(&cursor, count);
    if (states == NULL)
        return;
    for (uint32_t i = 0; i < failures; i++)
        if (!take_failure(&cursor, generation))
            return;
    /* Only verdicts about components that can be judged; the rest follows from the manifest. */
    for (uint32_t i = 0; i < count; i++) {
        enum component_state state = states[i] & ~BROKEN;
        bool verdict = state == COMPONENT_VERIFIED || state == COMPONENT_CORRUPT;

        verification_set_broken(generation, i, (states[i] & BROKEN) != 0);
        /* A component without a digest of its own is corrupt if its shard is. */
        if ((verdict && atomic_load(&generation->states[i]) == COMPONENT_UNCHECKED) ||
            (state == COMPONENT_CORRUPT &&
             atomic_load(&generation->states[i]) == COMPONENT_UNDIGESTED))
            verification_set(generation, i, state);
    }
}

void verification_recall(struct state_folder *folder, struct generation *generation)
{
    struct record_reader tail;
    size_t length = 0;
    uint8_t *bytes;

    if (folder->descriptor < 0)
        return;
    bytes = state_file_read(folder, generation->path, &length);
    if (bytes == NULL)
        return;
    if (length >= HEADER_SIZE + RECORD_HASH_BYTES) {
        tail = (struct record_reader){.at = bytes + length - RECORD_HASH_BYTES,
                                      .left = RECORD_HASH_BYTES};
        if (record_read_hash(&tail, bytes))
            recall_image(bytes, length - RECORD_HASH_BYTES, generation);
    }
    free(bytes);
}
