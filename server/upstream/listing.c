/* A list is accepted as a whole or not at all: one entry that makes no sense means that the other
 * side is not what it seems. Only names that this program cannot have are left out. */
#include "upstream/listing.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "input/date.h"
#include "input/json_read.h"
#include "zt/utf8.h"

#define CHUNK_BYTES ((size_t)65536)
/* Of a file system. */
#define PART_MOST 255

/* Memory of paths, which stay where they are. */
struct chunk {
    struct chunk *next;
    size_t used;
    char bytes[CHUNK_BYTES];
};

struct listing_memory {
    atomic_uint references;
    struct chunk *chunks;
};

struct listing_builder {
    bool has_oids;
    bool is_late;   /* a file has no digest yet */
    bool is_bucket; /* listing_add was called */
    struct upstream_file *files;
    size_t count;
    size_t capacity;
    size_t entries;
    size_t left_out;
    struct chunk *chunks;
};

static void free_chunks(struct chunk *chunk)
{
    while (chunk != NULL) {
        struct chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
}

static enum zt_status fail_senseless(struct zt_error *error, const char *what)
{
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                   "the upstream's list of files makes no sense: %s", what);
}

/* --- paths --- */

enum path_kind { PATH_GOOD, PATH_LEFT_OUT, PATH_BAD };

static enum path_kind judge_part(const char *part, size_t length)
{
    if (length == 0 || (length == 1 && part[0] == '.') ||
        (length == 2 && part[0] == '.' && part[1] == '.'))
        return PATH_BAD;
    return part[0] == '.' || length > PART_MOST ? PATH_LEFT_OUT : PATH_GOOD;
}

static enum path_kind judge_path(struct zt_text path)
{
    enum path_kind kind = path.length < UPSTREAM_PATH_SIZE ? PATH_GOOD : PATH_LEFT_OUT;
    size_t begin = 0;

    if (!zt_utf8_valid(path.bytes, path.length))
        return PATH_BAD;
    for (size_t i = 0; i <= path.length; i++) {
        enum path_kind part;

        if (i < path.length && ((unsigned char)path.bytes[i] < ' ' || path.bytes[i] == 0x7F))
            return PATH_BAD;
        if (i < path.length && path.bytes[i] != '/')
            continue;
        part = judge_part(path.bytes + begin, i - begin);
        if (part == PATH_BAD)
            return PATH_BAD;
        if (part == PATH_LEFT_OUT)
            kind = PATH_LEFT_OUT;
        begin = i + 1;
    }
    return kind;
}

/* NULL without memory. */
static const char *copy_text(struct listing_builder *builder, struct zt_text text)
{
    struct chunk *chunk = builder->chunks;
    char *copy;

    if (text.length == 0)
        return "";
    assert(text.length < CHUNK_BYTES);
    if (chunk == NULL || CHUNK_BYTES - chunk->used <= text.length) {
        chunk = malloc(sizeof(*chunk));
        if (chunk == NULL)
            return NULL;
        chunk->used = 0;
        chunk->next = builder->chunks;
        builder->chunks = chunk;
    }
    copy = chunk->bytes + chunk->used;
    memcpy(copy, text.bytes, text.length);
    copy[text.length] = '\0';
    chunk->used += text.length + 1;
    return copy;
}

/* --- entries --- */

/* Without lfs, the oid is git's: of the content, unless the upstream makes it up, which a ztserve
 * says by "lfs": null. */
static const char *read_digest(struct listing_builder *builder, const struct json_t *entry,
                               struct upstream_file *file)
{
    const struct json_t *lfs = json_member_object(entry, "lfs");
    const bool is_late = lfs == NULL && json_member_exists(entry, "lfs");
    struct zt_text oid;
    uint64_t size;

    if (is_late && !json_member_is_null(entry, "lfs"))
        return "lfs is not an object";
    builder->is_late = builder->is_late || is_late;
    if (lfs != NULL) {
        if (json_member_text(lfs, "oid", &oid) != JSON_FOUND ||
            !zt_hex_read_lower(oid, file->digest, 32))
            return "a SHA-256 is not one";
        if (json_member_whole(lfs, "size", &size) != JSON_FOUND || size != file->size_bytes)
            return "a file has two sizes";
        file->digest_kind = UPSTREAM_SHA256;
        return NULL;
    }
    if (builder->has_oids && !is_late && json_member_text(entry, "oid", &oid) == JSON_FOUND &&
        zt_hex_read_lower(oid, file->digest, 20))
        file->digest_kind = UPSTREAM_GIT_SHA1;
    return NULL;
}

static bool make_room(struct listing_builder *builder)
{
    const size_t capacity = builder->capacity > 0 ? 2 * builder->capacity : 64;
    struct upstream_file *files;

    if (builder->count < builder->capacity)
        return true;
    files = realloc(builder->files, capacity * sizeof(files[0]));
    if (files == NULL)
        return false;
    builder->files = files;
    builder->capacity = capacity;
    return true;
}

