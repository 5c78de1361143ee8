/* The handlers of xet's paths (routes.c), each in the file given here. */
#ifndef HUB_XET_HANDLERS_H
#define HUB_XET_HANDLERS_H

#include "http/exchange/router.h"

/* token_request.c: where to upload, and with which token. */
enum outcome xet_token_get(struct request *request);

/* xorb_request.c: chunks. */
void xet_xorb_begin(struct request *request);
enum outcome xet_xorb_handle(struct request *request);

/* shard_request.c: the files that the chunks make. */
void xet_shard_begin(struct request *request);
enum outcome xet_shard_handle(struct request *request);

/* permit.c: other features of a chunk store, which this server does not have. */
enum outcome xet_no_api_handle(struct request *request);

#endif
