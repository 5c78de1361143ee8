/* Access tokens of xet. A client that may write to a repository gets one, and sends it with all
 * further requests. A token contains the repository, the client and its line of the tokens file,
 * whether the client sees all files, and an expiry time. It is signed with a key that lives as long
 * as the process, like the sessions. */
#ifndef HUB_XET_TOKEN_H
#define HUB_XET_TOKEN_H

#include <stdbool.h>
#include <time.h>

#include "http/exchange/client.h"
#include "hub/hub_names.h"

/* Clients request a new token half a minute before it expires. Each request is checked when it
 * begins. */
#define XET_TOKEN_S 3600

/* "END.MAC.ALL.LINE.CLIENT.REPOSITORY" and NUL; ALL is 0 or 1. */
#define XET_TOKEN_SIZE (20 + 1 + 64 + 1 + 1 + 1 + 16 + 1 + 2 * CLIENT_SIZE + 1 + HUB_REPO_SIZE)

struct xet_permit {
    char repo[HUB_REPO_SIZE];
    char client[CLIENT_SIZE]; /* the client whose limits its uploads count against */
    uint64_t line; /* the client's line (access_line_of): if it has changed, the token is invalid */
    /* The client may see all files of the repository, so files that already exist there need not be
     * assembled. */
    bool sees_all;
    time_t end;
};

/* Returns false if out of memory. xet_token_read does too, as for a wrong token. */
bool xet_token_make(const struct xet_permit *permit, char out_token[XET_TOKEN_SIZE]);

/* Returns false if this process did not sign it, or it has expired. */
bool xet_token_read(struct zt_text token, time_t now, struct xet_permit *out_permit);

#endif
