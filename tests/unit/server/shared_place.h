/* A place for histories in memory, which several servers share (store/versions/history_place.h). */
#ifndef SHARED_PLACE_H
#define SHARED_PLACE_H

#include "tests.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/versions/history_place.h"

#define BUCKET_MAX 256

/* An object, or a small file. */
struct bucket_item {
    char name[256]; /* empty: none */
    uint8_t *bytes;
    size_t length;
    uint64_t version;
    bool is_young;
};

struct bucket {
    pthread_mutex_t lock;
    pthread_cond_t unlocked;
    struct bucket_item items[BUCKET_MAX];
    uint64_t last_version;
    char held[8][65]; /* keys of locked repositories */
    const void *collector;
    /* What a test counts or breaks. */
    unsigned reads;
    unsigned whole_reads; /* of a file that was not known */
    unsigned drops;
    bool ignores_locks;
    bool loses_answer; /* the next write is done, but its outcome stays unknown */
    bool fails;        /* no request gets an answer */
    bool refuses_drop;
};

struct bucket_place {
    struct history_place base; /* first */
    struct bucket *bucket;
};

static inline struct bucket *bucket_begin(struct history_place *place)
{
    struct bucket *bucket = ((struct bucket_place *)place)->bucket;

    pthread_mutex_lock(&bucket->lock);
    return bucket;
}

static inline enum zt_status bucket_end(struct bucket *bucket, enum zt_status status,
                                        struct zt_error *error)
{
    pthread_mutex_unlock(&bucket->lock);
    return status == ZT_OK ? ZT_OK : zt_fail(error, status, NULL, ZT_NO_OFFSET, "of the bucket");
}

static inline struct bucket_item *bucket_find(struct bucket *bucket, const char *name)
{
    for (size_t i = 0; i < BUCKET_MAX; i++)
        if (strcmp(bucket->items[i].name, name) == 0)
            return &bucket->items[i];
    return NULL;
}

static inline struct bucket_item *bucket_put(struct bucket *bucket, const char *name,
                                             const void *bytes, size_t length)
{
    struct bucket_item *item = bucket_find(bucket, name);

    if (item == NULL)
        item = bucket_find(bucket, "");
    assert_non_null(item);
    assert_true(strlen(name) < sizeof(item->name));
    strcpy(item->name, name);
    free(item->bytes);
    item->bytes = malloc(length + 1);
    assert_non_null(item->bytes);
    memcpy(item->bytes, bytes, length);
    item->length = length;
    item->version = ++bucket->last_version;
    return item;
}

static inline void bucket_take(struct bucket_item *item)
{
    free(item->bytes);
    memset(item, 0, sizeof(*item));
}

static inline void bucket_object(const uint8_t sha256[32], char out_name[256])
{
    char *at = out_name + sprintf(out_name, "objects/%02x/", sha256[0]);

    for (unsigned i = 1; i < 32; i++)
        at += sprintf(at, "%02x", sha256[i]);
}

/* --- small files --- */

static inline enum zt_status place_read(struct history_place *place, const char *name,
                                        const char *known, size_t most,
                                        struct history_text *out_text, struct zt_error *error)
{
    struct bucket *bucket = bucket_begin(place);
    const struct bucket_item *item = bucket_find(bucket, name);

    assert_true(known == NULL || known[0] != '\0');
    bucket->reads++;
    if (bucket->fails)
        return bucket_end(bucket, ZT_UNAVAILABLE, error);
    if (item == NULL)
        return bucket_end(bucket, ZT_NOT_FOUND, error);
    *out_text = (struct history_text){.length = item->length < most ? item->length : most};
    snprintf(out_text->version, sizeof(out_text->version), "%llu",
             (unsigned long long)item->version);
    if (known == NULL || strcmp(known, out_text->version) != 0) {
        bucket->whole_reads++;
        out_text->bytes = malloc(out_text->length + 1);
        assert_non_null(out_text->bytes);
        memcpy(out_text->bytes, item->bytes, out_text->length);
    }
    return bucket_end(bucket, ZT_OK, error);
}

