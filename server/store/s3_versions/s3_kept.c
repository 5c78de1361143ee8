/* Kept files: copies that the service makes, named by SHA-256.
 *
 * A kept file is written and removed only under a claim of its key. So a collection of another
 * server cannot remove it between the look at its age and the copy that makes it young. This claim
 * is held until the copy is made, and its holder waits for no other claim. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/s3_versions/s3_place_state.h"
#include "store/s3_write/s3_multipart.h"
#include "store/staging.h"

/* For the small requests about one kept file. */
#define REQUEST_MS 30000
/* How long to wait for another server that keeps or removes the same file. */
#define WAIT_MS 15000

void s3_object_key(const uint8_t sha256[32], char out_key[S3_OBJECT_KEY_SIZE])
{
    char *at = out_key + sizeof(S3_OBJECTS_PREFIX) - 1;

    strcpy(out_key, S3_OBJECTS_PREFIX);
    at = zt_hex_write(at, sha256, 1);
    *at++ = '/';
    zt_hex_write(at, sha256 + 1, 31);
}

/* --- what there is --- */

enum zt_status s3_object_find(struct s3_place *place, const uint8_t sha256[32],
                              struct object_version *out_version, struct zt_error *error)
{
    struct bucket *bucket = &place->store->bucket;
    char key[S3_OBJECT_KEY_SIZE];
    char hex[BUCKET_SHA256_SIZE];
    enum zt_status status;

    if (!bucket_may_ask(bucket))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store is unreachable");
    s3_object_key(sha256, key);
    status = bucket_head(bucket, key, clock_ms() + REQUEST_MS, out_version, error);
    if (status == ZT_NOT_FOUND)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file is not kept");
    if (status != ZT_OK) {
        if (error != NULL)
            error->status = ZT_UNAVAILABLE;
        return ZT_UNAVAILABLE;
    }
    s3_place_note_clock(place, out_version);
    zt_hex_write(hex, sha256, 32);
    return strcmp(out_version->sha256, hex) == 0 && out_version->etag[0] != '\0'
               ? ZT_OK
               : zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                         "another program has replaced the kept file %.150s", key);
}

/* Files without a time are never removed. */
static bool is_older(const struct object_version *version, int64_t seconds)
{
    return version->date_s > 0 && version->modified_s > 0 &&
           version->date_s - version->modified_s > seconds;
}

/* Returns true if no other server's collection can remove the file before a commit names it. */
static bool is_safe(const struct s3_place *place, const struct object_version *version)
{
    return !s3_place_has_others(place) || !is_older(version, place->fresh_s);
}

/* --- claims --- */

static enum zt_status claim_object(struct s3_place *place, const uint8_t sha256[32],
                                   int64_t wait_ms, struct s3_claim **out_claim,
                                   struct zt_error *error)
{
    char key[S3_OBJECT_KEY_SIZE];
    enum zt_status status;

    s3_object_key(sha256, key);
    status =
        s3_claim_name(place->store, zt_text_from(key),
                      clock_ms() + wait_ms + REQUEST_MS + S3_SETTLE_MS, wait_ms, out_claim, error);
    if (status != ZT_ARGUMENT)
        return status;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "another server is keeping the same file");
}

/* --- keeping --- */

/* A copy that becomes a kept file. */
struct keeping {
    struct s3_place *place;
    const uint8_t *sha256;
    struct s3_copy copy;
    struct object_version version; /* of copy.from */
    bool may_change;               /* other programs may replace copy.from */
    char key[S3_OBJECT_KEY_SIZE];
    char hex[BUCKET_SHA256_SIZE];
};

static void begin_keeping(struct keeping *keeping, struct s3_place *place, const uint8_t sha256[32])
{
    *keeping = (struct keeping){.place = place, .sha256 = sha256};
    s3_object_key(sha256, keeping->key);
    zt_hex_write(keeping->hex, sha256, 32);
}

static enum zt_status fail_stale(struct zt_error *error)
{
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                   "the file has changed since its SHA-256 was computed");
}

