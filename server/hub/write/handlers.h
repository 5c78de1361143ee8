/* The handlers of the Hub's paths that write (routes.c), each in the file given here. */
#ifndef HUB_WRITE_HANDLERS_H
#define HUB_WRITE_HANDLERS_H

#include "http/exchange/router.h"

/* create.c: a new repository; the start of its README.md. */
void hub_create_begin(struct request *request);
enum outcome hub_create_handle(struct request *request);
void hub_yaml_begin(struct request *request);
enum outcome hub_yaml_handle(struct request *request);

/* preupload.c: how to send which files. */
void hub_preupload_begin(struct request *request);
enum outcome hub_preupload_handle(struct request *request);

/* commit_request.c: files, written and removed. */
void hub_commit_begin(struct request *request);
enum outcome hub_commit_handle(struct request *request);

/* refs.c: branches and tags, made, deleted and squashed. */
void hub_tag_begin(struct request *request);
void hub_branch_begin(struct request *request);
void hub_squash_begin(struct request *request);
enum outcome hub_refs_handle(struct request *request);

/* lfs_batch.c: where to send which objects before the commit. */
void lfs_batch_begin(struct request *request);
enum outcome lfs_batch_handle(struct request *request);

/* lfs_put.c: an object, and a part of one. */
void lfs_put_begin(struct request *request);
enum outcome lfs_put_handle(struct request *request);
void lfs_part_begin(struct request *request);
enum outcome lfs_part_handle(struct request *request);

/* lfs_complete.c: the end of an object in parts. */
void lfs_complete_begin(struct request *request);
enum outcome lfs_complete_handle(struct request *request);

/* lfs_verify.c: whether an object has arrived. */
void lfs_verify_begin(struct request *request);
enum outcome lfs_verify_handle(struct request *request);

#endif
