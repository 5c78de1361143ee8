/* Uploads in progress, of every kind: for the limits of one client, and for the operator's list at
 * GET /v1/uploads. Safe from any thread. */
#ifndef UPLOAD_SHARED_REGISTRY_H
#define UPLOAD_SHARED_REGISTRY_H

#include <stdatomic.h>
#include <time.h>

#include "base/json_write.h"
#include "base/name_filter.h"
#include "base/server.h"
#include "http/exchange/client.h"
#include "store/store.h"

/* A file is the body of one request; the other kinds last for several requests, until they are done
 * or expire. What is staged waits for the commit that gives it a path. */
enum upload_kind {
    UPLOAD_KIND_FILE,
    UPLOAD_KIND_WRITER,
    UPLOAD_KIND_RESUMABLE,
    UPLOAD_KIND_STAGED,
    UPLOAD_KIND_XET,
    UPLOAD_KINDS
};

#define UPLOAD_ID_SIZE 33 /* 32 hex digits of a random number, and NUL */

struct registry_entry {
    enum upload_kind kind;
    char id[UPLOAD_ID_SIZE];
    char model[MODEL_NAME_MAX + 1]; /* empty: a part of a file, whose name comes later */
    char client[CLIENT_SIZE]; /* whose limits it counts toward; empty (none) after a restart */
    time_t created;
    _Atomic(time_t) active;        /* last byte or command */
    atomic_uint_fast64_t received; /* bytes */
    atomic_uint_fast64_t length;   /* that will have been received at the end; 0: not known */
    struct registry_entry *next;
};

/* expire_s: how long the kinds that last for several requests may stay idle. NULL if out of
 * memory. */
struct registry *registry_new(int64_t expire_s);
/* Changes expire_s. */
void registry_set_expiry(struct registry *registry, int64_t expire_s);
/* The registry must be empty. Takes NULL. */
void registry_free(struct registry *registry);

void registry_make_id(char out_id[UPLOAD_ID_SIZE]);
/* Whether a text has the form of an id. */
bool registry_id_is_valid(struct zt_text text);

/* The client whose limits an upload counts toward: the name of whoever sent the request or, if
 * clients need not be known, its address. */
void registry_client(struct request *request, char out_client[CLIENT_SIZE]);

/* The entry is borrowed until registry_remove. False if the client already has limit entries (0: no
 * limit). Bodies are counted separately, and so is what is staged; the other kinds are counted
 * together. */
bool registry_add(struct registry *registry, struct registry_entry *entry, unsigned limit);
/* Harmless for an entry that is not in the registry. */
void registry_remove(struct registry *registry, struct registry_entry *entry);

/* {"uploads": [{"id","kind","model","created","active","received"[, "length"][, "expires"]}]}
 * by time of creation; those of models that pass the filter. */
void registry_write(struct registry *registry, struct name_filter filter, struct json *json);
/* The handler of GET /v1/uploads. */
enum outcome uploads_list(struct request *request);

#endif
