/* The handlers of the Hub's paths that write (routes.c), each in the file given here. */
#ifndef HUB_WRITE_HANDLERS_H
#define HUB_WRITE_HANDLERS_H

#include "http/exchange/router.h"

/* create.c: a repository; what its README.md begins with. */
void hub_create_begin(struct request *request);
void hub_create_receive(struct request *request, const void *bytes, size_t length);
enum outcome hub_create_handle(struct request *request);
enum outcome hub_yaml_handle(struct request *request);

/* preupload.c: how to send which files. */
void hub_preupload_begin(struct request *request);
void hub_preupload_receive(struct request *request, const void *bytes, size_t length);
enum outcome hub_preupload_handle(struct request *request);

/* commit_request.c: files, written and removed. */
void hub_commit_begin(struct request *request);
void hub_commit_receive(struct request *request, const void *bytes, size_t length);
void hub_commit_store(struct request *request, const struct body_piece *piece);
void hub_commit_digest(struct request *request, const struct body_piece *piece);
enum outcome hub_commit_handle(struct request *request);

/* lfs_batch.c: where to send which objects before the commit. */
void lfs_batch_begin(struct request *request);
void lfs_batch_receive(struct request *request, const void *bytes, size_t length);
enum outcome lfs_batch_handle(struct request *request);

/* lfs_put.c: an object, whose body whole_body.h takes. */
void lfs_put_begin(struct request *request);
enum outcome lfs_put_handle(struct request *request);

/* lfs_part.c: a part of one. */
void lfs_part_begin(struct request *request);
void lfs_part_receive(struct request *request, const void *bytes, size_t length);
void lfs_part_store(struct request *request, const struct body_piece *piece);
void lfs_part_digest(struct request *request, const struct body_piece *piece);
enum outcome lfs_part_handle(struct request *request);

/* lfs_complete.c: the end of its parts. */
void lfs_complete_begin(struct request *request);
void lfs_complete_receive(struct request *request, const void *bytes, size_t length);
enum outcome lfs_complete_handle(struct request *request);

/* lfs_verify.c: whether it has arrived. */
void lfs_verify_begin(struct request *request);
void lfs_verify_receive(struct request *request, const void *bytes, size_t length);
enum outcome lfs_verify_handle(struct request *request);

#endif
