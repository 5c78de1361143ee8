/* Walks the part of the store that can have the keys: one level of one folder, or everything below
 * the folders that fit the prefix. */
#include "s3/s3api_key_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define KEYS_MAX 1000000
/* Enough for the texts of a million keys of the maximum length. */
#define TEXTS_BUDGET ((size_t)KEYS_MAX * (MODEL_NAME_MAX + 64))

/* How long a list counts as current if this server publishes no file. */
#define FRESH_MS 1000
/* A list that took longer serves the next pages for a multiple of that time, even if files are
 * published meanwhile. Otherwise one upload after another would make each page as slow as the first
 * one. */
#define SLOW_MS       100
#define COST_MULTIPLE 10
/* Lists that were made longer ago are freed when the next one is made. */
#define KEPT_MS        60000
#define KEPT_BYTES_MAX (UINT64_C(64) << 20)
#define KEPT_LISTS_MAX 256
/* In a bucket each walk is at least one request. If more folders fit the prefix, their parent is
 * walked instead. */
#define WALKS_MAX 16

/* --- making a list --- */

struct making {
    struct store *store;
    struct s3api_key_list *list;
    struct zt_text prefix;
    bool is_level;
    char **folders; /* that fit the prefix, to be walked */
    size_t folder_count;
    size_t folder_capacity;
    bool finds_folders;
    enum zt_status status;
};

static enum zt_status add_key(struct s3api_key_list *list, const char *path,
                              const struct file_identity *identity)
{
    struct s3api_key key = {.is_folder = identity == NULL, .length = strlen(path)};
    void *text = NULL;
    enum zt_status status;

    assert(key.length > 0 && path[key.length - 1] != '/');
    key.length += key.is_folder;
    status = zt_array_reserve(&list->keys, &list->capacity, list->count + 1, sizeof(key), KEYS_MAX);
    if (status == ZT_OK)
        status = zt_arena_take(&list->texts, key.length + 1, &text, NULL);
    if (status != ZT_OK)
        return status;
    memcpy(text, path, key.length);
    if (key.is_folder)
        ((char *)text)[key.length - 1] = '/';
    ((char *)text)[key.length] = '\0';
    key.text = text;
    if (identity != NULL)
        key.identity = *identity;
    list->keys[list->count++] = key;
    return ZT_OK;
}

static enum zt_status add_folder(struct making *making, const char *path)
{
    enum zt_status status =
        zt_array_reserve(&making->folders, &making->folder_capacity, making->folder_count + 1,
                         sizeof(*making->folders), KEYS_MAX);
    char *copy;

    if (status != ZT_OK)
        return status;
    copy = strdup(path);
    if (copy == NULL)
        return ZT_NO_MEMORY;
    making->folders[making->folder_count++] = copy;
    return ZT_OK;
}

static bool take(void *context, const char *path, const struct file_identity *identity)
{
    struct making *making = context;

    /* All files of the prefix's folder are taken, because views may begin with the prefix. */
    if (!making->is_level && !zt_text_starts_with(zt_text_from(path), making->prefix) &&
        (identity == NULL || !making->finds_folders))
        return true;
    if (identity != NULL || making->is_level)
        making->status = add_key(making->list, path, identity);
    else if (making->finds_folders)
        making->status = add_folder(making, path);
    return making->status == ZT_OK;
}

/* Walks a folder. A folder that does not exist has no keys. */
static enum zt_status walk(struct making *making, const char *folder, bool is_deep,
                           struct zt_error *error)
{
    enum zt_status status =
        making->store->ops->walk(making->store, folder, is_deep, take, making, error);

    if (status == ZT_NOT_FOUND)
        return ZT_OK;
    if (status != ZT_OK || making->status == ZT_OK)
        return status;
    if (making->status == ZT_LIMIT)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "more than %d keys begin with the prefix", KEYS_MAX);
    return zt_fail_memory(error, "a list of keys");
}

/* Walks the folders that the prefix's folder has and that begin with the prefix, as "a/b1" and
 * "a/b2" do for "a/b", and takes the files beside them. */
static enum zt_status walk_fitting(struct making *making, const char *folder,
                                   struct zt_error *error)
{
    enum zt_status status;

