/* The side table of digests: lookups, which take no lock, and the decision which digests to
 * compute.
 *
 * For each component the table has a pointer to a block of digests of the stored bytes, which never
 * changes, and a list of digests of the decoded bytes, which only grows. If the file states a
 * SHA-256 of the stored bytes, no block is needed for it. */
#include "verify/component_digests.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/changes.h"
#include "verify/verifier_work.h"
#include "zt/decode.h"
#include "zt/verify.h"

/* A smaller component is read again instead: its digest would take more than 1/500 of its size. */
#define LEAST_DECODED_BYTES 65536

struct decoded_digest {
    struct decoded_digest *next;
    struct zt_fingerprint fingerprint;
};

uint8_t digest_marks[2];

static bool is_mark(const uint8_t *value)
{
    return value == DIGEST_WANTED || value == DIGEST_READING;
}

/* --- the side table --- */

static void free_stored(digest_slot *slots, uint32_t count)
{
    for (uint32_t i = 0; slots != NULL && i < count; i++) {
        uint8_t *block = atomic_load(&slots[i]);

        if (!is_mark(block))
            free(block);
    }
    free(slots);
}

static void free_decoded(decoded_list *lists, uint32_t count)
{
    for (uint32_t i = 0; lists != NULL && i < count; i++) {
        struct decoded_digest *digest = atomic_load(&lists[i]);

        while (digest != NULL) {
            struct decoded_digest *next = digest->next;

            free(digest);
            digest = next;
        }
    }
    free(lists);
}

static void free_table(struct side_table *side_table, const struct generation *generation)
{
    struct digest_table *table = (struct digest_table *)side_table;
    const uint32_t count = generation->model->component_count;

    assert(!table->queued);
    free_stored(atomic_load(&table->stored), count);
    free_decoded(atomic_load(&table->decoded), count);
    record_writer_free(&table->unsaved);
    free(table);
}

/* Returns the generation's table and creates it if necessary; NULL if out of memory. */
static struct digest_table *attach_table(struct generation *generation, uint64_t piece_bytes)
{
    struct digest_table *table = digest_table_of(generation);

    assert(generation->model != NULL);
    if (table != NULL)
        return table;
    table = calloc(1, sizeof(*table));
    if (table == NULL)
        return NULL;
    table->base.free = free_table;
    table->piece_bytes = piece_bytes;
    return (struct digest_table *)generation_attach(generation, SIDE_TABLE_DIGESTS, &table->base);
}

void digest_table_adopt(struct verifier *verifier, struct generation *generation)
{
    const int64_t piece_bytes = config_number(&verifier->server->config->limits.digest_piece_bytes);
    const bool is_on = piece_bytes > 0 && generation->model->component_count > 0;

    if (attach_table(generation, is_on ? (uint64_t)piece_bytes : 0) == NULL || !is_on ||
        generation->ignores_saved)
        return;
    digest_state_recall(&verifier->wanted.folder, generation);
    shared_digests_recall(verifier, generation);
}

/* Returns the slots and creates them if necessary; NULL if out of memory. */
static digest_slot *slots_of(struct generation *generation)
{
    struct digest_table *table = digest_table_of(generation);
    digest_slot *slots = atomic_load(&table->stored);
    digest_slot *made;

    if (slots != NULL)
        return slots;
    made = calloc(generation->model->component_count, sizeof(*made));
    if (made == NULL)
        return NULL;
    /* If two threads create them at the same time, the first thread's are kept. */
    if (atomic_compare_exchange_strong(&table->stored, &slots, made))
        return made;
    free(made);
    return slots;
}

bool digest_block_put(struct generation *generation, uint32_t component, uint8_t *before,
                      uint8_t *block)
{
    digest_slot *slots = slots_of(generation);

    assert(component < generation->model->component_count);
    assert(before == NULL || is_mark(before));
    if (slots == NULL || !atomic_compare_exchange_strong(&slots[component], &before, block))
        return false;
    if (block != NULL && !is_mark(block))
        changes_note();
    return true;
}

