/* The keys file: which access keys sign requests to the S3 API, and what each may do.
 *
 * One key a line; blank lines are fine, and # begins a comment:
 *
 *     access-key  secret  read|write|admin  [globs of models]
 *
 * Without globs a client may see all models. Signatures cannot be checked without the secrets
 * themselves, so the file must be private. */
#ifndef ACCESS_S3_KEYS_H
#define ACCESS_S3_KEYS_H

#include "access/grants.h"

/* Bytes of a secret. A scope is shorter, so that fields in another order are refused. */
#define S3_SECRET_MIN 8
#define S3_SECRET_MAX 128
#define S3_KEYS_MAX   4096

/* Lives as long as the keys. */
struct s3_key {
    struct grant grant; /* its name is the access key */
    struct zt_text secret;
};

struct s3_keys;

/* Reads a keys file. NULL with one line in error that names the file and the line but repeats no
 * secret. */
struct s3_keys *s3_keys_load(const char *path, char *error, size_t error_size);

/* The same for a text, which is copied; path is for messages. */
struct s3_keys *s3_keys_parse(struct zt_text text, const char *path, char *error,
                              size_t error_size);

/* Overwrites the secrets. Takes NULL. */
void s3_keys_free(struct s3_keys *keys);

/* Returns the key of this name, or NULL. */
const struct s3_key *s3_keys_find(const struct s3_keys *keys, struct zt_text access_key);

/* How many there are. */
size_t s3_keys_count(const struct s3_keys *keys);

/* Whether a text can be an access key: visible ASCII without ',', at most GRANT_NAME_MAX bytes, and
 * no comment. */
bool s3_key_is_valid(struct zt_text access_key);

#endif
