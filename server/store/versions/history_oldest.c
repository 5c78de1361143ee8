/* Forgets commits because of their age, or because of the bytes that they keep. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/memory.h"
#include "store/versions/history_collection.h"

static enum zt_status fail_memory(struct zt_error *error)
{
    return zt_fail_memory(error, "a collection of kept files");
}

/* --- by age --- */

/* When each entry was replaced: the time of its successor on the branch. An entry without one has
 * its own time. Returns NULL without memory. */
static int64_t *find_ends(const struct log_state *state)
{
    int64_t *ends = calloc(state->count + 1, sizeof(*ends));

    for (size_t i = 0; ends != NULL && i < state->count; i++) {
        const struct log_entry *entry = &state->entries[i];
        const struct log_entry *parent = log_state_entry(state, entry->parent);

        ends[i] = entry->time_ms;
        if (parent != NULL && strcmp(parent->texts, entry->texts) == 0)
            ends[parent - state->entries] = entry->time_ms;
    }
    return ends;
}

/* Finds the entries that were replaced before a time, and lowers *next_ms to the earliest time at
 * which another one was. Entries that a branch or tag has are kept. */
static enum zt_status find_old(const struct log_state *state, int64_t before_ms,
                               struct numbers *out_old, int64_t *next_ms, struct zt_error *error)
{
    int64_t *ends = find_ends(state);
    struct numbers targets = {.count = 0};
    enum zt_status status =
        ends != NULL ? history_targets(state, NULL, &targets, error) : fail_memory(error);

    for (size_t i = 0; status == ZT_OK && i < state->count; i++) {
        const uint64_t number = state->entries[i].number;

        if (numbers_have(&targets, number))
            continue;
        if (ends[i] >= before_ms)
            *next_ms = ends[i] < *next_ms ? ends[i] : *next_ms;
        else if (numbers_add(out_old, number) != ZT_OK)
            status = fail_memory(error);
    }
    free(targets.numbers);
    free(ends);
    return status;
}

/* Forgets the wanted entries of a repository, except those that a branch or tag has now. */
static enum zt_status forget(struct history *history, const struct history_repo *repo,
                             const struct numbers *wanted, struct zt_error *error)
{
    struct numbers forgotten = {.count = 0};
    struct numbers targets = {.count = 0};
    struct log *log;
    enum zt_status status;

    assert(wanted->count > 0);
    status = history_lock(history, repo, error);
    if (status != ZT_OK)
        return status;
    status = log_pin(history, repo, &log, error);
    if (status == ZT_OK) {
        status = history_targets(&log->state, NULL, &targets, error);
        for (size_t i = 0; status == ZT_OK && i < log->state.count; i++) {
            const uint64_t number = log->state.entries[i].number;

            if (numbers_have(wanted, number) && !numbers_have(&targets, number) &&
                numbers_add(&forgotten, number) != ZT_OK)
                status = fail_memory(error);
        }
        if (status == ZT_OK)
            status = history_forget(history, log, &forgotten, error);
        free(targets.numbers);
        free(forgotten.numbers);
        log_unpin(history, log);
    }
    history_unlock(history, repo);
    return status;
}

static enum zt_status forget_old(struct history *history, const char *key, int64_t before_ms,
                                 int64_t *next_ms, struct zt_error *error)
{
    struct numbers old = {.count = 0};
    struct history_repo repo;
    struct log *log;
    enum zt_status status = collection_repo(history, key, &repo, error);

    if (status == ZT_OK)
        status = log_begin(history, &repo, &log, error);
    if (status != ZT_OK)
        return status == ZT_NOT_FOUND ? ZT_OK : status;
    status = find_old(&log->state, before_ms, &old, next_ms, error);
    log_end(history, log);
    if (status == ZT_OK && old.count > 0)
        status = forget(history, &repo, &old, error);
    free(old.numbers);
    return status;
}

enum zt_status collection_forget_old(struct history *history, struct collection *collection,
                                     const struct history_keep *keep, struct zt_error *error)
{
    const int64_t now_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
    int64_t next_ms = INT64_MAX;
    enum zt_status status;
    int64_t age_ms;

    assert(history->collection == collection);
    atomic_store(&history->due_ms, INT64_MAX);
    if (keep->age_s == 0 || keep->age_s > (uint64_t)now_ms / 1000)
        return ZT_OK;
    age_ms = (int64_t)keep->age_s * 1000;
    status = collection_list(history, collection, error);
    for (size_t i = 0; status == ZT_OK && i < collection->key_count; i++)
        status = forget_old(history, collection->keys[i], now_ms - age_ms, &next_ms, error);
    if (status == ZT_OK && next_ms < INT64_MAX)
        atomic_store(&history->due_ms, next_ms + age_ms);
    return status;
}

bool history_is_due(const struct history *history)
{
    return clock_wall_ns() / CLOCK_NS_PER_MS > atomic_load(&history->due_ms);
}

/* --- by bytes --- */

struct candidate {
    int64_t time_ms;
    uint64_t number;
    size_t key; /* of its repository in the collection */
    uint8_t id[HISTORY_SHA1_BYTES];
};

struct candidates {
    struct candidate *items;
    size_t count;
    size_t capacity;
};

static int compare_ages(const void *a, const void *b)
{
    const struct candidate *first = a;
    const struct candidate *second = b;

    if (first->time_ms != second->time_ms)
        return first->time_ms < second->time_ms ? -1 : 1;
    if (first->key != second->key)
        return first->key < second->key ? -1 : 1;
    return (first->number > second->number) - (first->number < second->number);
}

