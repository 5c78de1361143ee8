/* Permits to send one object: addresses that need no token, because clients send none with the
 * bytes. Each permit is for one object of one repository, with one length, until a certain time,
 * for the client that requested it, as long as that client's line of the tokens file is unchanged.
 * A code that only the server can compute protects all these values.
 *
 * A permit only allows storing bytes with the SHA-256 in it. The commit decides which clients may
 * give them a path. */
#ifndef HUB_WRITE_LFS_PERMIT_H
#define HUB_WRITE_LFS_PERMIT_H

#include "http/exchange/client.h"
#include "http/exchange/request.h"
#include "hub/hub_names.h"
#include "hub/write/staged_objects.h"
#include "input/ticket.h"

/* How long a permit is valid, unless upload.expire_s is less: long enough for a slow client to
 * reach the last of the objects that it requested together. */
#define LFS_PERMIT_S 43200

struct lfs_permit {
    char repo[HUB_REPO_SIZE];
    char oid[LFS_OID_SIZE];
    uint64_t length;
    uint64_t part;        /* from 1; 0: the whole object, or the end of its parts */
    uint64_t part_length; /* of each part except the last; 0: the object is sent whole */
    uint64_t expires;
    uint64_t line;            /* the client's line, from access_line_of; not in the address */
    char client[CLIENT_SIZE]; /* the client whose limits the object counts against */
};

/* Computes the code of a permit. Returns false if out of memory. */
bool lfs_permit_sign(const uint8_t *key, const struct lfs_permit *permit,
                     char out_code[TICKET_CODE_SIZE]);

#define LFS_HREF_SIZE 2048
/* Writes the address of a permit; base is request_base_url. Returns false if out of memory, or if
 * it is too long. */
bool lfs_permit_print(const uint8_t *key, const char *base, const struct lfs_permit *permit,
                      char out_href[LFS_HREF_SIZE]);

/* Returns the origin of the object that is sent under a permit. Borrows from the permit. */
struct staged_origin lfs_permit_origin(const struct request *request,
                                       const struct lfs_permit *permit);

/* Reads the permit of a request for "{repo}.git/info/lfs/objects/{oid}", or for "…/{part}". Returns
 * false if it has replied: with 403 if this server did not issue the permit, or it is no longer
 * valid. */
bool lfs_permit_read(struct request *request, bool has_part, struct lfs_permit *out_permit);

#endif
