/* Small files: objects that are replaced whole. Their version is the ETag. */
#include "store/s3_versions/s3_place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/s3_versions/s3_place_state.h"

/* Time limit of a write: for a small request. */
#define WRITE_MS 30000
/* The file of a repository that its lock protects. */
#define REPOS "repos/"

static_assert(HISTORY_VERSION_SIZE >= BUCKET_ETAG_SIZE, "an ETag names the version");

bool s3_versions_key(const char *name, char out_key[S3_VERSIONS_KEY_SIZE])
{
    return snprintf(out_key, S3_VERSIONS_KEY_SIZE, S3_VERSIONS_PREFIX "%s", name) <
           S3_VERSIONS_KEY_SIZE;
}

static enum zt_status too_long(struct zt_error *error)
{
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
}

/* A list or a read that the bucket refuses may succeed later. */
static enum zt_status as_unavailable(enum zt_status status, struct zt_error *error)
{
    if (status != ZT_ARGUMENT)
        return status;
    if (error != NULL)
        error->status = ZT_UNAVAILABLE;
    return ZT_UNAVAILABLE;
}

static enum zt_status fail_away(struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the object store is unreachable");
}

/* --- the clock --- */

void s3_place_note_clock(struct s3_place *place, const struct object_version *version)
{
    if (version->date_s > 0)
        atomic_store(&place->ahead_s, version->date_s - clock_wall_ns() / CLOCK_NS_PER_S);
}

int64_t s3_place_now_s(struct s3_place *place)
{
    return clock_wall_ns() / CLOCK_NS_PER_S + atomic_load(&place->ahead_s);
}

/* --- reading --- */

static enum zt_status get(struct bucket *bucket, const char *key, const char *known, size_t most,
                          struct bucket_object *out_object, struct zt_error *error)
{
    if (known != NULL && known[0] != '\0')
        return bucket_get_unless(bucket, key, known, most, out_object, error);
    if (most < HISTORY_FILE_BYTES)
        return bucket_get_start(bucket, key, most, out_object, error);
    return bucket_get(bucket, key, most, BUCKET_USUAL_TIME, out_object, error);
}

static enum zt_status read_file(struct history_place *base, const char *name, const char *known,
                                size_t most, struct history_text *out_text, struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    struct bucket *bucket = &place->store->bucket;
    struct bucket_object object = {.bytes = NULL};
    char key[S3_VERSIONS_KEY_SIZE];
    enum zt_status status;

    if (!s3_versions_key(name, key))
        return too_long(error);
    if (!bucket_may_ask(bucket))
        return fail_away(error);
    status = get(bucket, key, known, most, &object, error);
    if (status != ZT_OK)
        return as_unavailable(status, error);
    s3_place_note_clock(place, &object.version);
    if (object.bytes != NULL && object.version.etag[0] == '\0') {
        free(object.bytes);
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store does not state which version of a file it has");
    }
    *out_text = (struct history_text){.bytes = (uint8_t *)object.bytes, .length = object.length};
    snprintf(out_text->version, sizeof(out_text->version), "%s",
             object.bytes != NULL ? object.version.etag : known);
    return ZT_OK;
}

/* --- writing --- */

struct write {
    struct s3_place *place;
    char key[S3_VERSIONS_KEY_SIZE];
    const void *bytes;
    size_t length;
    const char *expected; /* as in history_place.h */
    bool is_guarded;      /* the service evaluates the condition */
};

/* The name of the claim that covers a file: ".ztserve/versions/repos/<key>". */
static void write_claim_name(const char *key, char out_name[S3_VERSIONS_KEY_SIZE])
{
    const char *slash = strchr(key + strlen(S3_VERSIONS_PREFIX REPOS), '/');

    assert(strncmp(key, S3_VERSIONS_PREFIX REPOS, strlen(S3_VERSIONS_PREFIX REPOS)) == 0);
    snprintf(out_name, S3_VERSIONS_KEY_SIZE, "%.*s",
             slash != NULL ? (int)(slash - key) : S3_VERSIONS_KEY_SIZE - 1, key);
}

/* Returns the time for a write. Without a condition, a service may carry out a late request, so it
 * must end while the claim is certainly ours. */
