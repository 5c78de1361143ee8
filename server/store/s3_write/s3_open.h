/* Opens a bucket as a store. */
#ifndef STORE_S3_WRITE_S3_OPEN_H
#define STORE_S3_WRITE_S3_OPEN_H

#include "config/config.h"
#include "store/store.h"

/* In the cache's folder. Its name is none of the cache's. */
#define S3_STAGING_FOLDER "uploads"

struct workers;

/* Opens config->root ("s3://bucket/prefix"): connects, opens the cache (cache_folder) and, if
 * config->writable, the staging folder in it (S3_STAGING_FOLDER: one file system, and the one
 * place besides the state folder that the process may write to), and probes what the service can
 * do. What is away
 * is not an error: the store then serves what is cached. ZT_ARGUMENT, ZT_IO, with one line for the
 * person who starts the program. config is borrowed. */
enum zt_status store_s3_open(const struct config *config, const char *cache_folder,
                             struct workers *workers, uint64_t reserve_bytes,
                             struct store **out_store, struct zt_error *error);

#endif