static struct file_identity identity_of(const struct object_version *version)
{
    return bucket_identity(version->etag, version->size_bytes, version->modified_s);
}

static bool is_version(const struct object_version *version, const struct file_identity *identity)
{
    const struct file_identity found = identity_of(version);

    return store_identity_equal(&found, identity);
}

/* Some services ignore the condition of a copy, and may have copied another version. */
static enum zt_status check_source(const struct keeping *keeping, struct zt_error *error)
{
    struct bucket *bucket = &keeping->place->store->bucket;
    const struct file_identity identity = identity_of(&keeping->version);
    struct object_version now;
    enum zt_status status;

    if (!keeping->may_change)
        return ZT_OK;
    assert(keeping->version.etag[0] != '\0');
    status = bucket_head(bucket, keeping->copy.from, clock_ms() + REQUEST_MS, &now, error);
    if (status == ZT_NOT_FOUND || (status == ZT_OK && !is_version(&now, &identity)))
        return fail_stale(error);
    return status == ZT_OK ? ZT_OK : ZT_UNAVAILABLE;
}

static enum zt_status check_copy(const struct keeping *keeping, struct zt_error *error)
{
    struct object_version made;
    const enum zt_status status = s3_object_find(keeping->place, keeping->sha256, &made, error);

    if (status == ZT_NOT_FOUND ||
        (status == ZT_OK && made.size_bytes != keeping->version.size_bytes))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store has not copied the file");
    if (status == ZT_OK && !is_safe(keeping->place, &made))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store does not renew the time of a file that it copies");
    return status;
}

/* A copy that may be wrong must not stay. */
static void remove_doubtful(const struct keeping *keeping, struct s3_claim *claim)
{
    if (bucket_delete(&claim->store->bucket, keeping->key, clock_ms() + REQUEST_MS, NULL) != ZT_OK)
        claim->stays = claim->has_object;
}

/* A copy without a response may still be made when the path has another file, so the claims of
 * those that could replace it stay. */
static enum zt_status run_copy(struct keeping *keeping, struct s3_claim *claim,
                               struct zt_error *error)
{
    enum zt_status status = s3_copy_run(claim, &keeping->copy, error);

    if (keeping->copy.is_unknown) {
        claim->stays = claim->has_object;
        s3_locks_doubt(keeping->place);
        return ZT_UNAVAILABLE;
    }
    if (status == ZT_NOT_FOUND || status == ZT_STALE)
        return fail_stale(error);
    if (status == ZT_OK)
        status = check_source(keeping, error);
    if (status == ZT_OK)
        status = check_copy(keeping, error);
    else if (status == ZT_STALE)
        remove_doubtful(keeping, claim);
    return status == ZT_ARGUMENT ? ZT_UNAVAILABLE : status;
}

static enum zt_status copy_object(struct keeping *keeping, const char *from, struct zt_error *error)
{
    struct s3_store *store = keeping->place->store;
    struct s3_claim *claim;
    enum zt_status status;

    assert(keeping->version.etag[0] != '\0' && keeping->key[0] != '\0');
    keeping->copy = (struct s3_copy){.from = from,
                                     .etag = keeping->version.etag,
                                     .size_bytes = keeping->version.size_bytes,
                                     .to = keeping->key,
                                     .sha256 = keeping->hex};
    status = s3_copy_prepare(store, &keeping->copy, error);
    if (status == ZT_OK)
        status = claim_object(keeping->place, keeping->sha256, WAIT_MS, &claim, error);
    if (status == ZT_OK) {
        status = run_copy(keeping, claim, error);
        s3_release(&claim->base);
    }
    s3_copy_end(store, &keeping->copy);
    return status;
}

/* Returns ZT_OK if the file is kept, and stays; ZT_NOT_FOUND if it must be written. A wrong object
 * is replaced. *out_exists: there is one that must be made young. */
