/* The files of commits: one file for each identity, and those in memory. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/memo.h"
#include "base/memory.h"
#include "base/thread.h"
#include "store/store_path.h"
#include "store/versions/commit_id.h"
#include "store/versions/history_inside.h"

#define MAGIC       "zttree1\n"
#define MAGIC_BYTES 8u
/* The length of a file in a tree, without its path: the path's length, SHA-256, size, time. */
#define FILE_BYTES 52u
/* The limit for trees without users. */
#define TREES_BYTES ((uint64_t)64 << 20)

struct tree {
    struct history_tree tree; /* first: history_tree_release */
    struct history_file *files;
    size_t capacity;
    char *paths;
};

/* "repos/", a key, "/trees", perhaps the name of a file, and NUL. */
#define NAME_SIZE (HISTORY_KEY_SIZE + NAME_MAX + 16)

/* commit: also another file of the folder; NULL: the folder. */
static void write_name(const char *key, const char *commit, char out_name[NAME_SIZE])
{
    assert(strlen(key) == HISTORY_KEY_SIZE - 1);
    snprintf(out_name, NAME_SIZE, HISTORY_REPOS "/%s/trees%s%s", key, commit != NULL ? "/" : "",
             commit != NULL ? commit : "");
}

/* --- in the place --- */

enum zt_status history_files_check(const struct history_file *files, size_t count,
                                   struct zt_error *error)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        if (!store_path_is_clean(files[i].path) ||
            (i > 0 && strcmp(files[i - 1].path, files[i].path) >= 0))
            return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                           "the files of a commit are not sorted, or have unusable paths");
        bytes += FILE_BYTES + strlen(files[i].path);
    }
    if (bytes > HISTORY_FILE_BYTES / 2)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "a commit has too many files");
    return ZT_OK;
}

enum zt_status history_tree_write(struct history *history, const char *key, const char *commit,
                                  const struct history_file *files, size_t count,
                                  struct zt_error *error)
{
    struct record_writer image = {.limit_bytes = HISTORY_FILE_BYTES};
    struct history_place *place = history->place;
    struct history_text text;
    char name[NAME_SIZE];
    enum zt_status status;

    assert(strlen(commit) == HISTORY_COMMIT_SIZE - 1);
    write_name(key, commit, name);
    record_write_bytes(&image, MAGIC, MAGIC_BYTES);
    record_write_uint(&image, count, 8);
    for (size_t i = 0; i < count; i++) {
        record_write_text(&image, files[i].path);
        record_write_bytes(&image, files[i].sha256, sizeof(files[i].sha256));
        record_write_uint(&image, files[i].size_bytes, 8);
        record_write_uint(&image, (uint64_t)files[i].modified_ns, 8);
    }
    record_write_hash(&image, 0);
    text = (struct history_text){.bytes = image.bytes, .length = image.length};
    status = image.failed ? zt_fail_memory(error, "a commit")
                          : place->ops->write(place, name, &text, NULL, error);
    record_writer_free(&image);
    return status;
}

static bool read_path(struct record_reader *reader, char out_path[STORE_PATH_SIZE])
{
    const uint64_t length = record_read_uint(reader, 4);
    const uint8_t *bytes =
        length < STORE_PATH_SIZE ? record_read_bytes(reader, (size_t)length) : NULL;

    if (bytes == NULL || memchr(bytes, 0, (size_t)length) != NULL)
        return false;
    memcpy(out_path, bytes, (size_t)length);
    out_path[length] = '\0';
    return store_path_is_clean(out_path);
}

typedef enum zt_status (*visit_file)(void *context, const struct history_file *file);

