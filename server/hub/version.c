/* Makes a version from a listing: etags, commits, and the names from a Hub client's cache. */
#include "hub/version.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/server.h"
#include "digests/file_hashes.h"
#include "hub/pointer.h"
#include "hub/version_views.h"
#include "store/versions/commit_id.h"
#include "tree/tree_listing.h"
#include "views/model_view.h"
#include "views/view_digest.h"
#include "zt/digest.h"

/* Limits of hashing for a request. Small: done at once, so that a folder of settings has its final
 * commit in the first response. Large: done on a worker that may take long. It takes half a second,
 * or a few seconds on a slow disk, and clients wait for ten. */
static const struct hash_limits {
    uint64_t file_bytes;
    uint64_t total_bytes;
} small_limits = {1 << 20, 32 << 20}, large_limits = {64 << 20, 256 << 20}, no_limits = {0, 0};

/* "v", 32 hex digits and NUL. */
#define TAG_SIZE 34

/* --- commits --- */

/* Identifies a file without reading it. The device is left out, because replicas have different
 * ones; the rest may also differ in a copy, but there is nothing better before the bytes are
 * read. */
static void write_tag(const struct file_identity *identity, char out_tag[TAG_SIZE])
{
    const uint64_t words[] = {identity->size_bytes, (uint64_t)identity->modified_ns,
                              (uint64_t)identity->changed_ns, identity->inode};
    uint64_t hash[2];

    zt_xxh3_128(words, sizeof(words), hash);
    snprintf(out_tag, TAG_SIZE, "v%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
}

/* Writes the text that represents a file's bytes: its etag if by_content, otherwise a tag. */
static void write_text(const struct hub_version *version, const struct hub_file *file,
                       bool by_content, char out_text[VIEW_TEXT_SIZE])
{
    const struct hub_file *source = file;
    char text[HUB_ETAG_SIZE];

    if (file->view != NULL)
        source =
            hub_version_find(version, zt_text_from(file->view->path + strlen(version->folder) + 1));
    assert(source != NULL && source->view == NULL);
    if (by_content)
        strcpy(text, source->etag);
    else
        write_tag(&source->identity, text);
    if (file->view != NULL)
        view_text(file->view, file->part, text, out_text);
    else
        strcpy(out_text, text);
}

/* Whose names a commit consists of. */
enum named { NAMED_ALL, NAMED_STORED, NAMED_VIEWS };

static bool is_named(const struct hub_file *file, enum named named)
{
    return named == NAMED_ALL || (named == NAMED_VIEWS) == (file->view != NULL);
}

/* before: a text that precedes the files' names. */
static enum zt_status name_files(const struct hub_version *version, enum named named,
                                 bool by_content, const char *before,
                                 char out_commit[HUB_COMMIT_SIZE], struct zt_error *error)
{
    struct zt_hasher *hasher;

    if (zt_hasher_new(ZT_DIGEST_SHA1, &hasher) != ZT_OK)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a commit");
    zt_hasher_update(hasher, before, strlen(before));
    for (size_t i = 0; i < version->count; i++) {
        const struct hub_file *file = &version->files[i];
        char text[VIEW_TEXT_SIZE];

        assert(file->path != NULL);
        if (!is_named(file, named))
            continue;
        write_text(version, file, by_content, text);
        commit_id_add(hasher, file->path, text);
    }
    commit_id_finish(hasher, out_commit);
    return ZT_OK;
}

static bool has_views(const struct hub_version *version)
{
    size_t i = 0;

    while (i < version->count && version->files[i].view == NULL)
        i++;
    return i < version->count;
}

/* Names a version by its content. */
static enum zt_status name_content(struct hub_version *version, struct zt_error *error)
{
    char whole[HUB_COMMIT_SIZE];
    enum zt_status status = name_files(version, NAMED_STORED, true, "", version->stored, error);

    if (status != ZT_OK)
        return status;
    strcpy(version->commit, version->stored);
    if (!has_views(version))
        return ZT_OK;
    status = name_files(version, NAMED_VIEWS, true, version->stored, whole, error);
    assert(strlen(version->stored) > HUB_STORED_DIGITS);
    if (status == ZT_OK)
        memcpy(version->commit + HUB_STORED_DIGITS, whole, HUB_COMMIT_SIZE - 1 - HUB_STORED_DIGITS);
    return status;
}

static enum zt_status name_version(struct hub_version *version, const char *stated,
                                   struct zt_error *error)
{
    enum zt_status status;

    for (size_t i = 0; i < version->count; i++)
        if (version->files[i].view == NULL && !version->files[i].has_sha256 &&
            !version->files[i].is_git)
            version->is_provisional = true;
    status = name_files(version, NAMED_ALL, false, "", version->provisional, error);
    if (status != ZT_OK)
        return status;
    if (stated != NULL) {
        assert(strlen(stated) < sizeof(version->commit));
        strcpy(version->commit, stated);
        if (version->is_kept)
            strcpy(version->stored, stated);
        version->is_provisional = false;
        return ZT_OK;
    }
    if (!version->is_provisional)
        return name_content(version, error);
    strcpy(version->commit, version->provisional);
    return ZT_OK;
}

/* --- etags --- */

/* The names of the blobs in a Hub client's cache. Snapshots link to blobs; a blob is found by the
 * file that both lead to. */
struct blobs {
    const struct tree_entry **entries; /* sorted by inode */
    size_t count;
};

static int compare_inodes(const void *a, const void *b)
{
    const struct tree_entry *first = *(const struct tree_entry *const *)a;
    const struct tree_entry *second = *(const struct tree_entry *const *)b;

    return (first->identity.inode > second->identity.inode) -
           (first->identity.inode < second->identity.inode);
}

/* Returns false if out of memory. */
static bool sort_blobs(const struct tree_listing *listing, struct blobs *out_blobs)
{
    *out_blobs = (struct blobs){.count = 0};
    if (listing == NULL || listing->count == 0)
        return true;
    out_blobs->entries = malloc(listing->count * sizeof(*out_blobs->entries));
    if (out_blobs->entries == NULL)
        return false;
    for (size_t i = 0; i < listing->count; i++)
        if (!listing->entries[i].is_folder)
            out_blobs->entries[out_blobs->count++] = &listing->entries[i];
    qsort(out_blobs->entries, out_blobs->count, sizeof(*out_blobs->entries), compare_inodes);
    return true;
}

static const char *find_blob(const struct blobs *blobs, const struct file_identity *identity)
{
    const struct tree_entry key = {.identity = *identity};
    const struct tree_entry *of_key = &key;
    const struct tree_entry **found;

    if (blobs->count == 0)
        return NULL;
    found = bsearch(&of_key, blobs->entries, blobs->count, sizeof(of_key), compare_inodes);
    return found != NULL && store_identity_equal(&(*found)->identity, identity) ? (*found)->path
                                                                                : NULL;
}

/* A computed hash is preferred to the name in a cache. */
static void name_file(struct hub_file *file, const char *blob)
{
    if (!file->has_sha256 && blob != NULL &&
        zt_hex_read_lower(zt_text_from(blob), file->sha256, sizeof(file->sha256)))
        file->has_sha256 = file->is_stated = true;
    if (file->has_sha256) {
        zt_hex_write(file->etag, file->sha256, sizeof(file->sha256));
    } else if (blob != NULL && zt_hex_is_lower(zt_text_from(blob), HUB_COMMIT_SIZE - 1)) {
        file->is_git = true;
        strcpy(file->etag, blob);
    } else {
        write_tag(&file->identity, file->etag);
    }
}

/* Until the SHA-256 of a view is known, its etag is a hash of the text that represents it. */
static void name_views(struct hub_version *version)
{
    for (size_t i = 0; i < version->count; i++) {
        struct hub_file *file = &version->files[i];
        char text[VIEW_TEXT_SIZE];
        uint64_t hash[2];

        if (file->view == NULL)
            continue;
        if (file->has_sha256) {
            zt_hex_write(file->etag, file->sha256, sizeof(file->sha256));
            continue;
        }
        write_text(version, file, false, text);
        zt_xxh3_128(text, strlen(text), hash);
        snprintf(file->etag, sizeof(file->etag), "v%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
    }
}

/* --- the files --- */

/* Hashes a file within the limits, and reduces them. Returns false if the file has changed since it
 * was listed. */
static bool hash_file(struct server *server, const struct tree_entry *entry, const char *path,
                      struct hash_limits *left, struct hub_file *file)
{
    const uint64_t size = entry->identity.size_bytes;
    struct zt_error error;
    enum zt_status status;

    if (file->has_sha256 || left->total_bytes == 0 || size > left->file_bytes ||
        size > left->total_bytes)
        return true;
    left->total_bytes -= size;
    status = file_hashes_compute(server->hashes, path, &entry->identity, file->sha256, &error);
    file->has_sha256 = status == ZT_OK;
    return status != ZT_STALE && status != ZT_NOT_FOUND;
}

static size_t file_count(const struct tree_listing *listing, size_t *out_bytes)
{
    size_t count = 0;

    *out_bytes = 0;
    for (size_t i = 0; i < listing->count; i++) {
        count += !listing->entries[i].is_folder;
        *out_bytes += strlen(listing->entries[i].path) + 1;
    }
    return count;
}

static void add_file(struct hub_version *version, const struct tree_entry *entry, char **paths)
{
    const size_t size = strlen(entry->path) + 1;
    struct hub_file *file = &version->files[version->count++];

    memcpy(*paths, entry->path, size);
    *file = (struct hub_file){
        .path = *paths, .identity = entry->identity, .has_sha256 = entry->has_sha256};
    memcpy(file->sha256, entry->sha256, sizeof(file->sha256));
    *paths += size;
    version->size_bytes += entry->identity.size_bytes;
    if (entry->identity.modified_ns > version->modified_ns)
        version->modified_ns = entry->identity.modified_ns;
}

static bool write_path(const struct hub_version *version, const struct hub_file *file,
                       char out_path[MODEL_PATH_SIZE])
{
    return snprintf(out_path, MODEL_PATH_SIZE, "%s/%s", version->folder, file->path) <
           MODEL_PATH_SIZE;
}

/* Names a file that the server hashes unless a blob names it. */
static void name_stored(struct server *server, struct hub_version *version,
                        const struct tree_entry *entry, const char *blob, struct hash_limits *left)
{
    struct hub_file *file = &version->files[version->count - 1];
    char path[MODEL_PATH_SIZE];

    if (blob == NULL && write_path(version, file, path) &&
        !hash_file(server, entry, path, left, file))
        version->is_outdated = true;
    name_file(file, blob);
}

/* Names a mirrored file as its upstream does: by SHA-256, which stands for LFS, or as git does. Our
 * own hash is not used, because clients compare the name with the upstream's. */
static void name_mirrored(struct server *server, const struct hub_version *version,
                          struct hub_file *file)
{
    struct store_stated stated = {.has_sha256 = false};
    char path[MODEL_PATH_SIZE];

    file->has_sha256 = file->is_stated = false;
    if (write_path(version, file, path))
        (void)store_state(server->store, path, &file->identity, &stated);
    if (stated.has_sha256) {
        file->has_sha256 = file->is_stated = true;
        memcpy(file->sha256, stated.sha256, sizeof(file->sha256));
        zt_hex_write(file->etag, file->sha256, sizeof(file->sha256));
    } else if (stated.has_git_sha1) {
        file->is_git = true;
        zt_hex_write(file->etag, stated.git_sha1, sizeof(stated.git_sha1));
    } else {
        write_tag(&file->identity, file->etag);
    }
}

/* Fills the version from a listing. left: limits of hashing. Returns false if out of memory. */
static bool fill(struct server *server, struct hub_version *version,
                 const struct tree_listing *listing, const struct blobs *blobs,
                 struct hash_limits left)
{
    size_t bytes;
    const size_t count = file_count(listing, &bytes);
    char *paths;

    version->files = calloc(count + 1, sizeof(*version->files));
    paths = version->paths = malloc(bytes + 1);
    if (version->files == NULL || paths == NULL)
        return false;
    for (size_t i = 0; i < listing->count; i++) {
        const struct tree_entry *entry = &listing->entries[i];

        if (entry->is_folder) {
            version->has_folders = true;
            continue;
        }
        assert(version->count < count);
        add_file(version, entry, &paths);
        if (version->is_mirrored)
            name_mirrored(server, version, &version->files[version->count - 1]);
        else
            name_stored(server, version, entry, find_blob(blobs, &entry->identity), &left);
    }
    assert(version->count == count && paths <= version->paths + bytes);
    return true;
}

/* Returns true if hashing the rest would make the commit final, and takes no longer than clients
 * wait. */
static bool can_be_final(const struct hub_version *version)
{
    struct hash_limits left = large_limits;

    if (!version->is_provisional)
        return false;
    for (size_t i = 0; i < version->count; i++) {
        const struct hub_file *file = &version->files[i];
        const uint64_t size = file->identity.size_bytes;

        if (file->view != NULL || file->has_sha256 || file->is_git)
            continue;
        if (size > left.file_bytes || size > left.total_bytes)
            return false;
        left.total_bytes -= size;
    }
    return true;
}

/* Makes a version without files. Returns NULL if out of memory. */
static struct hub_version *new_version(const struct hub_listing *wanted)
{
    struct hub_version *version = calloc(1, sizeof(*version));

    if (version == NULL)
        return NULL;
    atomic_init(&version->references, 1);
    version->folder = strdup(wanted->folder);
    version->is_stated = wanted->commit != NULL;
    version->is_mirrored = wanted->is_mirrored;
    version->is_kept = wanted->is_kept;
    version->listed_ms = clock_ms();
    if (version->folder != NULL)
        return version;
    free(version);
    return NULL;
}

static bool stop_at_first(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    return false;
}

enum zt_status hub_folder_check(struct server *server, const char *folder, struct zt_error *error)
{
    return server->store->ops->walk(server->store, folder, false, stop_at_first, NULL, error);
}

enum zt_status hub_version_make_empty(const char *folder, struct hub_version **out_version,
                                      struct zt_error *error)
{
    struct hub_version *version = new_version(&(struct hub_listing){.folder = folder});
    enum zt_status status;

    if (version == NULL)
        return zt_fail_memory(error, "a repository");
    status = name_version(version, NULL, error);
    if (status == ZT_OK)
        *out_version = version;
    else
        hub_version_release(version);
    return status;
}

static enum zt_status add_files(struct server *server, const struct hub_listing *wanted,
                                struct hash_limits limits, struct hub_version *version,
                                struct zt_error *error)
{
    struct tree_listing *listing = NULL;
    struct tree_listing *contents = NULL;
    struct blobs blobs = {.count = 0};
    enum zt_status status;

    status = tree_list(server, wanted->folder, true, wanted->commit == NULL, &listing, error);
    if (status == ZT_OK && wanted->blobs != NULL)
        status = tree_list(server, wanted->blobs, false, false, &contents, error);
    if (status == ZT_NOT_FOUND && listing != NULL)
        status = ZT_OK; /* Without blobs, files have no stated hashes. */
    if (status == ZT_OK &&
        (!sort_blobs(contents, &blobs) || !fill(server, version, listing, &blobs, limits)))
        status = zt_fail_memory(error, "a repository");
    tree_listing_release(listing);
    tree_listing_release(contents);
    free(blobs.entries);
    return status;
}

static enum zt_status make(struct server *server, const struct hub_listing *wanted,
                           struct hash_limits limits, struct hub_version **out_version,
                           struct zt_error *error)
{
    struct hub_version *version = new_version(wanted);
    enum zt_status status;

    *out_version = NULL;
    if (version == NULL)
        return zt_fail_memory(error, "a repository");
    status = add_files(server, wanted, limits, version, error);
    if (status == ZT_OK && wanted->commit == NULL && server->config->hub.views &&
        !version_views_add(server, version, wanted->previous))
        status = zt_fail_memory(error, "views");
    if (status == ZT_OK) {
        name_views(version);
        status = name_version(version, wanted->commit, error);
    }
    if (status != ZT_OK) {
        hub_version_release(version);
        return status;
    }
    version->can_be_final = !wanted->may_take_long &&
                            store_has_locally(server->store, zt_text_from(wanted->folder)) &&
                            can_be_final(version);
    *out_version = version;
    return ZT_OK;
}

/* If a file changed while it was hashed, lists again without hashing: a file that changes
 * continuously would change again, and the version must contain files that exist. */
enum zt_status hub_version_make(struct server *server, const struct hub_listing *wanted,
                                struct hub_version **out_version, struct zt_error *error)
{
    const struct hash_limits limits = wanted->may_take_long ? large_limits : small_limits;
    enum zt_status status = make(server, wanted, limits, out_version, error);

    if (status != ZT_OK || !(*out_version)->is_outdated)
        return status;
    hub_version_release(*out_version);
    return make(server, wanted, no_limits, out_version, error);
}

/* --- life --- */

struct hub_version *hub_version_hold(struct hub_version *version)
{
    atomic_fetch_add(&version->references, 1);
    return version;
}

void hub_version_release(void *thing)
{
    struct hub_version *version = thing;

    if (version == NULL || atomic_fetch_sub(&version->references, 1) > 1)
        return;
    version_views_free(version);
    free(version->files);
    free(version->paths);
    free(version->folder);
    free(version);
}

/* --- looking up --- */

bool hub_version_is(const struct hub_version *version, struct zt_text commit)
{
    return zt_text_is(commit, version->commit) || zt_text_is(commit, version->provisional);
}

size_t hub_version_lower_bound(const struct hub_version *version, struct zt_text path)
{
    size_t low = 0;
    size_t high = version->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (zt_text_compare(zt_text_from(version->files[middle].path), path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == high);
    return low;
}

const struct hub_file *hub_version_find(const struct hub_version *version, struct zt_text path)
{
    const size_t at = hub_version_lower_bound(version, path);

    return at < version->count && zt_text_is(path, version->files[at].path) ? &version->files[at]
                                                                            : NULL;
}

void hub_file_oid(const struct hub_file *file, char out_oid[HUB_COMMIT_SIZE], size_t *out_length)
{
    char pointer[HUB_POINTER_SIZE];
    char text[sizeof(pointer) + 32];
    struct zt_hasher *hasher;
    int length;

    *out_length = 0;
    if (file->is_git) {
        memcpy(out_oid, file->etag, HUB_COMMIT_SIZE);
        return;
    }
    length = (int)hub_pointer_print(file, pointer);
    if (file->has_sha256)
        *out_length = (size_t)length;
    /* Git hashes a file's kind, its length, NUL, and its bytes. */
    length = snprintf(text, sizeof(text), "blob %d%c%s", length, 0, pointer);
    assert(length > 0 && (size_t)length < sizeof(text));
    memset(out_oid, '0', HUB_COMMIT_SIZE - 1);
    out_oid[HUB_COMMIT_SIZE - 1] = '\0';
    if (zt_hasher_new(ZT_DIGEST_SHA1, &hasher) != ZT_OK)
        return;
    zt_hasher_update(hasher, text, (size_t)length);
    commit_id_finish(hasher, out_oid);
}