static enum zt_status look(struct s3_place *place, const uint8_t sha256[32], uint64_t size_bytes,
                           bool *out_exists, struct zt_error *error)
{
    struct object_version kept;
    enum zt_status status = s3_object_find(place, sha256, &kept, error);

    assert(status != ZT_OK || kept.etag[0] != '\0');
    *out_exists = status == ZT_OK && kept.size_bytes == size_bytes;
    if (status == ZT_IO || (status == ZT_OK && !*out_exists))
        return ZT_NOT_FOUND;
    return status == ZT_OK && !is_safe(place, &kept) ? ZT_NOT_FOUND : status;
}

/* Finds the version of a path, which the identity only hashes. */
static enum zt_status find_source(struct keeping *keeping, const char *path,
                                  const struct file_identity *identity, struct zt_error *error)
{
    struct s3_store *store = keeping->place->store;
    struct object_version *version = &keeping->version;
    enum zt_status status;

    keeping->may_change = true;
    if (s3_known_version(store, path, version) && is_version(version, identity))
        return ZT_OK;
    status = bucket_head(&store->bucket, path, clock_ms() + REQUEST_MS, version, error);
    if (status == ZT_NOT_FOUND || (status == ZT_OK && !is_version(version, identity)))
        return fail_stale(error);
    return status == ZT_OK ? ZT_OK : ZT_UNAVAILABLE;
}

static enum zt_status keep_path(struct s3_place *place, const char *path,
                                const struct file_identity *identity, const uint8_t sha256[32],
                                struct zt_error *error)
{
    struct keeping keeping;
    enum zt_status status;

    begin_keeping(&keeping, place, sha256);
    status = find_source(&keeping, path, identity, error);
    return status == ZT_OK ? copy_object(&keeping, path, error) : status;
}

enum zt_status s3_place_keep(struct history_place *base, const char *path,
                             const struct file_identity *identity, const uint8_t sha256[32],
                             bool *out_is_new, struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    struct s3_claim *name = s3_claim_of(place->store, path);
    const int64_t begun_ms = clock_ms();
    bool exists;
    enum zt_status status = look(place, sha256, identity->size_bytes, &exists, error);

    *out_is_new = false;
    if (status != ZT_NOT_FOUND)
        return status;
    assert(name == NULL || name->store == place->store);
    if (name != NULL)
        s3_lock_lend(place, name);
    status = keep_path(place, path, identity, sha256, error);
    if (name != NULL) {
        s3_lock_return(place, name);
        /* The request that replaces the file has its usual time after that. */
        s3_claim_extend(name, (uint64_t)(clock_ms() - begun_ms));
    }
    *out_is_new = status == ZT_OK && !exists;
    return status;
}

static enum zt_status send_file(struct s3_place *place, struct staged_file *file,
                                const uint8_t sha256[32], struct zt_error *error)
{
    char key[S3_OBJECT_KEY_SIZE];
    char hex[BUCKET_SHA256_SIZE];
    const struct s3_parts parts = {.key = key,
                                   .descriptor = file->descriptor,
                                   .length = staged_file_length(file),
                                   .part_bytes = (uint64_t)place->store->config->s3.part_bytes,
                                   .sha256 = hex};
    struct s3_claim *claim;
    enum zt_status status = claim_object(place, sha256, WAIT_MS, &claim, error);

    if (status != ZT_OK)
        return status;
    s3_object_key(sha256, key);
    zt_hex_write(hex, sha256, 32);
    s3_lock_lend(place, claim);
    status = s3_send_file(place->store, &parts, error);
    s3_lock_return(place, claim);
    s3_release(&claim->base);
    return status;
}

enum zt_status s3_place_keep_staged(struct history_place *base, struct staged_file *file,
                                    const uint8_t sha256[32], bool *out_is_new,
                                    struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    bool exists;
    enum zt_status status = look(place, sha256, staged_file_length(file), &exists, error);

    *out_is_new = false;
    if (status == ZT_NOT_FOUND) {
        status = send_file(place, file, sha256, error);
        *out_is_new = status == ZT_OK && !exists;
    }
    if (status == ZT_OK)
        staged_file_remove(file);
    return status;
}

/* --- reading --- */