/* Visits the files up to the first that is wrong. Returns ZT_CORRUPT then. */
static enum zt_status visit_files(struct record_reader *reader, struct zt_hasher *hasher,
                                  visit_file visit, void *context)
{
    const uint8_t *magic = record_read_bytes(reader, MAGIC_BYTES);
    const uint64_t count = record_read_uint(reader, 8);
    char paths[2][STORE_PATH_SIZE] = {"", ""};
    enum zt_status status = ZT_OK;

    if (reader->failed || memcmp(magic, MAGIC, MAGIC_BYTES) != 0 ||
        count > reader->left / FILE_BYTES)
        return ZT_CORRUPT;
    for (uint64_t i = 0; i < count && status == ZT_OK; i++) {
        char *path = paths[i % 2];
        struct history_file file = {.path = path};
        char text[2 * HISTORY_SHA256_BYTES + 1];
        const bool has_path = read_path(reader, path);
        const uint8_t *sha256 = record_read_bytes(reader, sizeof(file.sha256));

        file.size_bytes = record_read_uint(reader, 8);
        file.modified_ns = (int64_t)record_read_uint(reader, 8);
        if (!has_path || reader->failed || (i > 0 && strcmp(paths[(i + 1) % 2], path) >= 0))
            return ZT_CORRUPT;
        memcpy(file.sha256, sha256, sizeof(file.sha256));
        zt_hex_write(text, sha256, sizeof(file.sha256));
        commit_id_add(hasher, path, text);
        status = visit(context, &file);
    }
    return status == ZT_OK && reader->left > 0 ? ZT_CORRUPT : status;
}

/* Returns ZT_CORRUPT also for the list of another commit. */
static enum zt_status visit_text(const struct history_text *text, const char *commit,
                                 visit_file visit, void *context)
{
    struct record_reader reader = record_reader_checked(text->bytes, text->length);
    char id[HISTORY_COMMIT_SIZE];
    struct zt_hasher *hasher;
    enum zt_status status;

    if (reader.failed)
        return ZT_CORRUPT;
    if (zt_hasher_new(ZT_DIGEST_SHA1, &hasher) != ZT_OK)
        return ZT_NO_MEMORY;
    status = visit_files(&reader, hasher, visit, context);
    commit_id_finish(hasher, id);
    return status == ZT_OK && strcmp(id, commit) != 0 ? ZT_CORRUPT : status;
}

enum zt_status history_tree_visit(struct history *history, const char *key, const char *commit,
                                  visit_file visit, void *context, struct zt_error *error)
{
    struct history_place *place = history->place;
    struct history_text text;
    char name[NAME_SIZE];
    enum zt_status status = ZT_NOT_FOUND;

    assert(strlen(commit) == HISTORY_COMMIT_SIZE - 1);
    write_name(key, commit, name);
    if (!place->is_missing)
        status = place->ops->read(place, name, NULL, HISTORY_FILE_BYTES, &text, error);
    if (status == ZT_NOT_FOUND)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the list of files is missing");
    if (status != ZT_OK)
        return status;
    status = visit_text(&text, commit, visit, context);
    free(text.bytes);
    if (status == ZT_CORRUPT)
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                       "the list of files of a commit is damaged");
    return status == ZT_NO_MEMORY ? zt_fail_memory(error, "a commit") : status;
}

/* --- in memory --- */

static void free_tree(void *value)
{
    struct tree *tree = value;

    assert(tree->tree.count <= tree->capacity);
    free(tree->files);
    free(tree->paths);
}

struct memo *history_trees_new(void)
{
    return memo_new(&(struct memo_rules){
        .value_bytes = sizeof(struct tree),
        .free_value = free_tree,
        .most = {.bytes = TREES_BYTES, .count = SIZE_MAX},
    });
}

/* Paths are put one after another. Their addresses are only known after the last. */
struct building {
    struct tree *tree;
    size_t length;
    size_t capacity;
};

static enum zt_status add_file(void *context, const struct history_file *file)
{
    struct building *building = context;
    struct tree *tree = building->tree;
    const size_t size = strlen(file->path) + 1;

    assert(building->length <= building->capacity);
    if (zt_array_reserve(&tree->files, &tree->capacity, tree->tree.count + 1, sizeof(*tree->files),
                         SIZE_MAX) != ZT_OK ||
        zt_array_reserve(&tree->paths, &building->capacity, building->length + size, 1, SIZE_MAX) !=
            ZT_OK)
        return ZT_NO_MEMORY;
    memcpy(tree->paths + building->length, file->path, size);
    building->length += size;
    tree->files[tree->tree.count] = *file;
    tree->files[tree->tree.count++].path = NULL;
    tree->tree.size_bytes += file->size_bytes;
    return ZT_OK;
}

