/* Authorises requests to a session of xet. */
#ifndef HUB_XET_PERMIT_H
#define HUB_XET_PERMIT_H

#include "http/exchange/request.h"
#include "hub/xet/session.h"

/* Finds the session of a request, or begins it with the first request; the request then holds it.
 * The session's key is the first name of the route. Refuses repositories that may not be written
 * to, tokens that this server did not issue, and bodies that are longer than most_bytes, or of
 * unknown length. *out_sees_all: the client may see all files of the repository. Returns NULL if it
 * has replied. */
struct xet_session *xet_permit(struct request *request, uint64_t most_bytes, bool *out_sees_all);

#endif