enum zt_status s3_place_find(struct history_place *base, const uint8_t sha256[32], bool names_it,
                             struct file_identity *out_identity, struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    struct keeping keeping;
    enum zt_status status;

    begin_keeping(&keeping, place, sha256);
    status = s3_object_find(place, sha256, &keeping.version, error);
    if (status == ZT_OK && names_it && !is_safe(place, &keeping.version)) {
        status = copy_object(&keeping, keeping.key, error);
        /* Another server's collection has removed it. */
        if (status == ZT_STALE)
            status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the file is not kept");
    }
    if (status == ZT_OK)
        *out_identity = identity_of(&keeping.version);
    return status;
}

enum zt_status s3_place_open_kept(struct history_place *base, const uint8_t sha256[32],
                                  struct zt_source **out_source, struct file_identity *out_identity,
                                  struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    struct object_version version;
    char key[S3_OBJECT_KEY_SIZE];
    enum zt_status status = s3_object_find(place, sha256, &version, error);

    if (status != ZT_OK)
        return status;
    s3_object_key(sha256, key);
    status = s3_open_object(place->store, key, &version, out_source, error);
    if (status == ZT_OK)
        *out_identity = identity_of(&version);
    return status;
}

/* --- collections --- */

/* More kept files than this are listed in 256 parts, which takes as many requests. */
#define LISTED_MOST ((size_t)1 << 20)

/* All kept files in order, listed at once. */
struct s3_listed {
    size_t count;
    size_t capacity;
    size_t next; /* that is visited */
    bool is_partial;
    bool has_memory;
    struct history_object *objects;
};

struct listing {
    struct s3_place *place;
    struct s3_listed *listed;
    int64_t young_s; /* files written since then are young */
};

/* Reads the SHA-256 that a key names. */
static bool read_key(const char *key, uint8_t out_sha256[32])
{
    const size_t before = sizeof(S3_OBJECTS_PREFIX) - 1;
    char hex[BUCKET_SHA256_SIZE];

    if (strlen(key) != S3_OBJECT_KEY_SIZE - 1 || key[before + 2] != '/' ||
        strncmp(key, S3_OBJECTS_PREFIX, before) != 0)
        return false;
    memcpy(hex, key + before, 2);
    strcpy(hex + 2, key + before + 3);
    return zt_hex_is_lower(zt_text_from(hex), 64) && zt_hex_read(zt_text_from(hex), out_sha256, 32);
}

static bool grow(struct s3_listed *listed)
{
    const size_t capacity = listed->capacity == 0 ? 64 : 2 * listed->capacity;
    struct history_object *objects;

    assert(listed->count <= listed->capacity);
    if (listed->count < listed->capacity)
        return true;
    objects = realloc(listed->objects, capacity * sizeof(*objects));
    if (objects == NULL)
        return false;
    listed->objects = objects;
    listed->capacity = capacity;
    return true;
}

static bool take(void *context, const struct listed_object *object)
{
    const struct listing *listing = context;
    struct s3_listed *listed = listing->listed;
    uint8_t sha256[32];

    if (!read_key(object->key, sha256))
        return true;
    listed->is_partial = listed->count >= LISTED_MOST;
    listed->has_memory = grow(listed);
    if (listed->is_partial || !listed->has_memory)
        return false;
    listed->objects[listed->count] = (struct history_object){
        .size_bytes = object->size_bytes,
        .is_young = s3_place_has_others(listing->place) && object->modified_s >= listing->young_s};
    memcpy(listed->objects[listed->count++].sha256, sha256, sizeof(sha256));
    return true;
}

void s3_place_forget_list(struct s3_place *place)
{
    if (place->listed != NULL)
        free(place->listed->objects);
    free(place->listed);
    place->listed = NULL;
}

/* The age of files that no change can be about to name which this collection has not seen. */
static int64_t long_ago_s(struct s3_place *place)
{
    return place->young_s + s3_place_collecting_s(place);
}

