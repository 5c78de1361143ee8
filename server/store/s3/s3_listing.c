/* Remembers the bucket's files: one entry for each path, sorted. */
#include "store/s3/s3_listing.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/changes.h"
#include "base/memory.h"

/* --- entries --- */

static struct s3_entry *entry_new(const char *path, const char *etag)
{
    const size_t path_size = strlen(path) + 1;
    const size_t etag_size = strlen(etag) + 1;
    struct s3_entry *entry = malloc(sizeof(*entry) + path_size + etag_size);

    if (entry == NULL)
        return NULL;
    *entry = (struct s3_entry){.etag = entry->path + path_size};
    memcpy(entry->path, path, path_size);
    memcpy(entry->path + path_size, etag, etag_size);
    return entry;
}

bool s3_entries_add(struct s3_entries *entries, const char *path, const char *etag,
                    uint64_t size_bytes, int64_t modified_s)
{
    struct s3_entry *entry = NULL;

    if (zt_array_reserve(&entries->items, &entries->capacity, entries->count + 1,
                         sizeof(struct s3_entry *), SIZE_MAX) == ZT_OK)
        entry = entry_new(path, etag);
    if (entry == NULL)
        return false;
    entry->size_bytes = size_bytes;
    entry->modified_s = modified_s;
    /* Remembers the order in the list, until the entries are sorted. */
    entry->noted = entries->count;
    entries->items[entries->count++] = entry;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct s3_entry *left = *(struct s3_entry *const *)a;
    const struct s3_entry *right = *(struct s3_entry *const *)b;
    const int order = strcmp(left->path, right->path);

    if (order != 0)
        return order;
    return (left->noted > right->noted) - (left->noted < right->noted);
}

bool s3_entries_settle(struct s3_entries *entries, size_t at, const struct object_version *version)
{
    struct s3_entry *entry = entry_new(entries->items[at]->path, version->etag);

    if (entry == NULL)
        return false;
    entry->size_bytes = version->size_bytes;
    entry->modified_s = version->modified_s;
    free(entries->items[at]);
    entries->items[at] = entry;
    return true;
}

/* Chooses which of two entries of a path to keep, and frees the other one. */
static struct s3_entry *choose(struct s3_entry *first, struct s3_entry *second)
{
    const bool is_same = strcmp(first->etag, second->etag) == 0;
    const bool is_disputed = first->is_disputed || second->is_disputed || !is_same;
    const bool is_later = second->modified_s >= first->modified_s;
    struct s3_entry *chosen = is_later ? second : first;

    assert(first != second);
    chosen->is_disputed = is_disputed;
    free(is_later ? first : second);
    return chosen;
}

void s3_entries_sort(struct s3_entries *entries)
{
    size_t used = 0;

    if (entries->count > 1)
        qsort(entries->items, entries->count, sizeof(struct s3_entry *), compare);
    for (size_t i = 0; i < entries->count; i++) {
        struct s3_entry *entry = entries->items[i];

        entry->noted = 0;
        if (used > 0 && strcmp(entries->items[used - 1]->path, entry->path) == 0)
            entry = choose(entries->items[--used], entry);
        entries->items[used++] = entry;
    }
    entries->count = used;
}

void s3_entries_free(struct s3_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        free(entries->items[i]);
    free(entries->items);
    *entries = (struct s3_entries){NULL, 0, 0};
}

