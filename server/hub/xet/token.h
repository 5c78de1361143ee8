/* Access tokens of xet: what a client that may write to a repository gets, and shows with all that
 * it then sends. A token states the repository, the client, whether that sees all files, and an
 * end, and is signed with a key that lives as long as the process, as do the sessions that it is
 * for. */
#ifndef HUB_XET_TOKEN_H
#define HUB_XET_TOKEN_H

#include <stdbool.h>
#include <time.h>

#include "http/exchange/client.h"
#include "hub/hub_names.h"

/* Clients ask for another one half a minute before it ends; each request is checked when it
 * begins. */
#define XET_TOKEN_S 3600

/* "END.MAC.ALL.CLIENT.REPOSITORY" and NUL; ALL is 0 or 1. */
#define XET_TOKEN_SIZE (20 + 1 + 64 + 1 + 1 + 1 + 2 * CLIENT_SIZE + 1 + HUB_REPO_SIZE)

struct xet_permit {
    char repo[HUB_REPO_SIZE];
    char client[CLIENT_SIZE]; /* whose limits its uploads count toward */
    /* All files of the repository: what one consists of need not be brought. */
    bool sees_all;
    time_t end;
};

/* False: out of memory; here and below, where it looks like a wrong token. */
bool xet_token_make(const struct xet_permit *permit, char out_token[XET_TOKEN_SIZE]);

/* False: this process did not sign it, or its time is over. */
bool xet_token_read(struct zt_text token, time_t now, struct xet_permit *out_permit);

#endif
