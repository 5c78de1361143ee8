/* Shared by the files of staged objects. */
#ifndef HUB_WRITE_STAGED_WORK_H
#define HUB_WRITE_STAGED_WORK_H

#include "hub/write/staged_objects.h"
#include "upload/shared/kept_data.h"

#define STAGED_DATA        "data"
#define STAGED_DESCRIPTION "staged"

struct staged_parts;

enum staged_state { STAGED_ARRIVING, STAGED_READY, STAGED_TAKEN, STAGED_GONE };

struct staged_object {
    struct kept_upload kept; /* entry.model: the repository; entry.received: bytes */
    char owner[CLIENT_SIZE]; /* constant */
    struct job job;          /* removes it */
    _Atomic(enum staged_state) state;
    struct kept_data data;      /* its users: the requests that send it, or parts of it */
    struct staged_parts *parts; /* NULL: it arrives whole; constant */
    /* Constant once the object is ready; for an object in parts, from the beginning. */
    uint8_t sha256[32];
    uint64_t length;
};

/* staged_objects.c: makes the file of an object that is not in the table yet. Returns false with
 * failure set. */
bool staged_make(struct staged_object *object, const struct staged_origin *origin,
                 struct failure *failure);

/* Makes an object in memory, with one reference to kept. Returns NULL if out of memory. */
struct staged_object *staged_new(struct server *server, const char *id, const char *repo,
                                 const char *owner);

/* --- staged_files.c --- */

/* Writes the description of a durable file, durably. On a worker. */
enum zt_status staged_describe(const struct staged_object *object, struct zt_error *error);

/* Opens an object that an earlier process left (kept_kind.open). */
enum kept_opened staged_files_open(struct server *server, const char *id,
                                   struct kept_upload **out_upload);

#endif