/* Returns the index of the first entry that does not sort before the path. */
static size_t bound(const struct s3_entries *entries, const char *path)
{
    size_t low = 0;
    size_t high = entries->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(entries->items[middle]->path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct s3_entry *find(const struct s3_entries *entries, const char *path)
{
    const size_t at = bound(entries, path);

    return at < entries->count && strcmp(entries->items[at]->path, path) == 0 ? entries->items[at]
                                                                              : NULL;
}

/* Inserts an entry, or replaces the entry of the same path. Without memory it is dropped; the next
 * list will add it. */
static void put(struct s3_entries *entries, struct s3_entry *entry)
{
    const size_t at = bound(entries, entry->path);

    if (at < entries->count && strcmp(entries->items[at]->path, entry->path) == 0) {
        free(entries->items[at]);
        entries->items[at] = entry;
        return;
    }
    if (zt_array_reserve(&entries->items, &entries->capacity, entries->count + 1,
                         sizeof(struct s3_entry *), SIZE_MAX) != ZT_OK) {
        free(entry);
        return;
    }
    memmove(entries->items + at + 1, entries->items + at,
            (entries->count - at) * sizeof(struct s3_entry *));
    entries->items[at] = entry;
    entries->count++;
}

/* --- the listing --- */

struct s3_listing *s3_listing_new(void)
{
    struct s3_listing *listing = calloc(1, sizeof(*listing));

    if (listing == NULL)
        return NULL;
    pthread_mutex_init(&listing->lock, NULL);
    listing->timer = -1;
    return listing;
}

void s3_listing_free(struct s3_listing *listing)
{
    if (listing == NULL)
        return;
    if (listing->timer >= 0)
        close(listing->timer);
    s3_entries_free(&listing->entries);
    s3_facts_free(&listing->facts);
    skipped_free(&listing->skipped);
    pthread_mutex_destroy(&listing->lock);
    free(listing);
}

void s3_listing_replace(struct s3_listing *listing, struct s3_entries *entries, uint64_t notes,
                        int64_t begun_wall_ns)
{
    struct s3_entries old;

    pthread_mutex_lock(&listing->lock);
    old = listing->entries;
    for (size_t i = 0; i < old.count; i++) {
        struct s3_entry *known = old.items[i];

        if (known->noted <= notes)
            continue;
        put(entries, known);
        old.items[i] = NULL;
    }
    listing->entries = *entries;
    listing->has_list = true;
    listing->listed_wall_ns = begun_wall_ns;
    pthread_mutex_unlock(&listing->lock);
    *entries = (struct s3_entries){NULL, 0, 0};
    s3_entries_free(&old);
    changes_note();
}

uint64_t s3_listing_notes(struct s3_listing *listing)
{
    uint64_t notes;

    pthread_mutex_lock(&listing->lock);
    notes = listing->notes;
    pthread_mutex_unlock(&listing->lock);
    return notes;
}

bool s3_listing_has_list(struct s3_listing *listing)
{
    bool has_list;

    pthread_mutex_lock(&listing->lock);
    has_list = listing->has_list;
    pthread_mutex_unlock(&listing->lock);
    return has_list;
}

/* Takes over an entry, unless something has been learned about its path since the note counter had
 * that value. */
static void note(struct s3_listing *listing, struct s3_entry *entry, uint64_t notes)
{
    const struct s3_entry *known;

    pthread_mutex_lock(&listing->lock);
    known = find(&listing->entries, entry->path);
    if (known == NULL || known->noted <= notes) {
        entry->noted = ++listing->notes;
        put(&listing->entries, entry);
        entry = NULL;
    }
    pthread_mutex_unlock(&listing->lock);
    free(entry);
    changes_note();
}

void s3_listing_note(struct s3_listing *listing, const char *path, const char *etag,
                     uint64_t size_bytes, int64_t modified_s)
{
    struct s3_entry *entry = entry_new(path, etag != NULL ? etag : "");

    if (entry == NULL)
        return;
    entry->is_gone = etag == NULL;
    entry->size_bytes = size_bytes;
    entry->modified_s = modified_s;
    note(listing, entry, UINT64_MAX);
}

void s3_listing_note_listed(struct s3_listing *listing, const struct listed_object *listed,
                            uint64_t notes)
{
    struct s3_entry *entry = entry_new(listed->key, listed->etag);

    if (entry == NULL)
        return;
    entry->size_bytes = listed->size_bytes;
    entry->modified_s = listed->modified_s;
    note(listing, entry, notes);
}

static struct file_identity identity_of(const struct s3_entry *entry)
{
    return bucket_identity(entry->etag, entry->size_bytes, entry->modified_s);
}

void s3_listing_lose(struct s3_listing *listing, const char *path,
                     const struct file_identity *identity)
{
    struct s3_entry *entry;

    pthread_mutex_lock(&listing->lock);
    entry = find(&listing->entries, path);
    if (entry != NULL && !entry->is_gone && !entry->is_lost) {
        const struct file_identity known = identity_of(entry);

        entry->is_lost = store_identity_equal(&known, identity);
    }
    pthread_mutex_unlock(&listing->lock);
    changes_note();
}

enum s3_known s3_listing_find(struct s3_listing *listing, const char *path,
                              struct object_version *out_version)
{
    const struct s3_entry *entry;
    enum s3_known known;

    pthread_mutex_lock(&listing->lock);
    entry = find(&listing->entries, path);
    if (entry == NULL)
        known = listing->has_list ? S3_KNOWN_ABSENT : S3_UNKNOWN;
    else if (entry->is_gone)
        known = S3_KNOWN_ABSENT;
    else
        known = entry->is_lost ? S3_LOST : S3_KNOWN;
    if (known == S3_KNOWN && out_version != NULL) {
        *out_version = (struct object_version){.size_bytes = entry->size_bytes,
                                               .modified_s = entry->modified_s};
        assert(strlen(entry->etag) < sizeof(out_version->etag));
        strcpy(out_version->etag, entry->etag);
    }
    pthread_mutex_unlock(&listing->lock);
    return known;
}

/* Copies the entries of existing files. */
static bool copy_entries(struct s3_listing *listing, struct s3_entries *out_copy)
{
    bool has_memory = true;

    pthread_mutex_lock(&listing->lock);
    for (size_t i = 0; has_memory && i < listing->entries.count; i++) {
        const struct s3_entry *entry = listing->entries.items[i];

        if (!entry->is_gone)
            has_memory = s3_entries_add(out_copy, entry->path, entry->etag, entry->size_bytes,
                                        entry->modified_s);
    }
    pthread_mutex_unlock(&listing->lock);
    return has_memory;
}

bool s3_listing_visit(struct s3_listing *listing, store_visit visit, void *context)
{
    struct s3_entries copy = {NULL, 0, 0};
    const bool has_memory = copy_entries(listing, &copy);
    bool more = has_memory;

    for (size_t i = 0; more && i < copy.count; i++) {
        const struct file_identity identity = identity_of(copy.items[i]);

        more = visit(context, copy.items[i]->path, &identity);
    }
    s3_entries_free(&copy);
    return has_memory;
}

void s3_listing_drop_others(struct s3_listing *listing, struct zt_text name,
                            const struct s3_entries *found, uint64_t notes)
{
    char model[MODEL_NAME_MAX + 1];
    char path[MODEL_PATH_SIZE];

    assert(name.length <= MODEL_NAME_MAX);
    snprintf(model, sizeof(model), "%.*s", (int)name.length, name.bytes);
    for (unsigned rank = 0; model_file_path(model, rank, path); rank++) {
        struct s3_entry *entry;

        if (find(found, path) != NULL)
            continue;
        pthread_mutex_lock(&listing->lock);
        entry = find(&listing->entries, path);
        if (entry != NULL && entry->noted <= notes) {
            entry->is_gone = true;
            entry->noted = ++listing->notes;
        }
        pthread_mutex_unlock(&listing->lock);
    }
}