static enum zt_status list_below(struct s3_place *place, const char *beginning,
                                 struct zt_error *error)
{
    const struct listing listing = {.place = place,
                                    .listed = place->listed,
                                    .young_s = s3_place_now_s(place) - long_ago_s(place)};
    enum zt_status status;

    assert(place->listed != NULL);
    place->listed->has_memory = true;
    place->listed->count = place->listed->next = 0;
    status = bucket_list(&place->store->bucket, beginning, BUCKET_USUAL_TIME, take,
                         (void *)(uintptr_t)&listing, error);
    if (!place->listed->has_memory)
        return zt_fail_memory(error, "a list of kept files");
    return status == ZT_OK || status == ZT_NO_MEMORY ? status : ZT_UNAVAILABLE;
}

/* Lists everything before the first part is visited, or else each part. */
static enum zt_status list_part(struct s3_place *place, uint8_t first, struct zt_error *error)
{
    char beginning[sizeof(S3_OBJECTS_PREFIX) + 4] = S3_OBJECTS_PREFIX;
    enum zt_status status = ZT_OK;

    if (first == 0 || place->listed == NULL) {
        s3_place_forget_list(place);
        place->listed = calloc(1, sizeof(*place->listed));
        if (place->listed == NULL)
            return zt_fail_memory(error, "a list of kept files");
        status = list_below(place, beginning, error);
    }
    if (status != ZT_OK || !place->listed->is_partial)
        return status;
    strcpy(zt_hex_write(beginning + strlen(beginning), &first, 1), "/");
    status = list_below(place, beginning, error);
    place->listed->is_partial = true;
    return status;
}

enum zt_status s3_place_list_objects(struct history_place *base, uint8_t first,
                                     bool (*visit)(void *context,
                                                   const struct history_object *object),
                                     void *context, struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    const enum zt_status status = list_part(place, first, error);
    struct s3_listed *listed = place->listed;

    if (status != ZT_OK)
        return status;
    while (listed->next < listed->count && listed->objects[listed->next].sha256[0] < first)
        listed->next++;
    for (; listed->next < listed->count && listed->objects[listed->next].sha256[0] == first;
         listed->next++)
        if (!visit(context, &listed->objects[listed->next]))
            return zt_fail_memory(error, "a list of kept files");
    if (first == UINT8_MAX)
        s3_place_forget_list(place);
    return ZT_OK;
}

static enum zt_status run_delete(struct s3_claim *claim, const char *key)
{
    struct bucket *bucket = &claim->store->bucket;
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    struct zt_error ignored;
    enum zt_status status;

    if (!bucket_path(bucket, key, path))
        return ZT_LIMIT;
    bucket_exchange(bucket, &exchange, "DELETE", path);
    exchange.body_most = BUCKET_REPLY_MOST;
    /* Each unanswered removal may be carried out late. */
    exchange.tries = 1;
    status = s3_claim_run(claim, &exchange, &ignored);
    if (status != ZT_OK && status != ZT_NOT_FOUND && exchange.tried > 0)
        claim->stays = claim->has_object;
    remote_exchange_free(&exchange);
    return status == ZT_NOT_FOUND ? ZT_OK : status;
}

bool s3_place_drop(struct history_place *base, const uint8_t sha256[32])
{
    struct s3_place *place = s3_place_of(base);
    struct object_version version;
    char key[S3_OBJECT_KEY_SIZE];
    struct s3_claim *claim;
    struct zt_error ignored;
    bool is_gone = false;
    enum zt_status status;

    if (!s3_place_is_collecting(place) || claim_object(place, sha256, 0, &claim, &ignored) != ZT_OK)
        return false;
    s3_object_key(sha256, key);
    status = bucket_head(&place->store->bucket, key, s3_claim_write_by(claim), &version, &ignored);
    if (status == ZT_NOT_FOUND)
        is_gone = true;
    else if (status == ZT_OK &&
             (!s3_place_has_others(place) || is_older(&version, long_ago_s(place))))
        is_gone = run_delete(claim, key) == ZT_OK;
    s3_release(&claim->base);
    return is_gone;
}
