/* The handlers of xet's paths (routes.c), each in the file given here. */
#ifndef HUB_XET_HANDLERS_H
#define HUB_XET_HANDLERS_H

#include "http/exchange/router.h"

/* token_request.c: where to upload to, and with which token. */
enum outcome xet_token_get(struct request *request);

/* xorb_request.c: chunks. */
void xet_xorb_begin(struct request *request);
void xet_xorb_receive(struct request *request, const void *bytes, size_t length);
void xet_xorb_store(struct request *request, const struct body_piece *piece);
void xet_xorb_digest(struct request *request, const struct body_piece *piece);
enum outcome xet_xorb_handle(struct request *request);

/* shard_request.c: the files that they make. */
void xet_shard_begin(struct request *request);
void xet_shard_receive(struct request *request, const void *bytes, size_t length);
void xet_shard_store(struct request *request, const struct body_piece *piece);
void xet_shard_digest(struct request *request, const struct body_piece *piece);
enum outcome xet_shard_handle(struct request *request);

/* permit.c: what a store of chunks has besides, which is not here. */
enum outcome xet_nothing_handle(struct request *request);

#endif
