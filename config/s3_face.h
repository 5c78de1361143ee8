/* The keys of the S3 API: s3.path, s3.listen, s3.bucket and s3.keys. */
#ifndef CONFIG_S3_FACE_H
#define CONFIG_S3_FACE_H

#include "config/config.h"

/* Checks that s3.path is empty, or a path below which no other resource of the server is, and not
 * base_path or below it; that s3.bucket can be the name of a bucket; and that a writable server
 * accepts no writes at s3.listen from unknown clients of other machines. */
bool config_validate_s3_face(const struct config *config, struct config_message *message);

#endif