    assert(!making->is_level && making->folder_count == 0);
    making->finds_folders = true;
    status = walk(making, folder, false, error);
    making->finds_folders = false;
    if (status == ZT_OK && store_may_wait(making->store) && making->folder_count > WALKS_MAX)
        return walk(making, folder, true, error);
    for (size_t i = 0; i < making->folder_count && status == ZT_OK; i++)
        status = walk(making, making->folders[i], true, error);
    return status;
}

static void free_folders(struct making *making)
{
    for (size_t i = 0; i < making->folder_count; i++)
        free(making->folders[i]);
    free(making->folders);
}

/* Returns the length of the folder's path in a prefix. */
static size_t folder_length(struct zt_text prefix)
{
    const char *slash = prefix.length > 0 ? memrchr(prefix.bytes, '/', prefix.length) : NULL;

    return slash != NULL ? (size_t)(slash - prefix.bytes) : 0;
}

/* Returns the text that determines what a list contains: for one level, only the folder. */
static struct zt_text extent_of(const struct s3api_key_lookup *lookup)
{
    return (struct zt_text){lookup->prefix.bytes, lookup->is_level ? folder_length(lookup->prefix)
                                                                   : lookup->prefix.length};
}

/* Returns true if no key can begin with the text. */
static bool is_impossible(struct zt_text text)
{
    return text.length >= MODEL_PATH_SIZE ||
           (text.length > 0 &&
            (text.bytes[0] == '/' || memchr(text.bytes, '\0', text.length) != NULL));
}

static enum zt_status walk_extent(struct making *making, const struct s3api_key_lookup *lookup,
                                  struct zt_error *error)
{
    const size_t length = folder_length(making->prefix);
    char folder[MODEL_PATH_SIZE];

    if (is_impossible(extent_of(lookup)))
        return ZT_OK;
    assert(length < sizeof(folder));
    if (length > 0)
        memcpy(folder, making->prefix.bytes, length);
    folder[length] = '\0';
    if (making->is_level || making->prefix.length <= length + 1)
        return walk(making, folder, !making->is_level, error);
    return walk_fitting(making, folder, error);
}

/* The latest of several versions of a key comes first. */
static int compare(const void *a, const void *b)
{
    const struct s3api_key *left = a;
    const struct s3api_key *right = b;
    const int order = strcmp(left->text, right->text);

    return order != 0 ? order
                      : (left->identity.modified_ns < right->identity.modified_ns) -
                            (left->identity.modified_ns > right->identity.modified_ns);
}

/* A bucket's list may contain a key twice while it changes. */
static void sort(struct s3api_key_list *list)
{
    size_t used = 0;

    if (list->count > 1)
        qsort(list->keys, list->count, sizeof(*list->keys), compare);
    for (size_t i = 0; i < list->count; i++)
        if (used == 0 || strcmp(list->keys[used - 1].text, list->keys[i].text) != 0)
            list->keys[used++] = list->keys[i];
    list->count = used;
    zt_array_trim(&list->keys, &list->capacity, list->count, sizeof(*list->keys));
}

static enum zt_status make(struct server *server, const struct s3api_key_lookup *lookup,
                           struct s3api_key_list *list, struct zt_error *error)
{
    struct making making = {.store = server->store,
                            .list = list,
                            .prefix = lookup->prefix,
                            .is_level = lookup->is_level};
    enum zt_status status;

    assert(list->keys == NULL && list->count == 0);
    zt_arena_init(&list->texts, TEXTS_BUDGET);
    list->begun_ms = clock_ms();
    list->changes = atomic_load(&server->files_changed);
    status = walk_extent(&making, lookup, error);
    free_folders(&making);
    sort(list);
    list->cost_ms = clock_ms() - list->begun_ms;
    return status;
}

/* --- keeping lists --- */

static void free_list(void *value)
{
    struct s3api_key_list *list = value;

    free(list->keys);
    zt_arena_free(&list->texts);
}

struct memo *s3api_key_lists_new(void)
{
    const struct memo_rules rules = {.value_bytes = sizeof(struct s3api_key_list),
                                     .free_value = free_list,
                                     .most = {KEPT_BYTES_MAX, KEPT_LISTS_MAX},
                                     .keeps_newest = true};