static enum zt_status build(struct history *history, const char *key, const char *commit,
                            struct building *building, struct zt_error *error)
{
    struct tree *tree = building->tree;
    const enum zt_status status =
        history_tree_visit(history, key, commit, add_file, building, error);
    const char *path = tree->paths;

    if (status != ZT_OK)
        return status;
    for (size_t i = 0; i < tree->tree.count; i++) {
        tree->files[i].path = path;
        path += strlen(path) + 1;
    }
    assert(tree->tree.count == 0 || path == tree->paths + building->length);
    tree->tree.files = tree->files;
    return ZT_OK;
}

static enum zt_status make_tree(struct history *history, const char *key, const char *commit,
                                struct tree *tree, struct zt_error *error)
{
    struct building building = {.tree = tree};
    enum zt_status status = build(history, key, commit, &building, error);

    if (status == ZT_OK)
        memo_done(tree,
                  (struct memo_charge){
                      sizeof(*tree) + building.length + tree->capacity * sizeof(*tree->files), 1});
    else
        memo_fail(tree, error, MEMO_NOT_KEPT, 0);
    return status;
}

/* Returns ZT_NOT_FOUND if no entry has this commit. */
static enum zt_status find_commit(struct history *history, const struct history_repo *repo,
                                  const char *commit, char out_key[HISTORY_KEY_SIZE],
                                  struct zt_error *error)
{
    uint8_t id[HISTORY_SHA1_BYTES];
    struct log *log;
    enum zt_status status;
    bool is_kept;

    if (!zt_hex_read_lower(zt_text_from(commit), id, sizeof(id)))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "this is not a commit");
    status = log_begin(history, repo, &log, error);
    if (status != ZT_OK)
        return status;
    is_kept = log_state_commit(&log->state, id) != NULL ||
              (log_look_again(history, log) && log_state_commit(&log->state, id) != NULL);
    strcpy(out_key, log->file.key);
    assert(strlen(out_key) == HISTORY_KEY_SIZE - 1);
    log_end(history, log);
    return is_kept ? ZT_OK
                   : zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such commit");
}

static enum zt_status get(struct history *history, const char *key, const char *commit,
                          const struct history_tree **out_tree, struct zt_error *error)
{
    char name[HISTORY_KEY_SIZE + HISTORY_COMMIT_SIZE];
    struct tree *tree;
    enum zt_status status = ZT_OK;

    assert(strlen(key) == HISTORY_KEY_SIZE - 1);
    assert(strlen(commit) == HISTORY_COMMIT_SIZE - 1);
    snprintf(name, sizeof(name), "%s/%s", key, commit);
    if (history->place->is_shared && !thread_may_wait()) {
        tree = memo_find(history->trees, zt_text_from(name));
        if (tree == NULL)
            return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                           "the files of the commit have not been read yet");
        *out_tree = &tree->tree;
        return ZT_OK;
    }
    tree = memo_hold(history->trees, zt_text_from(name));
    if (tree == NULL)
        return zt_fail_memory(error, "a commit");
    switch (memo_get(tree, 1, error)) {
    case MEMO_READY:
        break;
    case MEMO_MAKE:
        status = make_tree(history, key, commit, tree, error);
        memo_release(tree);
        break;
    default:
        status = error->status;
    }
    if (status == ZT_OK)
        *out_tree = &tree->tree;
    else
        memo_release(tree);
    return status;
}

enum zt_status history_tree_get(struct history *history, const struct history_repo *repo,
                                const char *commit, const struct history_tree **out_tree,
                                struct zt_error *error)
{
    struct zt_error own;
    char key[HISTORY_KEY_SIZE];
    enum zt_status status;

    error = error != NULL ? error : &own;
    status = find_commit(history, repo, commit, key, error);
    if (status != ZT_OK)
        return status;
    status = get(history, key, commit, out_tree, error);
    /* It may have been forgotten in between, perhaps by another server. */
    if (status == ZT_NOT_FOUND && history->place->is_shared)
        (void)log_refresh(history, repo, NULL);
    if (status == ZT_NOT_FOUND && find_commit(history, repo, commit, key, error) == ZT_NOT_FOUND)
        return ZT_NOT_FOUND;
    if (status == ZT_NOT_FOUND || status == ZT_CORRUPT)
        status = zt_fail(error, ZT_IO, HISTORY_DAMAGED, ZT_NO_OFFSET,
                         "the list of files of commit %s is missing or damaged", commit);
    return status;
}

