/* A bucket as an upstream that is mirrored. A repository org/model is the folder org/model/ below
 * the prefix. It has one revision, main, whose commit is a digest of the list of its objects. */
#ifndef STORE_S3_S3_UPSTREAM_H
#define STORE_S3_S3_UPSTREAM_H

#include "store/s3/bucket.h"
#include "upstream/kind.h"

/* The url of its options is "s3://bucket/prefix"; config is needed. */
extern const struct upstream_kind s3_upstream;

/* Asks the service for the SHA-256 of files (s3_upstream_digests.c), and fills in those that it
 * states. Ends by by_ms, even if not all files were asked for. Returns ZT_UNAVAILABLE if the
 * service failed to answer, so that the digests are unknown; ZT_NO_MEMORY. */
enum zt_status s3_upstream_ask_digests(struct bucket *bucket, const char *repository,
                                       const struct upstream_listing *listing, int64_t by_ms,
                                       struct zt_error *error);

#endif