    return memo_new(&rules);
}

static bool is_old(void *context, const void *value, bool is_held)
{
    const struct s3api_key_list *list = value;

    return !is_held && *(const int64_t *)context - list->begun_ms > KEPT_MS;
}

static struct memo_charge charge_of(const struct s3api_key_list *list)
{
    return (struct memo_charge){
        list->capacity * sizeof(*list->keys) + list->texts.held_bytes + sizeof(*list), 1};
}

/* Returns true if the list is recent enough for the request. A list that was begun after the
 * request arrived always is. */
static bool is_fresh(const struct s3api_key_list *list, const struct s3api_key_lookup *lookup)
{
    const int64_t age_ms = lookup->begun_ms - list->begun_ms;
    const bool is_slow = list->cost_ms >= SLOW_MS;

    if (lookup->is_continued && is_slow)
        return age_ms <= COST_MULTIPLE * list->cost_ms;
    return age_ms <= FRESH_MS && (int)(list->changes - lookup->changes) >= 0;
}

/* Returns the list for a lookup, made or not; NULL if out of memory. */
static struct s3api_key_list *hold(struct memo *memo, const struct s3api_key_lookup *lookup)
{
    const struct zt_text extent = extent_of(lookup);
    char *key = malloc(extent.length + 1);
    struct s3api_key_list *list;

    if (key == NULL)
        return NULL;
    key[0] = lookup->is_level ? 'L' : 'D';
    if (extent.length > 0)
        memcpy(key + 1, extent.bytes, extent.length);
    list = memo_hold(memo, (struct zt_text){key, extent.length + 1});
    free(key);
    return list;
}

void s3api_key_lookup_begin(struct server *server, struct zt_text prefix, bool is_level,
                            bool is_continued, struct s3api_key_lookup *out_lookup)
{
    *out_lookup = (struct s3api_key_lookup){.prefix = prefix,
                                            .is_level = is_level,
                                            .is_continued = is_continued,
                                            .begun_ms = clock_ms(),
                                            .changes = atomic_load(&server->files_changed)};
}

static bool make_here(struct server *server, struct s3api_key_lookup *lookup)
{
    struct s3api_key_list *list = lookup->list;
    const enum zt_status status = make(server, lookup, list, &lookup->error);
    int64_t now = list->begun_ms;

    memo_sweep(server->s3_lists, is_old, &now);
    if (status == ZT_OK)
        memo_done(list, charge_of(list));
    else
        memo_fail(list, &lookup->error, MEMO_NOT_KEPT, 0);
    memo_release(list);
    if (status != ZT_OK)
        s3api_key_lookup_end(lookup);
    return status == ZT_OK;
}

bool s3api_key_lookup_run(struct server *server, struct s3api_key_lookup *lookup)
{
    assert(lookup->list == NULL || lookup->is_busy);
    lookup->is_busy = false;
    for (;;) {
        if (lookup->list == NULL)
            lookup->list = hold(server->s3_lists, lookup);
        if (lookup->list == NULL) {
            zt_fail_memory(&lookup->error, "a list of keys");
            return false;
        }
        switch (memo_ask(lookup->list, 1, NULL, &lookup->error)) {
        case MEMO_MAKE:
            return make_here(server, lookup);
        case MEMO_PENDING:
            lookup->is_busy = true;
            return false;
        case MEMO_FAILED:
            s3api_key_lookup_end(lookup);
            return false;
        case MEMO_READY:
            break;
        }
        if (is_fresh(lookup->list, lookup))
            return true;
        memo_drop(lookup->list);
        s3api_key_lookup_end(lookup);
    }
}

bool s3api_key_lookup_wait(struct s3api_key_lookup *lookup, struct waiter *waiter)
{
    assert(lookup->is_busy && lookup->list != NULL);
    return memo_ask(lookup->list, 1, waiter, NULL) == MEMO_PENDING;
}

void s3api_key_lookup_end(struct s3api_key_lookup *lookup)
{
    memo_release(lookup->list);
    lookup->list = NULL;
}
