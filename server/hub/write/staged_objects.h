/* Staged objects: files that clients send before the commit that gives them a path, each known by
 * its repository and SHA-256. They are kept uploads (kept_uploads.h): in places of the store, over
 * restarts, and removed when nobody has used them for upload.expire_s.
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
 * or staged_abandon, at any time before it is finished. Whoever writes the bytes hashes them, too,
 * and vouches for the SHA-256: it is what the file will be served under.
 *
 * A commit takes an object, which keeps all others from using it, and puts it back or uses it up.
 *
 * In its place the file "data" has the bytes; "staged" describes it, and is written last: without
 * it there is nothing that was acknowledged. Publication moves "data", so that what has no data any
 * more has become a file. A place belongs to one server: where several serve one bucket or folder,
 * an object and its commit have to reach the same one. */
#ifndef HUB_WRITE_STAGED_OBJECTS_H
#define HUB_WRITE_STAGED_OBJECTS_H

#include "hub/hub_names.h"
#include "upload/shared/failure.h"
#include "upload/shared/kept_uploads.h"

/* The length of a file that is not known before its end. */
#define STAGED_UNKNOWN UINT64_MAX

struct staged_object;

/* The kind for kept_uploads_new. */
extern const struct kept_kind staged_kind;

/* --- on the way --- */

struct staged_origin {
    const char *repo;   /* valid, and one that the client may write to; copied */
    const char *client; /* whose limits it counts toward (registry_client); copied */
    uint64_t length;    /* or STAGED_UNKNOWN */
};

/* Begins a file. The caller owns the object until it is finished or abandoned. NULL: failure is
 * set; PROBLEM_RATE_LIMITED if the client has hub.staged_per_client already, PROBLEM_TOO_LARGE
 * above upload.max_bytes, PROBLEM_INSUFFICIENT_STORAGE. Fast. */
struct staged_object *staged_begin(struct server *server, const struct staged_origin *origin,
                                   struct failure *failure);

/* False: failure is set, and the object is to be abandoned; PROBLEM_TOO_LARGE beyond
 * upload.max_bytes. From any thread, several at a time for different ranges. */
bool staged_write(struct staged_object *object, uint64_t offset, const void *bytes, size_t length,
                  struct failure *failure);

/* The file while it is on its way, to be read back or written by other means; borrowed. */
struct stored_upload *staged_file(const struct staged_object *object);

/* Ends the file, which has this SHA-256, and makes it durable; its length is how much was written.
 * On success the object is not the caller's any more. On a worker; may take long. False: failure is
 * set, and the object is still to be abandoned. */
bool staged_finish(struct staged_object *object, const uint8_t sha256[32], struct failure *failure);

/* Removes the file, on a worker that it finds itself. Takes NULL. From any thread. */
void staged_abandon(struct staged_object *object);

/* --- in parts (staged_parts.c) --- */

/* A file that comes in parts of part_length bytes, the last of which may be shorter, in any order
 * and several at a time. Parts do not outlive the process: an object is acknowledged when it is
 * finished. */
struct staged_whole {
    const uint8_t *sha256;
    uint64_t part_length;
};

/* Joins those who send parts of an object, and begins it for the first. Every one leaves again.
 * NULL: failure is set as by staged_begin, or with PROBLEM_CONFLICT while it is being finished. */
struct staged_object *staged_join(struct server *server, const struct staged_origin *origin,
                                  const struct staged_whole *whole, struct failure *failure);
void staged_leave(struct staged_object *object);
/* Whether a part (from 0) has arrived. To be called by who writes it, before and after. */
void staged_mark_part(struct staged_object *object, uint64_t part, bool is_there);

/* Takes an object of which all parts have arrived from those who sent them: it is the caller's, as
 * after staged_begin, and has that SHA-256 only if the caller finds so. NULL: failure is set;
 * PROBLEM_UPLOAD_NOT_FOUND if no part of it has arrived, PROBLEM_CONFLICT if not all have, or
 * somebody is still sending one. */
struct staged_object *staged_close(struct server *server, const struct staged_origin *origin,
                                   const struct staged_whole *whole, struct failure *failure);

/* --- found again --- */

/* Whether a finished object is there, of which *out_length is the length; it will not expire soon.
 * From any thread, never waits. */
bool staged_exists(struct server *server, const char *repo, const uint8_t sha256[32],
                   uint64_t *out_length);

enum staged_found { STAGED_FOUND, STAGED_NOT_FOUND, STAGED_IN_USE };

/* Takes an object for a commit: nobody else can until it is put back. From any thread. */
enum staged_found staged_take(struct server *server, const char *repo, const uint8_t sha256[32],
                              struct staged_object **out_object);
uint64_t staged_length(const struct staged_object *object);

/* Opens the file of an object that was taken, as a kept upload: it may be read back, copied and
 * published; abandon closes it, and leaves it there. False: failure is set. */
bool staged_open(const struct staged_object *object, struct stored_upload **out_file,
                 struct failure *failure);

/* The commit did not publish the file. Takes NULL. */
void staged_put_back(struct staged_object *object);

/* The commit has published the file. Removes the object, and others with the same bytes that the
 * repository had in store. On a worker. */
void staged_use_up(struct staged_object *object);

#endif
