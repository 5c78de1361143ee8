/* Opens a bucket as a store. */
#ifndef STORE_S3_WRITE_S3_OPEN_H
#define STORE_S3_WRITE_S3_OPEN_H

#include "config/config.h"
#include "store/store.h"

/* A folder in the cache's folder. The cache never uses this name. */
#define S3_STAGING_FOLDER "uploads"

struct workers;

/* Opens config->root ("s3://bucket/prefix"): connects, opens the cache (cache_folder) and, if
 * config->writable, its staging folder, and probes the features of the service. The staging folder
 * (S3_STAGING_FOLDER) is inside the cache's folder to be on the same file system, and because the
 * process may write nowhere else except to the state folder. A store that is away is not an error:
 * cached files are then served. Returns ZT_ARGUMENT or ZT_IO, with a one-line message for the user
 * at the command line. config is borrowed. */
enum zt_status store_s3_open(const struct config *config, const char *cache_folder,
                             struct workers *workers, uint64_t reserve_bytes,
                             struct store **out_store, struct zt_error *error);

#endif
