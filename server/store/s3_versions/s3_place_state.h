/* Shared by the files of this room. */
#ifndef STORE_S3_VERSIONS_S3_PLACE_STATE_H
#define STORE_S3_VERSIONS_S3_PLACE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/s3_versions/s3_place.h"
#include "store/s3_write/s3_write.h"

/* Relative to the prefix. They are not models' names, so they are neither listed nor served. */
#define S3_VERSIONS_PREFIX ".ztserve/versions/"
#define S3_OBJECTS_PREFIX  S3_VERSIONS_PREFIX "objects/"
/* The prefix, "ab/", 62 digits and NUL. */
#define S3_OBJECT_KEY_SIZE (sizeof(S3_OBJECTS_PREFIX) + 65)
/* The longest other key: of a tree. */
#define S3_VERSIONS_KEY_SIZE 256

/* A kept file older than this is copied again before a commit names it. */
#define S3_FRESH_S 1800
/* A collection removes no file that was younger than this when it began. The time in between is for
 * the change. */
#define S3_YOUNG_S 3600

struct s3_listed;

struct s3_place {
    struct history_place base; /* first */
    struct s3_store *store;
    int64_t fresh_s;
    int64_t young_s;
    atomic_int_least64_t ahead_s; /* the service's clock, compared with this machine's */
    pthread_mutex_t lock;         /* guards what follows */
    pthread_cond_t changed;
    struct s3_claim *renewed;
    struct s3_claim *collecting; /* one of them; NULL: this server does not collect */
    int64_t collecting_since_ms;
    struct s3_listed *listed; /* s3_kept.c: of the thread that collects; NULL: none */
    pthread_t renewer;
    bool has_renewer;
    bool is_ending;
};

static inline struct s3_place *s3_place_of(struct history_place *place)
{
    return (struct s3_place *)place;
}

/* Writes the key of a small file or a folder. Returns false if it is too long. */
bool s3_versions_key(const char *name, char out_key[S3_VERSIONS_KEY_SIZE]);

/* Returns true if other servers may write to the bucket. */
static inline bool s3_place_has_others(const struct s3_place *place)
{
    return atomic_load(&place->store->writing->mode) != S3_MODE_ALONE;
}

/* Notes the service's clock from a response, or the lack of it. */
void s3_place_note_clock(struct s3_place *place, const struct object_version *version);
/* The service's clock now. */
int64_t s3_place_now_s(struct s3_place *place);

/* --- s3_locks.c: claims that last until they are released; a thread renews them --- */

bool s3_locks_start(struct s3_place *place);
void s3_locks_stop(struct s3_place *place);

/* Claims a name of our own, and waits for another server for at most so long. Fails like
 * s3_claim. */
enum zt_status s3_lock_take(struct s3_place *place, const char *name, int64_t wait_ms,
                            struct s3_claim **out_claim, struct zt_error *error);
void s3_lock_release(struct s3_place *place, struct s3_claim *claim);
/* Renews a writer's claim while that writer waits for something else. The claim is not used until
 * it is returned. */
void s3_lock_lend(struct s3_place *place, struct s3_claim *claim);
void s3_lock_return(struct s3_place *place, struct s3_claim *claim);
/* Returns how long requests under the claim with this name may take: 0 if it is not ours any more,
 * INT64_MAX if no other server can take it. */
int64_t s3_lock_left_ms(struct s3_place *place, const char *name);
/* Keeps all claims of this server until they count as a dead server's, because a request without a
 * response may still be carried out. They are not released earlier. */
void s3_locks_doubt(struct s3_place *place);

/* Operations of history_place.h. */
enum zt_status s3_place_lock(struct history_place *place, const char *key, int64_t by_ms,
                             void **out_lock, struct zt_error *error);
void s3_place_unlock(struct history_place *place, void *lock);
bool s3_place_begin_collecting(struct history_place *place);
void s3_place_end_collecting(struct history_place *place);
/* Returns true if this server may still collect. */
bool s3_place_is_collecting(struct s3_place *place);
/* Returns how long ago the collection began. Files that were kept less than S3_YOUNG_S before that
 * may be named by a commit that the collection has not seen. */
int64_t s3_place_collecting_s(struct s3_place *place);

/* --- s3_kept.c: operations of history_place.h --- */

enum zt_status s3_place_keep(struct history_place *place, const char *path,
                             const struct file_identity *identity, const uint8_t sha256[32],
                             bool *out_is_new, struct zt_error *error);
enum zt_status s3_place_keep_staged(struct history_place *place, struct staged_file *file,
                                    const uint8_t sha256[32], bool *out_is_new,
                                    struct zt_error *error);
enum zt_status s3_place_find(struct history_place *place, const uint8_t sha256[32], bool names_it,
                             struct file_identity *out_identity, struct zt_error *error);
enum zt_status s3_place_open_kept(struct history_place *place, const uint8_t sha256[32],
                                  struct zt_source **out_source, struct file_identity *out_identity,
                                  struct zt_error *error);
enum zt_status s3_place_list_objects(struct history_place *place, uint8_t first,
                                     bool (*visit)(void *context,
                                                   const struct history_object *object),
                                     void *context, struct zt_error *error);
void s3_place_forget_list(struct s3_place *place);
bool s3_place_drop(struct history_place *place, const uint8_t sha256[32]);

/* --- s3_restored.c: operations of history_place.h --- */

enum zt_status s3_place_restore(struct history_place *place, const uint8_t sha256[32],
                                const char *path, struct zt_error *error);
enum zt_status s3_place_remove_path(struct history_place *place, const char *path,
                                    const struct file_identity *identity, struct zt_error *error);

/* --- s3_kept.c, for s3_restored.c --- */

void s3_object_key(const uint8_t sha256[32], char out_key[S3_OBJECT_KEY_SIZE]);
/* Finds a kept file that is what its name says. Returns ZT_NOT_FOUND, ZT_IO if it is something
 * else, ZT_UNAVAILABLE. */
enum zt_status s3_object_find(struct s3_place *place, const uint8_t sha256[32],
                              struct object_version *out_version, struct zt_error *error);

#endif
