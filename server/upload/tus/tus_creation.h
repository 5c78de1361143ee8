/* What a request that creates a resumable upload states: refusals of what is wrong, and a new
 * upload of what is right. */
#ifndef UPLOAD_TUS_TUS_CREATION_H
#define UPLOAD_TUS_TUS_CREATION_H

#include "http/exchange/router.h"
#include "upload/tus/resumable.h"

struct creation {
    enum resumable_role role;
    const char *parts;              /* of a final upload: for tus_concat_next */
    char model[MODEL_NAME_MAX + 1]; /* empty: of a part */
    uint64_t length;                /* RESUMABLE_UNKNOWN: stated later, or the sum of the parts */
    struct preconditions preconditions;
};

/* The checks of any creation, in the order in which clients see their refusals. True: replied. */
bool tus_creation_refuse(struct request *request, struct creation *out_creation);
/* The preconditions on the model that the upload will be, and its size; not for parts. True:
 * replied. */
bool tus_creation_refuse_model(struct request *request, struct creation *creation);

/* A new upload in memory, with one reference. NULL, and replied, if out of memory. */
struct resumable *tus_creation_make(struct request *request, const struct creation *creation);

#endif
