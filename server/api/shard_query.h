/* The query parameters shard=R/N and axis=A. */
#ifndef API_SHARD_QUERY_H
#define API_SHARD_QUERY_H

#include "http/exchange/request.h"
#include "zt/select.h"

/* parts is 0 where there is no shard. False: replied with 400. */
bool shard_query_read(struct request *request, struct zt_cut *out_cut);

#endif
