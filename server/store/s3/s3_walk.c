/* Walks part of the bucket for files of every kind, with a list of the keys below a folder. A
 * folder exists as long as a key begins with it. */
#include <stdio.h>
#include <string.h>

#include "store/s3/s3_listing.h"

struct walk {
    store_visit visit;
    void *context;
    size_t skipped; /* length of the folder and its slash in every key */
    bool is_deep;
    bool has_keys;
    struct s3_listing *listing;
    uint64_t notes;              /* value of the note counter when the list began */
    char above[BUCKET_KEY_SIZE]; /* the folder of the last key; it was visited */
};

/* Visits the folders of a key that did not contain the last key. Keys come in order. Returns false
 * to stop. */
static bool see_folders(struct walk *walk, const char *key)
{
    const char *slash = strchr(key + walk->skipped, '/');

    for (; slash != NULL; slash = walk->is_deep ? strchr(slash + 1, '/') : NULL) {
        const size_t length = (size_t)(slash - key);
        const struct zt_text folder = {key, length};

        if (!store_path_is_served(folder))
            return true;
        if (strncmp(walk->above, key, length) == 0 &&
            (walk->above[length] == '\0' || walk->above[length] == '/'))
            continue;
        snprintf(walk->above, sizeof(walk->above), "%.*s", (int)length, key);
        if (!walk->visit(walk->context, walk->above, NULL))
            return false;
    }
    return true;
}

/* Notes a model's file that another server has written since the bucket was last listed: whoever
 * lists a folder may open its files next. */
static void note_new(const struct walk *walk, const struct listed_object *object)
{
    struct object_version known;
    size_t length;
    unsigned rank;

    if (!model_path_split(object->key, &length, &rank) ||
        (s3_listing_find(walk->listing, object->key, &known) == S3_KNOWN &&
         strcmp(known.etag, object->etag) == 0 && known.size_bytes == object->size_bytes &&
         known.modified_s == object->modified_s))
        return;
    s3_listing_note_listed(walk->listing, object, walk->notes);
}

static bool take(void *context, const struct listed_object *object)
{
    struct walk *walk = context;
    struct file_identity identity;

    walk->has_keys = true;
    if (object->etag == NULL)
        return see_folders(walk, object->key);
    if (strlen(object->key) >= sizeof(walk->above) || !see_folders(walk, object->key))
        return strlen(object->key) >= sizeof(walk->above);
    if (!store_path_is_served(zt_text_from(object->key)) ||
        (!walk->is_deep && strchr(object->key + walk->skipped, '/') != NULL))
        return true;
    note_new(walk, object);
    identity = bucket_identity(object->etag, object->size_bytes, object->modified_s);
    return walk->visit(walk->context, object->key, &identity);
}

enum zt_status s3_walk(struct store *base, const char *folder, bool is_deep, store_visit visit,
                       void *context, struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    struct walk walk = {.visit = visit,
                        .context = context,
                        .is_deep = is_deep,
                        .listing = store->listing,
                        .notes = s3_listing_notes(store->listing)};
    char beginning[BUCKET_KEY_SIZE + 1];
    enum zt_status status;

    if (folder[0] != '\0' && !store_path_is_served(zt_text_from(folder)))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    snprintf(beginning, sizeof(beginning), "%s%s", folder, folder[0] == '\0' ? "" : "/");
    walk.skipped = strlen(beginning);
    snprintf(walk.above, sizeof(walk.above), "%s", folder);
    if (!bucket_may_ask(&store->bucket))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store is unreachable");
    status = (is_deep ? bucket_list : bucket_list_level)(&store->bucket, beginning,
                                                         BUCKET_USUAL_TIME, take, &walk, error);
    if (status == ZT_OK && !walk.has_keys && folder[0] != '\0')
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    if (status == ZT_ARGUMENT && error != NULL)
        error->status = ZT_UNAVAILABLE;
    return status == ZT_ARGUMENT ? ZT_UNAVAILABLE : status;
}