static int compare_places(const void *a, const void *b)
{
    const struct candidate *first = a;
    const struct candidate *second = b;

    if (first->key != second->key)
        return first->key < second->key ? -1 : 1;
    return (first->number > second->number) - (first->number < second->number);
}

static enum zt_status add_entries(const struct log_state *state, size_t key,
                                  struct candidates *candidates, struct zt_error *error)
{
    struct numbers targets;
    enum zt_status status = history_targets(state, NULL, &targets, error);

    assert(candidates->count <= candidates->capacity);
    if (status != ZT_OK)
        return status;
    for (size_t i = 0; status == ZT_OK && i < state->count; i++) {
        const struct log_entry *entry = &state->entries[i];
        struct candidate candidate = {
            .time_ms = entry->time_ms, .number = entry->number, .key = key};

        if (numbers_have(&targets, entry->number))
            continue;
        memcpy(candidate.id, entry->id, sizeof(candidate.id));
        if (zt_array_reserve(&candidates->items, &candidates->capacity, candidates->count + 1,
                             sizeof(*candidates->items), SIZE_MAX) == ZT_OK)
            candidates->items[candidates->count++] = candidate;
        else
            status = fail_memory(error);
    }
    free(targets.numbers);
    return status;
}

static enum zt_status find_candidates(struct history *history, const struct collection *collection,
                                      struct candidates *candidates, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (size_t i = 0; status == ZT_OK && i < collection->key_count; i++) {
        struct history_repo repo;
        struct log *log;

        status = collection_repo(history, collection->keys[i], &repo, error);
        if (status == ZT_OK)
            status = log_begin(history, &repo, &log, error);
        if (status == ZT_OK) {
            status = add_entries(&log->state, i, candidates, error);
            log_end(history, log);
        } else if (status == ZT_NOT_FOUND)
            status = ZT_OK;
    }
    if (status == ZT_OK && candidates->count > 0)
        qsort(candidates->items, candidates->count, sizeof(*candidates->items), compare_ages);
    return status;
}

struct freeing {
    struct collection *collection;
    uint64_t bytes; /* of the kept files that are still named */
};

static enum zt_status free_file(void *context, const struct history_file *file)
{
    struct freeing *freeing = context;
    uint64_t *uses = sha_set_find(&freeing->collection->uses, file->sha256);
    const uint64_t *size = sha_set_find(&freeing->collection->sizes, file->sha256);

    assert(freeing->bytes <= freeing->collection->bytes);
    if (uses == NULL || *uses == 0)
        return ZT_OK;
    --*uses;
    if (*uses == 0 && size != NULL)
        freeing->bytes -= *size;
    return ZT_OK;
}

/* Returns how many of the oldest candidates have to go. Those whose files another entry of the same
 * identity keeps make that too few; there is another round then. */
static size_t choose(struct history *history, struct collection *collection,
                     const struct candidates *candidates, uint64_t most_bytes)
{
    struct freeing freeing = {collection, collection->bytes - collection->garbage_bytes};
    size_t count = 0;

    assert(collection->garbage_bytes <= collection->bytes);
    for (; count < candidates->count && freeing.bytes > most_bytes; count++) {
        const struct candidate *candidate = &candidates->items[count];
        char commit[HISTORY_COMMIT_SIZE];

        zt_hex_write(commit, candidate->id, sizeof(candidate->id));
        (void)history_tree_visit(history, collection->keys[candidate->key], commit, free_file,
                                 &freeing, NULL);
    }
    return count;
}

/* Forgets the chosen candidates, repository by repository. */
static enum zt_status forget_chosen(struct history *history, const struct collection *collection,
                                    struct candidate *items, size_t count, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    size_t at = 0;

    assert(count > 0 && items != NULL);
    qsort(items, count, sizeof(*items), compare_places);
    while (status == ZT_OK && at < count) {
        const size_t key = items[at].key;
        struct numbers wanted = {.count = 0};
        struct history_repo repo;

        for (; status == ZT_OK && at < count && items[at].key == key; at++)
            if (numbers_add(&wanted, items[at].number) != ZT_OK)
                status = fail_memory(error);
        if (status == ZT_OK)
            status = collection_repo(history, collection->keys[key], &repo, error);
        if (status == ZT_OK)
            status = forget(history, &repo, &wanted, error);
        else if (status == ZT_NOT_FOUND)
            status = ZT_OK;
        free(wanted.numbers);
    }
    return status;
}

enum zt_status collection_forget_bytes(struct history *history, struct collection *collection,
                                       const struct history_keep *keep, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    bool goes_on = true;

    assert(history->collection == collection);
    while (keep->bytes > 0 && goes_on && status == ZT_OK &&
           collection->bytes - collection->garbage_bytes > keep->bytes) {
        struct candidates candidates = {.count = 0};
        size_t count = 0;

        status = find_candidates(history, collection, &candidates, error);
        if (status == ZT_OK)
            count = choose(history, collection, &candidates, keep->bytes);
        goes_on = count > 0;
        if (status == ZT_OK && goes_on)
            status = forget_chosen(history, collection, candidates.items, count, error);
        free(candidates.items);
        if (status == ZT_OK && goes_on)
            status = collection_look(history, collection, error);
    }
    return status;
}
