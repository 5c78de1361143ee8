/* The bucket and the key of a request's path. */
#ifndef S3_S3API_REQUEST_H
#define S3_S3API_REQUEST_H

#include "http/exchange/request.h"
#include "zt/text.h"

/* Percent-decodes the name of a bucket or a key. *out_name lives as long as the request, and a NUL
 * follows it. Returns false if neither can have that name (a malformed escape, a NUL, not UTF-8),
 * and, with *out_name empty and its bytes NULL, if there is no memory. */
bool s3api_decode(struct request *request, struct zt_text raw, struct zt_text *out_name);

/* Returns true if the path names the bucket that exists, or no bucket. Otherwise it has replied
 * with NoSuchBucket. */
bool s3api_finds_bucket(struct request *request);

/* Decodes the key of the path, which is the path of a file below the root. *out_key lives as long
 * as the request, and a NUL follows it. Returns false if it has replied: NoSuchBucket, or for a key
 * that no file can have (not UTF-8, with NUL, with an empty or hidden segment) NoSuchKey when
 * reading and InvalidArgument when writing. */
bool s3api_find_key(struct request *request, struct zt_text *out_key);

/* Does the same, but accepts a key that ends with one "/" and sets *out_is_folder; *out_key then
 * lacks the slash. */
bool s3api_find_key_or_folder(struct request *request, struct zt_text *out_key,
                              bool *out_is_folder);

/* Clients name the version "null" of objects without versions. Returns false if the query names
 * another one, and it has replied with NoSuchVersion. */
bool s3api_finds_version(struct request *request);

#endif