/* Returns the slot's value: NULL, a mark or a block. */
static const uint8_t *slot_value(const struct generation *generation, uint32_t component)
{
    const struct digest_table *table = digest_table_of(generation);
    digest_slot *slots = table != NULL ? atomic_load(&table->stored) : NULL;

    return slots != NULL ? atomic_load(&slots[component]) : NULL;
}

const uint8_t *digest_block(const struct generation *generation, uint32_t component)
{
    const uint8_t *value = slot_value(generation, component);

    return !is_mark(value) ? value : NULL;
}

bool digest_take_wanted(struct generation *generation, uint32_t *io_component)
{
    assert(digest_table_of(generation)->queued);
    for (uint32_t i = *io_component; i < generation->model->component_count; i++)
        if (slot_value(generation, i) == DIGEST_WANTED &&
            digest_block_put(generation, i, DIGEST_WANTED, DIGEST_READING)) {
            *io_component = i;
            return true;
        }
    return false;
}

/* --- stored bytes: known digests --- */

static bool digest_covers_stored(const struct zt_model *model, const struct zt_component *component)
{
    return component->digest != NULL &&
           (zt_digest_covers_stored(model) || zt_component_is_plain(component));
}

bool stored_digest_stated(const struct generation *generation, uint32_t component,
                          uint8_t out_sha256[SHA256_BYTES])
{
    const struct zt_component *stated = &generation->model->components[component];
    struct zt_digest digest;

    assert(component < generation->model->component_count);
    if (!digest_covers_stored(generation->model, stated) ||
        zt_component_digest(generation->model, stated, &digest, NULL) != ZT_OK ||
        digest.algorithm != ZT_DIGEST_SHA256)
        return false;
    memcpy(out_sha256, digest.bytes, SHA256_BYTES);
    return true;
}

static bool is_sound(const struct generation *generation, uint32_t component)
{
    enum component_state state = atomic_load(&generation->states[component]);

    return state == COMPONENT_VERIFIED || state == COMPONENT_UNDIGESTED ||
           state == COMPONENT_UNSUPPORTED;
}

bool stored_digest_whole(const struct generation *generation, uint32_t component,
                         uint8_t out_sha256[SHA256_BYTES])
{
    const uint8_t *block =
        is_sound(generation, component) ? digest_block(generation, component) : NULL;

    if (block == NULL)
        return atomic_load(&generation->states[component]) == COMPONENT_VERIFIED &&
               stored_digest_stated(generation, component, out_sha256);
    memcpy(out_sha256, block, SHA256_BYTES);
    return true;
}

bool stored_digest_piece(const struct generation *generation, uint32_t component, uint64_t first,
                         uint64_t length, uint8_t out_sha256[SHA256_BYTES])
{
    const uint64_t total = generation->model->components[component].length;
    const uint8_t *block =
        is_sound(generation, component) ? digest_block(generation, component) : NULL;
    uint64_t piece_bytes;

    if (first == 0 && length == total)
        return stored_digest_whole(generation, component, out_sha256);
    if (block == NULL || first >= total || length == 0 || length > total - first)
        return false;
    piece_bytes = digest_table_of(generation)->piece_bytes;
    if (first % piece_bytes != 0 || length > piece_bytes ||
        (length != piece_bytes && first + length != total))
        return false;
    assert(1 + first / piece_bytes < hash_digest_count(total, piece_bytes));
    memcpy(out_sha256, block + SHA256_BYTES * (1 + first / piece_bytes), SHA256_BYTES);
    return true;
}

/* --- stored bytes: wanted digests --- */

/* Compares only the beginning of the text, since every request calls this. */
static bool looks_like_sha256(const struct generation *generation,
                              const struct zt_component *component)
{
    return digest_covers_stored(generation->model, component) && component->digest_length > 7 &&
           strncasecmp(component->digest, "sha256:", 7) == 0;
}

static bool is_worth_reading(const struct generation *generation, uint32_t component)
{
    const struct zt_component *stored = &generation->model->components[component];

    assert(digests_are_on(generation) && component < generation->model->component_count);
    /* A digest of bytes that are not verified would outlive them. */
    return is_sound(generation, component) && !atomic_load(&generation->retired) &&
           !generation_is_unverified(generation) &&
           (stored->length > digest_table_of(generation)->piece_bytes ||
            !looks_like_sha256(generation, stored));
}