/* Adds a file with copies of its texts. */
static enum zt_status keep_file(struct listing_builder *builder, struct upstream_file file,
                                struct zt_text path, struct zt_text etag, struct zt_error *error)
{
    if (builder->count == LISTING_FILES_MOST)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the repository has more than %zu files", LISTING_FILES_MOST);
    if (!make_room(builder))
        return zt_fail_memory(error, "a list of files");
    file.path = copy_text(builder, path);
    file.etag = copy_text(builder, etag);
    if (file.path == NULL || file.etag == NULL)
        return zt_fail_memory(error, "a list of files");
    builder->files[builder->count++] = file;
    return ZT_OK;
}

static enum zt_status add_file(struct listing_builder *builder, const struct json_t *entry,
                               struct zt_text path, struct zt_error *error)
{
    struct upstream_file file = {.digest_kind = UPSTREAM_NO_DIGEST};
    const struct zt_text no_etag = {"", 0};
    const char *mistake;

    if (json_member_whole(entry, "size", &file.size_bytes) != JSON_FOUND ||
        file.size_bytes > LISTING_FILE_MOST)
        return fail_senseless(error, "a file has no size, or one that cannot be");
    mistake = read_digest(builder, entry, &file);
    if (mistake != NULL)
        return fail_senseless(error, mistake);
    return keep_file(builder, file, path, no_etag, error);
}

enum zt_status listing_add(struct listing_builder *builder, struct zt_text path,
                           uint64_t size_bytes, const char *etag, struct zt_error *error)
{
    const struct upstream_file file = {.digest_kind = UPSTREAM_NO_DIGEST, .size_bytes = size_bytes};

    builder->is_bucket = true;
    if (judge_path(path) == PATH_GOOD && size_bytes <= LISTING_FILE_MOST)
        return keep_file(builder, file, path, zt_text_from(etag), error);
    builder->left_out++;
    return ZT_OK;
}

static enum zt_status add_entry(struct listing_builder *builder, const struct json_t *entry,
                                struct zt_error *error)
{
    struct zt_text type;
    struct zt_text path;

    if (entry == NULL || json_member_text(entry, "type", &type) != JSON_FOUND ||
        json_member_text(entry, "path", &path) != JSON_FOUND)
        return fail_senseless(error, "an entry has no type or no path");
    if (++builder->entries > LISTING_ENTRIES_MOST)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the repository has more than %zu files and folders", LISTING_ENTRIES_MOST);
    if (!zt_text_is(type, "file"))
        return ZT_OK;
    switch (judge_path(path)) {
    case PATH_GOOD:
        return add_file(builder, entry, path, error);
    case PATH_LEFT_OUT:
        builder->left_out++;
        return ZT_OK;
    case PATH_BAD:
        break;
    }
    return fail_senseless(error, "a path is not one of a file in the repository");
}

/* Returns true if a text has so many objects or values that it takes a hundred times its bytes in
 * memory. Marks in names count as well; no Hub has so many. */
static bool is_too_dense(struct zt_text json)
{
    size_t objects = 0;
    size_t values = 0;

    for (size_t i = 0; i < json.length; i++) {
        objects += json.bytes[i] == '{' || json.bytes[i] == '[';
        values += json.bytes[i] == ',';
    }
    return objects > LISTING_OBJECTS_MOST || values > LISTING_VALUES_MOST;
}

enum zt_status listing_add_page(struct listing_builder *builder, struct zt_text json,
                                struct zt_error *error)
{
    struct json_t *list;
    enum zt_status status = ZT_OK;

    if (json.length > LISTING_PAGE_MOST)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "a page of the upstream's list is longer than %zu bytes", LISTING_PAGE_MOST);
    if (is_too_dense(json))
        return fail_senseless(error, "a page has too many values");
    list = json_list_read(json, NULL);
    if (list == NULL)
        return fail_senseless(error, "it is not a list in JSON");
    for (size_t i = 0; i < json_list_length(list) && status == ZT_OK; i++)
        status = add_entry(builder, json_list_object(list, i), error);
    json_object_free(list);
    return status;
}

bool listing_states_digests_late(const struct listing_builder *builder)
{
    return builder->is_late;
}

struct upstream_file *listing_without_digest(struct listing_builder *builder,
                                             struct upstream_file *after)
{
    size_t at = after != NULL ? (size_t)(after - builder->files) + 1 : 0;

    while (at < builder->count && builder->files[at].digest_kind != UPSTREAM_NO_DIGEST)
        at++;
    return at < builder->count ? &builder->files[at] : NULL;
}

struct listing_builder *listing_begin(bool has_oids)
{
    struct listing_builder *builder = calloc(1, sizeof(*builder));

    if (builder != NULL)
        builder->has_oids = has_oids;
    return builder;
}

void listing_drop(struct listing_builder *builder)
{
    if (builder == NULL)
        return;
    free_chunks(builder->chunks);
    free(builder->files);
    free(builder);
}

/* --- the whole list --- */

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct upstream_file *)a)->path, ((const struct upstream_file *)b)->path);
}