static inline enum zt_status place_write(struct history_place *place, const char *name,
                                         struct history_text *text, const char *expected,
                                         struct zt_error *error)
{
    struct bucket *bucket = bucket_begin(place);
    const struct bucket_item *item = bucket_find(bucket, name);
    char version[32] = "";

    assert_true(place->is_writable);
    if (bucket->fails)
        return bucket_end(bucket, ZT_UNAVAILABLE, error);
    if (item != NULL)
        snprintf(version, sizeof(version), "%llu", (unsigned long long)item->version);
    if (expected != NULL && strcmp(expected, version) != 0)
        return bucket_end(bucket, ZT_STALE, error);
    item = bucket_put(bucket, name, text->bytes, text->length);
    if (bucket->loses_answer) {
        bucket->loses_answer = false;
        return bucket_end(bucket, ZT_UNAVAILABLE, error);
    }
    sprintf(text->version, "%llu", (unsigned long long)item->version);
    return bucket_end(bucket, ZT_OK, error);
}

static inline void place_remove(struct history_place *place, const char *name)
{
    struct bucket *bucket = bucket_begin(place);
    struct bucket_item *item = bucket_find(bucket, name);

    if (item != NULL)
        bucket_take(item);
    pthread_mutex_unlock(&bucket->lock);
}

/* Writes the name that an item has directly below a folder; "": none. */
static inline void bucket_below(const struct bucket_item *item, const char *folder,
                                char out_name[256])
{
    const size_t length = strlen(folder);

    out_name[0] = '\0';
    if (strncmp(item->name, folder, length) == 0 && item->name[length] == '/')
        strcpy(out_name, item->name + length + 1);
    out_name[strcspn(out_name, "/")] = '\0';
}

/* visit may remove files. */
static inline enum zt_status place_list(struct history_place *place, const char *folder,
                                        bool (*visit)(void *context, const char *name),
                                        void *context, struct zt_error *error)
{
    char(*names)[256] = calloc(BUCKET_MAX, sizeof(*names));
    struct bucket *bucket = bucket_begin(place);
    bool goes_on = true;
    size_t count = 0;

    assert_non_null(names);
    for (size_t i = 0; i < BUCKET_MAX; i++) {
        bool is_new = true;

        bucket_below(&bucket->items[i], folder, names[count]);
        for (size_t j = 0; j < count; j++)
            is_new = is_new && strcmp(names[j], names[count]) != 0;
        count += is_new && names[count][0] != '\0';
    }
    pthread_mutex_unlock(&bucket->lock);
    for (size_t i = 0; i < count && goes_on; i++)
        goes_on = visit(context, names[i]);
    free(names);
    return goes_on ? ZT_OK : zt_fail_memory(error, "a test");
}

/* --- kept files --- */

/* The store's file has the path as its content. */
static inline enum zt_status place_keep(struct history_place *place, const char *path,
                                        const struct file_identity *identity,
                                        const uint8_t sha256[32], bool *out_is_new,
                                        struct zt_error *error)
{
    struct bucket *bucket = bucket_begin(place);
    char name[256];

    (void)identity;
    bucket_object(sha256, name);
    *out_is_new = bucket_find(bucket, name) == NULL;
    bucket_put(bucket, name, path, strlen(path))->is_young = true;
    return bucket_end(bucket, ZT_OK, error);
}

static inline enum zt_status place_find(struct history_place *place, const uint8_t sha256[32],
                                        bool names_it, struct file_identity *out_identity,
                                        struct zt_error *error)
{
    struct bucket *bucket = bucket_begin(place);
    struct bucket_item *item;
    char name[256];

    bucket_object(sha256, name);
    item = bucket_find(bucket, name);
    if (item == NULL)
        return bucket_end(bucket, ZT_NOT_FOUND, error);
    item->is_young = item->is_young || names_it;
    *out_identity = (struct file_identity){.size_bytes = item->length};
    return bucket_end(bucket, ZT_OK, error);
}

