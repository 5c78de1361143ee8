/* What was found out, kept across restarts: a file a model in the state folder's "verified"
 * (state_file.h).
 *
 * Magic, identity (inode, size, modified, changed), ETag, count of components, count of failures, a
 * byte a component (its state; the highest bit where its content breaks a rule), the failures, the
 * hash of all before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "verify/verification.h"

/* The last digit is the version of this form. */
#define MAGIC       "ZTSVFY02"
#define HEADER_SIZE (8 + 4 * 8 + GENERATION_ETAG_SIZE + 4 + 4)
#define BROKEN      0x80

/* --- writing --- */

static void put_failure(struct state_image *image, const struct failure *failure)
{
    state_put_number(image, failure->object, 4);
    state_put_number(image, failure->component, 4);
    state_put_text(image, failure->expected);
    state_put_text(image, failure->actual);
    state_put_text(image, failure->rule);
    state_put_text(image, failure->detail);
}

static void put_header(struct state_image *image, const struct generation *generation,
                       uint32_t failure_count)
{
    const struct file_identity *identity = &generation->identity;

    state_put(image, MAGIC, 8);
    state_put_number(image, identity->inode, 8);
    state_put_number(image, identity->size_bytes, 8);
    state_put_number(image, (uint64_t)identity->modified_ns, 8);
    state_put_number(image, (uint64_t)identity->changed_ns, 8);
    state_put(image, generation->etag, GENERATION_ETAG_SIZE);
    state_put_number(image, generation->model->component_count, 4);
    state_put_number(image, failure_count, 4);
}

static void make_image(struct generation *generation, struct state_image *image)
{
    struct verification *verification = generation->verification;

    pthread_mutex_lock(&verification->lock);
    put_header(image, generation, verification->failure_count);
    for (uint32_t i = 0; i < generation->model->component_count; i++) {
        uint8_t state = atomic_load(&generation->states[i]);

        state |= verification->broken[i] ? BROKEN : 0;
        state_put(image, &state, 1);
    }
    for (const struct failure *failure = verification->failures; failure != NULL;
         failure = failure->next)
        put_failure(image, failure);
    pthread_mutex_unlock(&verification->lock);
    state_put_hash(image, 0);
}

void verification_save(struct state_folder *folder, struct generation *generation)
{
    struct state_image image = {NULL, 0, 0, false};

    if (folder->descriptor < 0 || atomic_load(&generation->retired))
        return;
    make_image(generation, &image);
    if (!state_file_write(folder, generation->path, &image))
        log_write(LOG_LEVEL_WARN, "what is verified of %s cannot be written down: %s",
                  generation->path, strerror(errno));
    free(image.bytes);
}

/* --- reading --- */

static bool take_header(struct state_cursor *cursor, const struct generation *generation,
                        uint32_t *out_failures)
{
    struct state_image wanted = {NULL, 0, 0, false};
    const uint8_t *header = state_take(cursor, HEADER_SIZE - 4);
    bool same;

    put_header(&wanted, generation, 0);
    same = header != NULL && !wanted.failed && wanted.length == HEADER_SIZE &&
           memcmp(header, wanted.bytes, HEADER_SIZE - 4) == 0;
    free(wanted.bytes);
    *out_failures = (uint32_t)state_take_number(cursor, 4);
    return same && !cursor->failed && *out_failures <= FAILURES_MAX;
}

static bool take_failure(struct state_cursor *cursor, struct generation *generation)
{
    const struct zt_model *model = generation->model;
    struct failure failure = {.object = (uint32_t)state_take_number(cursor, 4)};

    failure.component = (uint32_t)state_take_number(cursor, 4);
    failure.expected = state_take_text(cursor);
    failure.actual = state_take_text(cursor);
    failure.rule = state_take_text(cursor);
    failure.detail = state_take_text(cursor);
    cursor->failed =
        cursor->failed || failure.object >= model->object_count ||
        (failure.component != NO_COMPONENT && failure.component >= model->component_count) ||
        !verification_add_failure(generation->verification, &failure);
    free(failure.expected);
    free(failure.actual);
    free(failure.rule);
    free(failure.detail);
    return !cursor->failed;
}

/* Nobody else has the generation yet, so no lock is needed. */
static void recall_image(const uint8_t *bytes, size_t length, struct generation *generation)
{
    struct state_cursor cursor = {bytes, length, false};
    uint32_t count = generation->model->component_count;
    uint32_t failures = 0;
    const uint8_t *states;

    if (!take_header(&cursor, generation, &failures))
        return;
    states = state_take(&cursor, count);
    if (states == NULL)
        return;
    for (uint32_t i = 0; i < failures; i++)
        if (!take_failure(&cursor, generation))
            return;
    /* Only verdicts about what can be judged; the rest is told anew each time. */
    for (uint32_t i = 0; i < count; i++) {
        enum component_state state = states[i] & ~BROKEN;
        bool verdict = state == COMPONENT_VERIFIED || state == COMPONENT_CORRUPT;

        verification_set_broken(generation, i, (states[i] & BROKEN) != 0);
        /* Without a digest of its own it is corrupt by its shard's. */
        if ((verdict && atomic_load(&generation->states[i]) == COMPONENT_UNCHECKED) ||
            (state == COMPONENT_CORRUPT &&
             atomic_load(&generation->states[i]) == COMPONENT_UNDIGESTED))
            verification_set(generation, i, state);
    }
}

void verification_recall(struct state_folder *folder, struct generation *generation)
{
    struct state_cursor tail;
    size_t length = 0;
    uint8_t *bytes;

    if (folder->descriptor < 0)
        return;
    bytes = state_file_read(folder, generation->path, &length);
    if (bytes == NULL)
        return;
    if (length >= HEADER_SIZE + STATE_FILE_HASH_SIZE) {
        tail = (struct state_cursor){bytes + length - STATE_FILE_HASH_SIZE, STATE_FILE_HASH_SIZE,
                                     false};
        if (state_take_hash(&tail, bytes))
            recall_image(bytes, length - STATE_FILE_HASH_SIZE, generation);
    }
    free(bytes);
}