static int64_t time_for(const struct write *write)
{
    char name[S3_VERSIONS_KEY_SIZE];
    int64_t left_ms;

    if (write->is_guarded || !s3_place_has_others(write->place) ||
        strncmp(write->key, S3_VERSIONS_PREFIX REPOS, strlen(S3_VERSIONS_PREFIX REPOS)) != 0)
        return WRITE_MS;
    write_claim_name(write->key, name);
    left_ms = s3_lock_left_ms(write->place, name);
    return left_ms < WRITE_MS ? left_ms : WRITE_MS;
}

/* Compares the version, for a service that does not. */
static enum zt_status check_expected(const struct write *write, struct zt_error *error)
{
    struct object_version found = {.etag = ""};
    enum zt_status status;

    if (write->is_guarded || write->expected == NULL)
        return ZT_OK;
    status =
        bucket_head(&write->place->store->bucket, write->key, BUCKET_USUAL_TIME, &found, error);
    if (status != ZT_OK && status != ZT_NOT_FOUND)
        return as_unavailable(status, error);
    return strcmp(found.etag, write->expected) == 0
               ? ZT_OK
               : zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "another server has changed a file");
}

/* Finds out whether a write whose response was lost, or says that the condition does not hold, was
 * made: the first of several tries may have been. */
static enum zt_status settle(const struct write *write, enum zt_status written,
                             struct object_version *out_version, struct zt_error *error)
{
    struct bucket_object found = {.bytes = NULL};
    struct zt_error ignored;
    const enum zt_status status =
        bucket_get(&write->place->store->bucket, write->key, write->length + 1, BUCKET_USUAL_TIME,
                   &found, &ignored);
    const bool is_written = status == ZT_OK && found.length == write->length &&
                            memcmp(found.bytes, write->bytes, write->length) == 0;

    assert(written != ZT_OK);
    if (status == ZT_OK)
        free(found.bytes);
    if (is_written) {
        *out_version = found.version;
        return ZT_OK;
    }
    if (written == ZT_STALE || written == ZT_NOT_FOUND)
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "another server has changed a file");
    if (!write->is_guarded)
        s3_locks_doubt(write->place);
    return as_unavailable(written, error);
}

static enum zt_status run_write(const struct write *write, struct object_version *out_version,
                                struct zt_error *error)
{
    struct bucket *bucket = &write->place->store->bucket;
    const int64_t time_ms = time_for(write);
    const struct bucket_put put = {
        .key = write->key,
        .condition = !write->is_guarded           ? BUCKET_ALWAYS
                     : write->expected[0] != '\0' ? BUCKET_IF_VERSION
                                                  : BUCKET_IF_ABSENT,
        .etag = write->expected,
        .bytes = write->bytes,
        .length = write->length,
        .by_ms = clock_ms() + time_ms,
    };
    enum zt_status status;

    assert(!write->is_guarded || write->expected != NULL);
    if (time_ms <= 0)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "another server has taken the repository over, because this one took too "
                       "long");
    status = bucket_put(bucket, &put, out_version, error);
    if (status != ZT_OK)
        status = settle(write, status, out_version, error);
    if (status == ZT_OK && out_version->etag[0] == '\0')
        status = bucket_head(bucket, write->key, BUCKET_USUAL_TIME, out_version, error);
    return status;
}

static enum zt_status write_file(struct history_place *base, const char *name,
                                 struct history_text *text, const char *expected,
                                 struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    struct write write = {
        .place = place,
        .bytes = text->bytes,
        .length = text->length,
        .expected = expected,
        .is_guarded = expected != NULL && place->store->writing->abilities.put,
    };
    struct object_version version = {.etag = ""};
    enum zt_status status;

    if (!s3_versions_key(name, write.key))
        return too_long(error);
    if (!bucket_may_ask(&place->store->bucket))
        return fail_away(error);
    status = check_expected(&write, error);
    if (status == ZT_OK)
        status = run_write(&write, &version, error);
    if (status != ZT_OK)
        return as_unavailable(status, error);
    s3_place_note_clock(place, &version);
    snprintf(text->version, sizeof(text->version), "%s", version.etag);
    return ZT_OK;
}