static inline enum zt_status place_list_objects(struct history_place *place, uint8_t first,
                                                bool (*visit)(void *context,
                                                              const struct history_object *object),
                                                void *context, struct zt_error *error)
{
    struct bucket *bucket = bucket_begin(place);
    char prefix[16];

    sprintf(prefix, "objects/%02x/", first);
    for (size_t i = 0; i < BUCKET_MAX; i++) {
        const struct bucket_item *item = &bucket->items[i];
        struct history_object object = {.size_bytes = item->length, .is_young = item->is_young};
        unsigned digit;

        if (strncmp(item->name, prefix, strlen(prefix)) != 0)
            continue;
        object.sha256[0] = first;
        for (unsigned j = 1; j < 32; j++) {
            assert_int_equal(sscanf(item->name + strlen(prefix) + 2 * (j - 1), "%2x", &digit), 1);
            object.sha256[j] = (uint8_t)digit;
        }
        assert_true(visit(context, &object));
    }
    return bucket_end(bucket, ZT_OK, error);
}

static inline bool place_drop(struct history_place *place, const uint8_t sha256[32])
{
    struct bucket *bucket = bucket_begin(place);
    struct bucket_item *item;
    char name[256];
    bool is_gone;

    bucket->drops++;
    bucket_object(sha256, name);
    item = bucket_find(bucket, name);
    is_gone =
        item != NULL && !item->is_young && !bucket->refuses_drop && bucket->collector == place;
    if (is_gone)
        bucket_take(item);
    pthread_mutex_unlock(&bucket->lock);
    return is_gone;
}

/* --- other servers --- */

static inline char *bucket_holder(struct bucket *bucket, const char *key)
{
    for (size_t i = 0; i < 8; i++)
        if (strcmp(bucket->held[i], key) == 0)
            return bucket->held[i];
    return NULL;
}

static inline enum zt_status place_lock(struct history_place *place, const char *key, int64_t by_ms,
                                        void **out_lock, struct zt_error *error)
{
    struct bucket *bucket = bucket_begin(place);
    char *free_place;

    while (!bucket->ignores_locks && bucket_holder(bucket, key) != NULL) {
        if (clock_ms() >= by_ms)
            return bucket_end(bucket, ZT_ARGUMENT, error);
        thread_wait_ms(&bucket->unlocked, &bucket->lock, 10);
    }
    free_place = bucket_holder(bucket, "");
    assert_non_null(free_place);
    strcpy(free_place, key);
    *out_lock = free_place;
    return bucket_end(bucket, ZT_OK, error);
}

static inline void place_unlock(struct history_place *place, void *lock)
{
    struct bucket *bucket = bucket_begin(place);

    memset(lock, 0, 65);
    pthread_cond_broadcast(&bucket->unlocked);
    pthread_mutex_unlock(&bucket->lock);
}

static inline bool place_begin_collecting(struct history_place *place)
{
    struct bucket *bucket = bucket_begin(place);
    const bool is_mine = bucket->collector == NULL;

    if (is_mine)
        bucket->collector = place;
    pthread_mutex_unlock(&bucket->lock);
    return is_mine;
}

static inline void place_end_collecting(struct history_place *place)
{
    struct bucket *bucket = bucket_begin(place);

    assert_ptr_equal(bucket->collector, place);
    bucket->collector = NULL;
    pthread_mutex_unlock(&bucket->lock);
}

static inline bool place_has_path(struct history_place *place, const char *path, bool asks)
{
    (void)place;
    (void)path;
    (void)asks;
    return false;
}

static inline void place_close(struct history_place *place)
{
    free(place);
}

static inline struct history_place *bucket_open(struct bucket *bucket, bool is_writable)
{
    static const struct history_place_ops ops = {
        .read = place_read,
        .write = place_write,
        .remove = place_remove,
        .list = place_list,
        .keep = place_keep,
        .find = place_find,
        .list_objects = place_list_objects,
        .drop = place_drop,
        .lock = place_lock,
        .unlock = place_unlock,
        .begin_collecting = place_begin_collecting,
        .end_collecting = place_end_collecting,
        .has_path = place_has_path,
        .close = place_close,
    };
    struct bucket_place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    place->base =
        (struct history_place){.ops = &ops, .is_shared = true, .is_writable = is_writable};
    place->bucket = bucket;
    return &place->base;
}

#endif
