/* What was found, as it is asked for, and what is worth being found.
 *
 * What is found of a component is one block that never changes: the SHA-256 of the whole, and
 * behind it those of the pieces where there are several. A table of pointers to such blocks belongs
 * to each generation that something is wanted of, so that asking takes no lock. A SHA-256 that the
 * file states over the stored bytes takes no block. */
#include "verify/found_digests.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "verify/found_work.h"
#include "verify/verifier_runs.h"
#include "zt/decode.h"
#include "zt/verify.h"

uint8_t found_wanted_mark[1];

/* --- what is known --- */

static bool digest_covers_stored(const struct zt_model *model, const struct zt_component *component)
{
    return component->digest != NULL &&
           (zt_digest_covers_stored(model) || zt_component_is_plain(component));
}

bool found_digest_stated(const struct generation *generation, uint32_t component,
                         uint8_t out_sha256[32])
{
    const struct zt_component *of = &generation->model->components[component];
    struct zt_digest digest;

    if (!digest_covers_stored(generation->model, of) ||
        zt_component_digest(generation->model, of, &digest, NULL) != ZT_OK ||
        digest.algorithm != ZT_DIGEST_SHA256)
        return false;
    memcpy(out_sha256, digest.bytes, FOUND_DIGEST_SIZE);
    return true;
}

static bool is_sound(const struct generation *generation, uint32_t component)
{
    enum component_state state = atomic_load(&generation->states[component]);

    return state == COMPONENT_VERIFIED || state == COMPONENT_UNDIGESTED ||
           state == COMPONENT_UNSUPPORTED;
}

const uint8_t *found_block(const struct generation *generation, uint32_t component)
{
    found_slot *table = generation->found == NULL ? NULL : atomic_load(&generation->found->table);
    const uint8_t *block = table == NULL ? NULL : atomic_load(&table[component]);

    return block == FOUND_WANTED ? NULL : block;
}

bool found_digest_whole(const struct generation *generation, uint32_t component,
                        uint8_t out_sha256[32])
{
    const uint8_t *block =
        is_sound(generation, component) ? found_block(generation, component) : NULL;

    if (block != NULL)
        memcpy(out_sha256, block, FOUND_DIGEST_SIZE);
    return block != NULL || (atomic_load(&generation->states[component]) == COMPONENT_VERIFIED &&
                             found_digest_stated(generation, component, out_sha256));
}

bool found_digest_piece(const struct generation *generation, uint32_t component, uint64_t first,
                        uint64_t length, uint8_t out_sha256[32])
{
    const uint64_t total = generation->model->components[component].length;
    const uint8_t *block =
        is_sound(generation, component) ? found_block(generation, component) : NULL;
    uint64_t piece_bytes;

    if (first == 0 && length == total)
        return found_digest_whole(generation, component, out_sha256);
    if (block == NULL || first >= total || length == 0 || length > total - first)
        return false;
    piece_bytes = generation->found->piece_bytes;
    if (first % piece_bytes != 0 || length > piece_bytes ||
        (length != piece_bytes && first + length != total))
        return false;
    memcpy(out_sha256, block + FOUND_DIGEST_SIZE * (1 + first / piece_bytes), FOUND_DIGEST_SIZE);
    return true;
}

/* --- the table --- */

uint64_t found_block_count(uint64_t length_bytes, uint64_t piece_bytes)
{
    return length_bytes <= piece_bytes ? 1 : 2 + (length_bytes - 1) / piece_bytes;
}

/* Made if need be; NULL when memory is out. */
static found_slot *table_of(struct generation *generation)
{
    found_slot *table = atomic_load(&generation->found->table);
    found_slot *made;

    if (table != NULL)
        return table;
    made = calloc(generation->model->component_count, sizeof(*made));
    if (made == NULL)
        return NULL;
    if (atomic_compare_exchange_strong(&generation->found->table, &table, made))
        return made;
    free(made);
    return table;
}

bool found_block_put(struct generation *generation, uint32_t component, uint8_t *before,
                     uint8_t *block)
{
    found_slot *table = table_of(generation);

    return table != NULL && atomic_compare_exchange_strong(&table[component], &before, block);
}

void found_forget_wanted(struct generation *generation, uint32_t component)
{
    (void)found_block_put(generation, component, FOUND_WANTED, NULL);
}

void found_digests_adopt(struct verifier *verifier, struct generation *generation)
{
    const int64_t piece_bytes = verifier->server->config->limits.digest_piece_bytes;

    if (piece_bytes == 0 || generation->model->component_count == 0)
        return;
    generation->found = calloc(1, sizeof(*generation->found));
    if (generation->found == NULL)
        return;
    generation->found->piece_bytes = (uint64_t)piece_bytes;
    found_state_recall(&verifier->found.folder, generation);
}

void found_digests_free(struct generation *generation)
{
    struct found_digests *found = generation->found;
    found_slot *table = found == NULL ? NULL : atomic_load(&found->table);

    if (found == NULL)
        return;
    for (uint32_t i = 0; table != NULL && i < generation->model->component_count; i++) {
        uint8_t *block = atomic_load(&table[i]);

        if (block != FOUND_WANTED)
            free(block);
    }
    free(table);
    free(found->wanted.items);
    free(found->unsaved.items);
    free(found);
}

/* --- wanting --- */

/* Told by the text's beginning: this is asked with every request. */
static bool looks_like_sha256(const struct generation *generation,
                              const struct zt_component *component)
{
    return digest_covers_stored(generation->model, component) && component->digest_length > 7 &&
           strncasecmp(component->digest, "sha256:", 7) == 0;
}

static bool is_worth_finding(const struct generation *generation, uint32_t component)
{
    const struct zt_component *of = &generation->model->components[component];

    return is_sound(generation, component) && !atomic_load(&generation->retired) &&
           (of->length > generation->found->piece_bytes || !looks_like_sha256(generation, of));
}

void found_digests_want(struct server *server, struct generation *generation, uint32_t component)
{
    found_slot *table = generation->found == NULL ? NULL : atomic_load(&generation->found->table);

    if (generation->found == NULL || (table != NULL && atomic_load(&table[component]) != NULL) ||
        !is_worth_finding(generation, component) ||
        !found_block_put(generation, component, NULL, FOUND_WANTED))
        return;
    if (!found_queue_add(server->verifier, generation, component))
        found_forget_wanted(generation, component);
}

void found_digests_learn(struct server *server, struct generation *generation, uint32_t component,
                         const uint8_t sha256[32])
{
    uint8_t *block;

    if (generation->found == NULL || !is_worth_finding(generation, component))
        return;
    if (generation->model->components[component].length > generation->found->piece_bytes) {
        found_digests_want(server, generation, component);
        return;
    }
    block = malloc(FOUND_DIGEST_SIZE);
    if (block == NULL)
        return;
    memcpy(block, sha256, FOUND_DIGEST_SIZE);
    if (found_block_put(generation, component, NULL, block))
        found_queue_note(server->verifier, generation, component);
    else
        free(block);
}
