/* The source of a copy: the field x-amz-copy-source and its conditions. */
#ifndef S3_WRITE_S3API_COPY_SOURCE_H
#define S3_WRITE_S3API_COPY_SOURCE_H

#include "http/exchange/s3api_error.h"
#include "http/fields/conditional.h"
#include "tree/stored_file.h"

struct s3api_copy_source {
    char path[MODEL_NAME_MAX + 1];
    /* Open after s3api_copy_source_open. */
    struct stored_file *file;
    /* The failure of s3api_copy_source_open. */
    enum s3api_error error;
    const char *why; /* static */

    /* Private: the texts belong to the request. */
    struct preconditions conditions;
};

/* Reads the header into a cleared structure. Returns false if it has replied. */
bool s3api_copy_source_read(struct request *request, struct s3api_copy_source *source);

/* Opens the file, and checks whether the client may read it and whether the conditions hold. On a
 * worker, while the request waits. Returns false with error and why set. */
bool s3api_copy_source_open(struct request *request, struct s3api_copy_source *source);

/* May be called twice. */
void s3api_copy_source_close(struct s3api_copy_source *source);

#endif
