/* Checks a request that creates a resumable upload, and makes the upload in memory. */
#ifndef UPLOAD_TUS_TUS_CREATION_H
#define UPLOAD_TUS_TUS_CREATION_H

#include "http/exchange/router.h"
#include "upload/tus/resumable.h"

struct creation {
    enum resumable_role role;
    const char *parts;              /* for a final upload: the argument of tus_concat_next */
    bool is_file;                   /* model is the path of a file */
    char model[MODEL_NAME_MAX + 1]; /* empty for a part */
    uint64_t length;                /* RESUMABLE_UNKNOWN: stated later, or the sum of the parts */
    struct preconditions preconditions;
};

/* Does the checks of any creation, in the order in which clients see their refusals. Returns true
 * if it has replied. */
bool tus_creation_refuse(struct request *request, struct creation *out_creation);
/* Checks the preconditions on the future model or file, and its size; not for parts. Returns true
 * if it has replied. */
bool tus_creation_refuse_target(struct request *request, struct creation *creation);

/* Makes a new upload in memory, with one reference. Returns NULL, having replied, if out of
 * memory. */
struct resumable *tus_creation_make(struct request *request, const struct creation *creation);

#endif
