/* Staged objects: files that clients send before the commit that gives them a path. Each is
 * identified by its repository, its owner and its SHA-256. They are kept uploads (kept_uploads.h):
 * they are in folders of the store, survive restarts, and are removed after upload.expire_s without
 * use.
 *
 *   ARRIVING --finished--> READY <--put back-- TAKEN --used up--> GONE
 *       |                    |
 *       +----abandoned-------+-----expired---------------------->
 *
 * How to make one:
 *
 *     object = staged_begin(server, &origin, &failure);
 *     staged_write(object, 0, bytes, length, &failure);    … in any order, from any thread
 *     staged_finish(object, sha256, &failure);             durable, and found from now on
 *
 * or staged_abandon, at any time before it is finished. The caller that writes the bytes also
 * hashes them, and guarantees the SHA-256: the file will be served under it.
 *
 * A commit takes an object, so that no other commit can use it, and puts it back or uses it up.
 *
 * An object belongs to the client that sent it (its owner). Other clients with globs cannot see it,
 * and may stage the same bytes themselves. A client that may see everything also finds the objects
 * of others, and copies them, so that they remain available to their owners.
 *
 * In its folder the file "data" has the bytes. "staged" describes it and is written last: without
 * it, the object was never acknowledged. Publication moves "data", so an object without data has
 * become a file. A folder belongs to one server: if several serve one bucket or folder, an object
 * and its commit must be sent to the same one. */
#ifndef HUB_WRITE_STAGED_OBJECTS_H
#define HUB_WRITE_STAGED_OBJECTS_H

#include "http/exchange/client.h"
#include "hub/hub_names.h"
#include "upload/shared/failure.h"
#include "upload/shared/kept_uploads.h"

/* The length of a file whose length is not known before its end. */
#define STAGED_UNKNOWN UINT64_MAX

struct staged_object;

/* The kind for kept_uploads_new. */
extern const struct kept_kind staged_kind;

/* --- sending --- */

struct staged_origin {
    const char *repo;   /* a valid name that the client may write to; copied */
    const char *client; /* the client whose limits it counts against (registry_client); copied */
    const char *owner;  /* staged_owner; copied */
    uint64_t length;    /* or STAGED_UNKNOWN */
};

/* Returns the owner of objects that a client (registry_client) sends with this request: the client
 * or, if clients may be anonymous, "" for all clients, because an address is not an identity. */
const char *staged_owner(const struct request *request, const char *client);

/* A client that requests objects. */
struct staged_asker {
    char owner[CLIENT_SIZE]; /* owner of the client's objects */
    bool sees_all;           /* it has no globs, and also finds other clients' objects */
};

/* Describes the client of a request that carries its token. */
void staged_asker_of(const struct request *request, struct staged_asker *out_asker);

/* Begins a file. The caller owns the object until it is finished or abandoned. Returns NULL with
 * failure set: PROBLEM_RATE_LIMITED if the client already has hub.staged_per_client objects,
 * PROBLEM_TOO_LARGE above upload.max_bytes, PROBLEM_INSUFFICIENT_STORAGE. Fast. */
struct staged_object *staged_begin(struct server *server, const struct staged_origin *origin,
                                   struct failure *failure);

/* Returns false with failure set; the object must then be abandoned. PROBLEM_TOO_LARGE beyond
 * upload.max_bytes. Several threads may write different ranges at once. */
bool staged_write(struct staged_object *object, uint64_t offset, const void *bytes, size_t length,
                  struct failure *failure);

/* Claims disk space for bytes that are about to be written; writing uses it up. Returns false with
 * failure set. */
bool staged_take_space(struct staged_object *object, uint64_t bytes, struct failure *failure);

/* Returns the file while it arrives, to be read back or written by other means; borrowed. */
struct staged_file *staged_file(const struct staged_object *object);

/* Ends the file, which has this SHA-256, and makes it durable; its length is the number of bytes
 * written. On success the object no longer belongs to the caller. On a worker; may take long.
 * Returns false with failure set; the object must then still be abandoned. */
bool staged_finish(struct staged_object *object, const uint8_t sha256[32], struct failure *failure);

/* Removes the file, on a worker that it finds itself. Accepts NULL. From any thread. */
void staged_abandon(struct staged_object *object);

/* --- in parts (staged_parts.c) --- */

/* A file that arrives in parts of part_length bytes, in any order and concurrently; the last part
 * may be shorter. Each part claims its own space, and the file is only open while one arrives.
 * Parts do not outlive the process: an object is acknowledged when it is finished. */
struct staged_whole {
    const uint8_t *sha256;
    uint64_t part_length;
};

/* Joins the requests that send parts of an object; the first one begins it. Each of them leaves
 * again. Returns NULL with failure set as by staged_begin, or with PROBLEM_CONFLICT while the
 * object is being finished. */
struct staged_object *staged_join(struct server *server, const struct staged_origin *origin,
                                  const struct staged_whole *whole, struct failure *failure);
void staged_leave(struct staged_object *object);
/* Marks a part (from 0) as arrived or not. Its writer calls this before and after writing. */
void staged_mark_part(struct staged_object *object, uint64_t part, bool is_there);

/* Takes an object, of which all parts have arrived, from the requests that sent them. It then
 * belongs to the caller, as after staged_begin; the caller must check that it has that SHA-256.
 * Returns NULL with failure set: PROBLEM_UPLOAD_NOT_FOUND if no part has arrived; PROBLEM_CONFLICT
 * if some are missing, or one is still being sent. */
struct staged_object *staged_close(struct server *server, const struct staged_origin *origin,
                                   const struct staged_whole *whole, struct failure *failure);

/* --- lookups --- */

struct staged_wanted {
    const char *repo;
    const uint8_t *sha256;
    const struct staged_asker *asker;
};

/* Returns true if the asker can use a finished object, with its length in *out_length; the object
 * will not expire soon. From any thread, never waits. */
bool staged_exists(struct server *server, const struct staged_wanted *wanted, uint64_t *out_length);

enum staged_found {
    STAGED_FOUND,
    STAGED_LENT, /* another client's */
    STAGED_NOT_FOUND,
    STAGED_IN_USE
};

/* Takes an object for a commit: no other commit can take it until it is put back. If the asker has
 * none, lends it another client's, which must be copied and returned; the owner can use it at the
 * same time. From any thread. */
enum staged_found staged_take(struct server *server, const struct staged_wanted *wanted,
                              struct staged_object **out_object);
uint64_t staged_length(const struct staged_object *object);

/* Opens the file of a taken or lent object, as a kept upload: it may be read back, copied and
 * published. abandon closes it without removing it. Returns false with failure set. */
bool staged_open(const struct staged_object *object, struct staged_file **out_file,
                 struct failure *failure);

/* Called if the commit did not publish the file. Accepts NULL. */
void staged_put_back(struct staged_object *object);

/* Ends a loan. */
void staged_return(struct staged_object *object);

/* Called when the commit has published the file. Removes the object, and others with the same bytes
 * that its owner has sent for the repository. On a worker. */
void staged_use_up(struct staged_object *object);

#endif