void stored_digest_want(struct server *server, struct generation *generation, uint32_t component)
{
    if (!digests_are_on(generation) || slot_value(generation, component) != NULL ||
        !is_worth_reading(generation, component) ||
        !digest_block_put(generation, component, NULL, DIGEST_WANTED))
        return;
    if (!wanted_digests_add(server->verifier, generation, component))
        (void)digest_block_put(generation, component, DIGEST_WANTED, NULL);
}

void stored_digest_learn(struct server *server, struct generation *generation, uint32_t component,
                         const uint8_t sha256[SHA256_BYTES])
{
    uint8_t *block;

    if (!digests_are_on(generation) || !is_worth_reading(generation, component))
        return;
    if (generation->model->components[component].length >
        digest_table_of(generation)->piece_bytes) {
        stored_digest_want(server, generation, component);
        return;
    }
    block = malloc(SHA256_BYTES);
    if (block == NULL)
        return;
    memcpy(block, sha256, SHA256_BYTES);
    if (digest_block_put(generation, component, NULL, block))
        digests_note(server->verifier, generation, component);
    else
        free(block);
}

uint32_t stored_digest_pending(const struct generation *generation)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < generation->model->component_count; i++)
        count += is_mark(slot_value(generation, i));
    assert(count <= generation->model->component_count);
    return count;
}

/* --- decoded bytes --- */

bool decoded_digest_find(const struct generation *generation, uint32_t component,
                         enum zt_digest_algorithm algorithm, struct zt_fingerprint *out_fingerprint)
{
    const struct digest_table *table = digest_table_of(generation);
    decoded_list *lists = table != NULL ? atomic_load(&table->decoded) : NULL;
    const struct decoded_digest *kept = lists != NULL ? atomic_load(&lists[component]) : NULL;

    while (kept != NULL && kept->fingerprint.digest.algorithm != algorithm)
        kept = kept->next;
    if (kept != NULL)
        *out_fingerprint = kept->fingerprint;
    return kept != NULL;
}

/* Returns the lists and creates them if necessary; NULL if out of memory. */
static decoded_list *lists_of(struct generation *generation)
{
    struct digest_table *table = attach_table(generation, 0);
    decoded_list *lists = table != NULL ? atomic_load(&table->decoded) : NULL;
    decoded_list *made;

    if (table == NULL || lists != NULL)
        return lists;
    made = calloc(generation->model->component_count, sizeof(*made));
    if (made != NULL && atomic_compare_exchange_strong(&table->decoded, &lists, made))
        return made;
    free(made);
    return lists;
}

static void keep_decoded(struct generation *generation, uint32_t component,
                         const struct zt_fingerprint *fingerprint)
{
    decoded_list *lists = lists_of(generation);
    struct decoded_digest *kept = lists != NULL ? malloc(sizeof(*kept)) : NULL;
    struct zt_fingerprint known;

    assert(component < generation->model->component_count);
    if (kept == NULL ||
        decoded_digest_find(generation, component, fingerprint->digest.algorithm, &known)) {
        free(kept);
        return;
    }
    *kept = (struct decoded_digest){.next = atomic_load(&lists[component]),
                                    .fingerprint = *fingerprint};
    /* If two threads compute the same digest at the same time, both may be kept. */
    while (!atomic_compare_exchange_weak(&lists[component], &kept->next, kept))
        continue;
    changes_note();
}

void decoded_digest_add(struct generation *generation, uint32_t component,
                        const struct zt_fingerprint *fingerprint)
{
    if (fingerprint->length >= LEAST_DECODED_BYTES && !generation_is_unverified(generation))
        keep_decoded(generation, component, fingerprint);
}

void decoded_digest_learn(struct generation *generation, uint32_t component,
                          const uint8_t sha256[SHA256_BYTES])
{
    struct zt_fingerprint fingerprint = {
        .length = generation->model->components[component].decoded_length,
        .digest = {.algorithm = ZT_DIGEST_SHA256, .length_bytes = SHA256_BYTES}};

    memcpy(fingerprint.digest.bytes, sha256, SHA256_BYTES);
    if (fingerprint.length != ZT_LENGTH_UNKNOWN)
        keep_decoded(generation, component, &fingerprint);
}