void history_tree_release(const struct history_tree *tree)
{
    memo_release((void *)(uintptr_t)tree);
}

const struct history_file *history_tree_find(const struct history_tree *tree, struct zt_text path)
{
    size_t low = 0;
    size_t high = tree->count;

    assert(high == 0 || tree->files != NULL);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = zt_text_compare(zt_text_from(tree->files[middle].path), path);

        if (order == 0)
            return &tree->files[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* --- removing --- */

struct sweep {
    struct history *history;
    const char *key;
    uint8_t (*ids)[HISTORY_SHA1_BYTES]; /* that the log has, sorted */
    size_t count;
    size_t unnamed; /* lists of files */
};

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, HISTORY_SHA1_BYTES);
}

/* Calls visit for each name in the folder of lists. Without memory, it returns ZT_NO_MEMORY. */
static enum zt_status visit_names(struct sweep *sweep, const struct log_state *state,
                                  bool (*visit)(void *context, const char *commit),
                                  struct zt_error *error)
{
    struct history_place *place = sweep->history->place;
    char folder[NAME_SIZE];
    enum zt_status status;

    sweep->count = state->count;
    sweep->ids = calloc(sweep->count + 1, sizeof(*sweep->ids));
    if (sweep->ids == NULL)
        return zt_fail_memory(error, "the commits of a repository");
    for (size_t i = 0; i < sweep->count; i++)
        memcpy(sweep->ids[i], state->entries[i].id, sizeof(sweep->ids[i]));
    qsort(sweep->ids, sweep->count, sizeof(*sweep->ids), compare_ids);
    write_name(sweep->key, NULL, folder);
    status = place->ops->list(place, folder, visit, sweep, error);
    free(sweep->ids);
    return status;
}

static bool is_named(const struct sweep *sweep, const uint8_t id[HISTORY_SHA1_BYTES])
{
    assert(sweep->ids != NULL);
    return sweep->count > 0 &&
           bsearch(id, sweep->ids, sweep->count, HISTORY_SHA1_BYTES, compare_ids) != NULL;
}

static bool remove_unnamed(void *context, const char *commit)
{
    const struct sweep *sweep = context;
    struct history_place *place = sweep->history->place;
    uint8_t id[HISTORY_SHA1_BYTES];
    char name[NAME_SIZE];

    if (zt_hex_read_lower(zt_text_from(commit), id, sizeof(id)) && is_named(sweep, id))
        return true;
    write_name(sweep->key, commit, name);
    place->ops->remove(place, name);
    return true;
}

/* Without memory, the next sweep removes them. Lists of commits that damage has hidden stay. */
void history_trees_sweep(struct history *history, const struct log *log)
{
    struct sweep sweep = {.history = history, .key = log->file.key};

    if (!history_has_damage(history, sweep.key))
        (void)visit_names(&sweep, &log->state, remove_unnamed, NULL);
}

static bool count_unnamed(void *context, const char *commit)
{
    struct sweep *sweep = context;
    uint8_t id[HISTORY_SHA1_BYTES];

    sweep->unnamed +=
        zt_hex_read_lower(zt_text_from(commit), id, sizeof(id)) && !is_named(sweep, id);
    return true;
}

enum zt_status history_trees_count_unnamed(struct history *history, const char *key,
                                           const struct log_state *state, size_t *out_count,
                                           struct zt_error *error)
{
    struct sweep sweep = {.history = history, .key = key};
    const enum zt_status status = visit_names(&sweep, state, count_unnamed, error);

    *out_count = sweep.unnamed;
    return status;
}

void history_tree_remove(struct history *history, const char *key, const char *commit)
{
    char name[NAME_SIZE];

    assert(strlen(commit) == HISTORY_COMMIT_SIZE - 1);
    write_name(key, commit, name);
    history->place->ops->remove(history->place, name);
}
