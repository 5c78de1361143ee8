/* Staged objects that arrive in parts: several requests write into one file concurrently. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/lfs_parts.h"
#include "hub/write/staged_work.h"
#include "store/staging.h"

struct staged_parts {
    uint64_t part_length;
    size_t count;
    atomic_bool is_there[];
};

/* Held while an object is looked up and begun, so that the requests for its first parts find the
 * same one. */
static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;

struct sought {
    const struct staged_origin *origin;
    const struct staged_whole *whole;
};

static bool is_sought(const void *context, const struct kept_upload *upload)
{
    const struct sought *sought = context;
    const struct staged_object *object = (const struct staged_object *)upload;

    return upload->kind == &staged_kind && object->parts != NULL &&
           atomic_load(&object->state) == STAGED_ARRIVING &&
           object->length == sought->origin->length &&
           object->parts->part_length == sought->whole->part_length &&
           memcmp(object->sha256, sought->whole->sha256, sizeof(object->sha256)) == 0 &&
           strcmp(object->owner, sought->origin->owner) == 0 &&
           strcmp(upload->entry.model, sought->origin->repo) == 0;
}

static struct staged_object *search(struct server *server, const struct staged_origin *origin,
                                    const struct staged_whole *whole)
{
    const struct sought sought = {origin, whole};

    return (struct staged_object *)kept_uploads_search(server->kept, is_sought, &sought);
}

static struct staged_parts *new_parts(uint64_t length, uint64_t part_length)
{
    const size_t count = (size_t)lfs_part_count(length, part_length);
    struct staged_parts *parts =
        count <= LFS_PARTS_MAX ? calloc(1, sizeof(*parts) + count * sizeof(parts->is_there[0]))
                               : NULL;

    if (parts == NULL)
        return NULL;
    parts->part_length = part_length;
    parts->count = count;
    return parts;
}

static struct staged_object *begin(struct server *server, const struct staged_origin *origin,
                                   const struct staged_whole *whole, struct failure *failure)
{
    char id[UPLOAD_ID_SIZE];
    struct staged_object *object;

    registry_make_id(id);
    object = staged_new(server, id, origin->repo, origin->owner);
    if (object != NULL) {
        object->parts = new_parts(origin->length, whole->part_length);
        object->length = origin->length;
        memcpy(object->sha256, whole->sha256, sizeof(object->sha256));
    }
    if (object == NULL || object->parts == NULL) {
        failure_no_memory(failure, "an upload");
    } else if (staged_make(object, origin, failure)) {
        staged_file_return_space(object->data.file, UINT64_MAX);
        return object;
    }
    kept_upload_release(object);
    return NULL;
}

static bool enter(struct staged_object *object, struct failure *failure)
{
    return kept_data_enter(&object->data, failure) ||
           failure_refuse(failure, PROBLEM_CONFLICT,
                          "all parts of this object have already arrived");
}

struct staged_object *staged_join(struct server *server, const struct staged_origin *origin,
                                  const struct staged_whole *whole, struct failure *failure)
{
    struct staged_object *object;
    bool is_entered;

    pthread_mutex_lock(&join_lock);
    object = search(server, origin, whole);
    is_entered = object != NULL && enter(object, failure);
    if (object == NULL) {
        object = begin(server, origin, whole, failure);
        is_entered = object != NULL;
    }
    pthread_mutex_unlock(&join_lock);
    if (is_entered)
        return object;
    kept_upload_release(object);
    return NULL;
}

void staged_leave(struct staged_object *object)
{
    kept_data_leave(&object->data);
    kept_upload_touch(&object->kept);
    kept_upload_release(object);
}

static uint64_t length_of(const struct staged_object *object, uint64_t part)
{
    const uint64_t rest = object->length - part * object->parts->part_length;

    return rest < object->parts->part_length ? rest : object->parts->part_length;
}

void staged_mark_part(struct staged_object *object, uint64_t part, bool is_there)
{
    bool was_there;

    assert(part < object->parts->count);
    was_there = atomic_exchange(&object->parts->is_there[part], is_there);
    if (is_there && !was_there)
        atomic_fetch_add(&object->kept.entry.received, length_of(object, part));
    if (!is_there && was_there)
        atomic_fetch_sub(&object->kept.entry.received, length_of(object, part));
}

static size_t count_missing(const struct staged_object *object)
{
    size_t missing = 0;

    for (size_t i = 0; i < object->parts->count; i++)
        missing += !atomic_load(&object->parts->is_there[i]);
    return missing;
}

static bool close_whole(struct staged_object *object, struct failure *failure)
{
    size_t missing;

    if (!kept_data_close(&object->data))
        return failure_refuse(failure, PROBLEM_CONFLICT,
                              "a part of this object is still arriving, or it is being finished");
    missing = count_missing(object);
    if (missing == 0 && kept_data_enter_closed(&object->data, failure))
        return true;
    kept_data_reopen(&object->data);
    return failure_refuse(failure, PROBLEM_CONFLICT,
                          "%zu of the %zu parts of this object have not arrived", missing,
                          object->parts->count);
}

struct staged_object *staged_close(struct server *server, const struct staged_origin *origin,
                                   const struct staged_whole *whole, struct failure *failure)
{
    struct staged_object *object = search(server, origin, whole);

    if (object == NULL) {
        failure_refuse(failure, PROBLEM_UPLOAD_NOT_FOUND,
                       "no part of this object has arrived, or they have expired");
        return NULL;
    }
    if (close_whole(object, failure))
        return object;
    kept_upload_release(object);
    return NULL;
}
