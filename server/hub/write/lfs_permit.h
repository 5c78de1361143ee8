/* Permits to send one object: addresses that need no token, since clients send none with the bytes.
 * Each is for one object of one repository, with one length, until a time, on behalf of the client
 * that asked for it; a code that only the server can compute binds all that together.
 *
 * A permit opens nothing but a place for bytes with a SHA-256 that it names: who may give them a
 * path is decided by the commit. */
#ifndef HUB_WRITE_LFS_PERMIT_H
#define HUB_WRITE_LFS_PERMIT_H

#include "http/exchange/client.h"
#include "http/exchange/request.h"
#include "hub/hub_names.h"
#include "hub/write/lfs_names.h"

/* How long a permit holds, unless upload.expire_s is less: as long as a slow client may need to get
 * to the last of the objects that it asked for at once. */
#define LFS_PERMIT_S 43200

struct lfs_permit {
    char repo[HUB_REPO_SIZE];
    char oid[LFS_OID_SIZE];
    uint64_t length;
    uint64_t part;        /* from 1; 0: the whole object, or the end of its parts */
    uint64_t part_length; /* of each part but the last; 0: the object comes as a whole */
    uint64_t expires;
    char client[CLIENT_SIZE]; /* whose limits the object counts toward */
};

/* The code of a permit. False: out of memory. */
bool lfs_permit_sign(const uint8_t *key, const struct lfs_permit *permit, uint8_t out_code[32]);

#define LFS_HREF_SIZE 2048
/* The address of a permit; base: request_base_url. False: out of memory, or too long. */
bool lfs_permit_print(const uint8_t *key, const char *base, const struct lfs_permit *permit,
                      char out_href[LFS_HREF_SIZE]);

/* Reads the permit of a request for "{repo}.git/info/lfs/objects/{oid}", or "…/{part}" as well.
 * False: replied, with 403 if it is none of this server's, or not valid any more. */
bool lfs_permit_read(struct request *request, bool has_part, struct lfs_permit *out_permit);

#endif
