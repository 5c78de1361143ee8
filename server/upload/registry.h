/* Uploads in progress, of every kind, for the operator's list and for the limits of one client. Safe from any thread.
 */
#ifndef UPLOAD_REGISTRY_H
#define UPLOAD_REGISTRY_H

#include <time.h>

#include "http/json_write.h"
#include "model/store.h"
#include "runtime/server.h"

enum upload_kind { UPLOAD_KIND_FILE, UPLOAD_KIND_WRITER, UPLOAD_KIND_RESUMABLE };

#define UPLOAD_ID_SIZE 33 /* 32 hex digits of a random number, and NUL */

struct registry_entry {
    enum upload_kind kind;
    char id[UPLOAD_ID_SIZE];
    char model[MODEL_NAME_MAX + 1];
    char client[64]; /* whose limits it counts for: the address; after a restart empty */
    time_t created;
    _Atomic(time_t) active;        /* last byte or command */
    atomic_uint_fast64_t received; /* bytes */
    struct registry_entry *next;
};

struct registry *registry_new(void);
void registry_free(struct registry *registry);

void registry_make_id(char out_id[UPLOAD_ID_SIZE]);

/* The entry is the caller's, and stays until registry_remove. False when the client has limit such entries of this kind
 * already (0: no limit). */
bool registry_add(struct registry *registry, struct registry_entry *entry, unsigned limit);
void registry_remove(struct registry *registry, struct registry_entry *entry);

/* {"uploads": [{"id","kind","model","created","active","received"[, "expires"]}]} by time of creation. */
void registry_write(struct registry *registry, struct json *json);

#endif
