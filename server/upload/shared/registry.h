/* Uploads in progress, of every kind: enforces the limits per client, and lists them for the
 * operator at GET /v1/uploads. Any thread may call these functions. */
#ifndef UPLOAD_SHARED_REGISTRY_H
#define UPLOAD_SHARED_REGISTRY_H

#include <stdatomic.h>
#include <time.h>

#include "base/json_write.h"
#include "base/name_filter.h"
#include "base/server.h"
#include "http/exchange/client.h"
#include "store/store.h"

/* A file is the body of one request. The other kinds last for several requests, until they are done
 * or expire. A staged file waits for the commit that gives it a path. */
enum upload_kind {
    UPLOAD_KIND_FILE,
    UPLOAD_KIND_WRITER,
    UPLOAD_KIND_RESUMABLE,
    UPLOAD_KIND_STAGED,
    UPLOAD_KIND_XET,
    UPLOAD_KIND_MULTIPART,
    UPLOAD_KINDS
};

#define UPLOAD_ID_SIZE 33 /* 32 hex digits of a random number, and NUL */

struct registry_entry {
    enum upload_kind kind;
    char id[UPLOAD_ID_SIZE];
    char model[MODEL_NAME_MAX + 1]; /* empty: a part of a file that will be named later */
    bool is_file;                   /* model is the path of a file */
    char client[CLIENT_SIZE]; /* the client whose limits it counts against; empty (none) after a
                               * restart */
    time_t created;
    _Atomic(time_t) active;        /* last byte or command, to be shown */
    _Atomic(int64_t) touched_ms;   /* the same as clock_ms; expiry counts from it */
    atomic_uint_fast64_t received; /* bytes */
    atomic_uint_fast64_t length;   /* total bytes expected; 0: unknown */
    struct registry_entry *next;
};

/* expire_s: how long uploads that last for several requests may be idle. Returns NULL if out of
 * memory. */
struct registry *registry_new(int64_t expire_s);
/* Changes expire_s. */
void registry_set_expiry(struct registry *registry, int64_t expire_s);
/* The registry must be empty. Accepts NULL. */
void registry_free(struct registry *registry);

void registry_make_id(char out_id[UPLOAD_ID_SIZE]);
/* Returns true if a text has the form of an id. */
bool registry_id_is_valid(struct zt_text text);

/* Writes the client whose limits an upload counts against: the name of the request's sender or, if
 * clients may be anonymous, the address. */
void registry_client(struct request *request, char out_client[CLIENT_SIZE]);

/* Shortens a client's name: a name that is too long is cut, and ends in a hash of the whole. */
void registry_client_name(const char *name, char out_client[CLIENT_SIZE]);

/* The entry is borrowed until registry_remove. Returns false if the client already has limit
 * entries (0: no limit). The streaming writer, resumable and multipart uploads are counted
 * together, each other kind by itself. */
bool registry_add(struct registry *registry, struct registry_entry *entry, unsigned limit);
/* Does nothing for an entry that is not in the registry. */
void registry_remove(struct registry *registry, struct registry_entry *entry);

/* The body of one request (UPLOAD_KIND_FILE), which counts against its client's limit. Zeroed: not
 * registered. */
struct counted_body {
    struct server *server;
    struct registry_entry entry;
    bool is_registered;
};

/* Registers a body. model is the model or repository, borrowed during the call; client is the
 * client whose limit counts, NULL for the sender; length is UINT64_MAX if unknown. Returns true if
 * it has refused the request because the client has too many. */
bool counted_body_refuse(struct request *request, struct counted_body *body, const char *model,
                         const char *client, uint64_t length);
void counted_body_note(struct counted_body *body, uint64_t received);
/* Call it before the response, after which the client may begin another upload. Does nothing for a
 * body that is not registered. */
void counted_body_end(struct counted_body *body, bool is_done);

/* Writes {"uploads": [{"id","kind","model","created","active","received"[, "length"][,
 * "expires"]}]}, sorted by time of creation, for the models that pass the filter. */
void registry_write(struct registry *registry, struct name_filter filter, struct json *json);
/* Handles GET /v1/uploads. */
enum outcome uploads_list(struct request *request);

#endif
