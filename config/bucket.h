/* A root that is a bucket of an object store, "s3://bucket/prefix", and the keys about it. */
#ifndef CONFIG_BUCKET_H
#define CONFIG_BUCKET_H

#include "config/config.h"

#define CONFIG_BUCKET_NAME_SIZE 64
/* The rest of the 1,024 bytes of a key is for models' names and the server's own ones. */
#define CONFIG_BUCKET_PREFIX_SIZE 701

struct config_bucket {
    char name[CONFIG_BUCKET_NAME_SIZE];
    char prefix[CONFIG_BUCKET_PREFIX_SIZE]; /* empty, or with '/' at its end */
};

/* Whether a root names a bucket rather than a folder. */
bool config_root_is_bucket(const char *root);

/* Reads "s3://bucket/prefix". Returns what is wrong with it, or NULL. */
const char *config_bucket_read(const char *text, struct config_bucket *out_bucket);
/* False with a message if a root that begins with s3:// does not name a bucket. */
bool config_bucket_parse(const char *root, struct config_bucket *out_bucket,
                         struct config_message *message);

/* What is wrong with the address of an object store or a proxy (scheme://host or
 * scheme://host:port, of http and, unless plain, https), or NULL. */
const char *config_fault_of_address(const char *address, bool plain);

/* Checks root, the group s3, and cache. */
bool config_validate_bucket(const struct config *config, struct config_message *message);

/* The reason why the text of this length is not the name of a bucket, or NULL. */
const char *config_fault_of_bucket(const char *name, size_t length);

#endif
