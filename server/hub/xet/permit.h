/* Who sends to a session of xet. */
#ifndef HUB_XET_PERMIT_H
#define HUB_XET_PERMIT_H

#include "http/exchange/request.h"
#include "hub/xet/session.h"

/* The session that a request is about, begun if it is the first one, and held by the request; names
 * of the route: the session's key comes first. Refuses what may not be written, a token that is
 * none of ours, and a body that is longer than most, or of unknown length. *out_sees_all: whether
 * the client sees all files of the repository. NULL: replied. */
struct xet_session *xet_permit(struct request *request, uint64_t most_bytes, bool *out_sees_all);

#endif