/* A removal without a response may be carried out late, after the file was written again. */
static void remove_file(struct history_place *base, const char *name)
{
    struct s3_place *place = s3_place_of(base);
    char key[S3_VERSIONS_KEY_SIZE];

    if (s3_versions_key(name, key) && bucket_may_ask(&place->store->bucket) &&
        bucket_delete(&place->store->bucket, key, clock_ms() + WRITE_MS, NULL) == ZT_UNAVAILABLE)
        s3_locks_doubt(place);
}

/* --- lists --- */

struct listing {
    size_t skipped; /* of each key */
    bool (*visit)(void *context, const char *name);
    void *context;
    bool is_stopped;
};

static bool take(void *context, const struct listed_object *object)
{
    struct listing *listing = context;
    char name[S3_VERSIONS_KEY_SIZE];

    assert(!listing->is_stopped);
    snprintf(name, sizeof(name), "%s", object->key + listing->skipped);
    name[strcspn(name, "/")] = '\0';
    listing->is_stopped = name[0] != '\0' && !listing->visit(listing->context, name);
    return !listing->is_stopped;
}

static enum zt_status list_folder(struct history_place *base, const char *folder,
                                  bool (*visit)(void *context, const char *name), void *context,
                                  struct zt_error *error)
{
    struct s3_place *place = s3_place_of(base);
    struct listing listing = {.visit = visit, .context = context};
    char key[S3_VERSIONS_KEY_SIZE];
    char beginning[S3_VERSIONS_KEY_SIZE + 1];
    enum zt_status status;

    if (!s3_versions_key(folder, key))
        return too_long(error);
    if (!bucket_may_ask(&place->store->bucket))
        return fail_away(error);
    snprintf(beginning, sizeof(beginning), "%s/", key);
    listing.skipped = strlen(beginning);
    status = bucket_list_level(&place->store->bucket, beginning, BUCKET_USUAL_TIME, take, &listing,
                               error);
    if (listing.is_stopped)
        return zt_fail_memory(error, "a list of the history");
    return as_unavailable(status, error);
}

/* The list has models and the config.json of folders. */
static bool has_path(struct history_place *base, const char *path, bool asks)
{
    struct s3_store *store = s3_place_of(base)->store;
    struct object_version version;
    struct zt_error ignored;

    if (!asks)
        return s3_has_config(store, path);
    assert(thread_may_wait());
    return bucket_may_ask(&store->bucket) &&
           bucket_head(&store->bucket, path, BUCKET_USUAL_TIME, &version, &ignored) == ZT_OK;
}

/* --- the place --- */

static void close_place(struct history_place *base)
{
    struct s3_place *place = s3_place_of(base);

    s3_locks_stop(place);
    s3_place_forget_list(place);
    pthread_cond_destroy(&place->changed);
    pthread_mutex_destroy(&place->lock);
    free(place);
}

static const struct history_place_ops ops = {
    .read = read_file,
    .write = write_file,
    .append = NULL,
    .remove = remove_file,
    .list = list_folder,
    .keep = s3_place_keep,
    .keep_removed = NULL,
    .keep_staged = s3_place_keep_staged,
    .find = s3_place_find,
    .open = s3_place_open_kept,
    .restore = s3_place_restore,
    .remove_path = s3_place_remove_path,
    .list_objects = s3_place_list_objects,
    .set_aside = NULL,
    .drop = s3_place_drop,
    .lock = s3_place_lock,
    .unlock = s3_place_unlock,
    .begin_collecting = s3_place_begin_collecting,
    .end_collecting = s3_place_end_collecting,
    .has_path = has_path,
    .close = close_place,
};

enum zt_status s3_place_open(struct store *bucket, bool is_writable,
                             struct history_place **out_place, struct zt_error *error)
{
    struct s3_place *place = calloc(1, sizeof(*place));

    if (place == NULL)
        return zt_fail_memory(error, "the versions");
    place->base = (struct history_place){
        .ops = &ops,
        .is_shared = !is_writable || !((struct s3_store *)bucket)->config->s3.single_writer,
        .is_writable = is_writable,
    };
    place->store = (struct s3_store *)bucket;
    place->fresh_s = S3_FRESH_S;
    place->young_s = S3_YOUNG_S;
    pthread_mutex_init(&place->lock, NULL);
    pthread_cond_init(&place->changed, NULL);
    if (is_writable && !s3_locks_start(place)) {
        close_place(&place->base);
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "no thread for the versions");
    }
    *out_place = &place->base;
    return ZT_OK;
}