/* Sorts '/' before all other characters, so that a folder's files follow its name directly. */
static int compare_as_tree(const void *a, const void *b)
{
    const char *x = ((const struct upstream_file *)a)->path;
    const char *y = ((const struct upstream_file *)b)->path;

    while (*x == *y && *x != '\0') {
        x++;
        y++;
    }
    if (*x == '\0' || *y == '\0' || (*x != '/' && *y != '/'))
        return (unsigned char)*x - (unsigned char)*y;
    return *x == '/' ? -1 : 1;
}

static bool is_folder_of(const char *folder, const char *path)
{
    const size_t length = strlen(folder);

    return strncmp(folder, path, length) == 0 && path[length] == '/';
}

/* A bucket may have a key twice in a list, and keys that are folders of others, which are left
 * out. The files are in the order of a tree. */
static void leave_out_conflicts(struct listing_builder *builder)
{
    struct upstream_file *files = builder->files;
    size_t kept = 1;

    for (size_t i = 1; i < builder->count; i++)
        if (is_folder_of(files[kept - 1].path, files[i].path))
            files[kept - 1] = files[i];
        else if (strcmp(files[kept - 1].path, files[i].path) != 0)
            files[kept++] = files[i];
    builder->left_out += builder->count - kept;
    builder->count = kept;
}

/* Leaves the files in the order of a tree. */
static const char *find_mistake(struct listing_builder *builder)
{
    if (builder->count == 0)
        return NULL;
    qsort(builder->files, builder->count, sizeof(builder->files[0]), compare_as_tree);
    if (builder->is_bucket) {
        leave_out_conflicts(builder);
        return NULL;
    }
    for (size_t i = 1; i < builder->count; i++) {
        const char *before = builder->files[i - 1].path;
        const char *path = builder->files[i].path;

        if (strcmp(before, path) == 0)
            return "a path is listed twice";
        if (is_folder_of(before, path))
            return "a path is both a file and a folder";
    }
    return NULL;
}

static struct upstream_listing *make_listing(struct listing_builder *builder, const char *commit)
{
    struct upstream_listing *listing = calloc(1, sizeof(*listing));

    if (listing == NULL)
        return NULL;
    listing->memory = calloc(1, sizeof(*listing->memory));
    if (listing->memory == NULL) {
        free(listing);
        return NULL;
    }
    assert(strlen(commit) < sizeof(listing->commit));
    strcpy(listing->commit, commit);
    atomic_store(&listing->memory->references, 1);
    listing->memory->chunks = builder->chunks;
    listing->files = builder->files;
    listing->count = builder->count;
    listing->left_out = builder->left_out;
    builder->chunks = NULL;
    builder->files = NULL;
    return listing;
}

enum zt_status listing_end(struct listing_builder *builder, const char *commit,
                           struct upstream_listing **out_listing, struct zt_error *error)
{
    struct upstream_listing *listing = NULL;
    const char *mistake;
    enum zt_status status = ZT_OK;

    mistake = find_mistake(builder);
    if (builder->count > 0)
        qsort(builder->files, builder->count, sizeof(builder->files[0]), compare_files);
    if (mistake != NULL)
        status = fail_senseless(error, mistake);
    else if ((listing = make_listing(builder, commit)) == NULL)
        status = zt_fail_memory(error, "a list of files");
    listing_drop(builder);
    if (status == ZT_OK)
        *out_listing = listing;
    return status;
}

struct upstream_listing *upstream_listing_hold(struct upstream_listing *listing)
{
    atomic_fetch_add(&listing->memory->references, 1);
    return listing;
}

void upstream_listing_free(struct upstream_listing *listing)
{
    if (listing == NULL || atomic_fetch_sub(&listing->memory->references, 1) > 1)
        return;
    free_chunks(listing->memory->chunks);
    free(listing->memory);
    free(listing->files);
    free(listing);
}

/* --- commits --- */

bool upstream_is_commit(struct zt_text text)
{
    return zt_hex_is_lower(text, 40) || zt_hex_is_lower(text, 64);
}

enum zt_status listing_read_commit(struct zt_text json, char out_commit[UPSTREAM_COMMIT_SIZE],
                                   int64_t *out_modified_ns, struct zt_error *error)
{
    struct json_t *object = is_too_dense(json) ? NULL : json_object_read(json, NULL);
    struct zt_text commit;
    struct zt_text date;
    time_t modified = 0;

    if (object == NULL || json_member_text(object, "sha", &commit) != JSON_FOUND ||
        !upstream_is_commit(commit)) {
        json_object_free(object);
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the upstream's answer names no commit: it may not be a Hub");
    }
    memcpy(out_commit, commit.bytes, commit.length);
    out_commit[commit.length] = '\0';
    if (json_member_text(object, "lastModified", &date) != JSON_FOUND ||
        !iso_date_parse(date.bytes, &modified) || modified < 0 ||
        modified > INT64_MAX / CLOCK_NS_PER_S)
        modified = 0;
    *out_modified_ns = (int64_t)modified * CLOCK_NS_PER_S;
    json_object_free(object);
    return ZT_OK;
}
