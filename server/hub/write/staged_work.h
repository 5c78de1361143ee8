/* What the files of staged objects share. */
#ifndef HUB_WRITE_STAGED_WORK_H
#define HUB_WRITE_STAGED_WORK_H

#include "hub/write/staged_objects.h"

#define STAGED_DATA        "data"
#define STAGED_DESCRIPTION "staged"

struct staged_parts;

enum staged_state { STAGED_ARRIVING, STAGED_READY, STAGED_TAKEN, STAGED_GONE };

struct staged_object {
    struct kept_upload kept; /* entry.model: the repository; entry.received: bytes */
    struct job job;          /* removes it */
    _Atomic(enum staged_state) state;
    struct stored_upload *data; /* while it arrives */
    struct staged_parts *parts; /* NULL: it comes as a whole; constant */
    /* Constant once it is ready; of what comes in parts from the beginning. */
    uint8_t sha256[32];
    uint64_t length;
};

/* staged_objects.c: a file of an object that is not in the table yet. False: failure is set. */
bool staged_make(struct staged_object *object, const struct staged_origin *origin,
                 struct failure *failure);

/* staged_parts.c: ends an object that nobody is sending a part of. False: somebody is. */
bool staged_parts_end(struct staged_object *object);

/* In memory, with one reference to kept. NULL if out of memory. */
struct staged_object *staged_new(struct server *server, const char *id, const char *repo);

/* --- staged_files.c --- */

/* Writes the description, durably, of a file that is durable. On a worker. */
enum zt_status staged_describe(const struct staged_object *object, struct zt_error *error);

/* Of a description; changes the text. False: it is not whole, or not ours. */
struct staged_description {
    char repo[HUB_REPO_SIZE];
    uint8_t sha256[32];
    uint64_t length;
    uint64_t created;
};
bool staged_description_parse(char *text, struct staged_description *out_description);

/* Opens an object as an earlier process left it (kept_kind.open). */
enum kept_opened staged_files_open(struct server *server, const char *id,
                                   struct kept_upload **out_upload);

#endif
