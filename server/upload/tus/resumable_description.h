/* The file "resumable" of an upload: what its client stated at creation, as lines of a key and its
 * value, between a first line that identifies the format and "end"; without "end" it is not
 * valid. */
#ifndef UPLOAD_TUS_RESUMABLE_DESCRIPTION_H
#define UPLOAD_TUS_RESUMABLE_DESCRIPTION_H

#include <stdio.h>

#include "upload/tus/resumable.h"

struct resumable_description {
    char model[MODEL_NAME_MAX + 1]; /* empty: of a part */
    uint64_t length;                /* RESUMABLE_UNKNOWN: it was to be stated later */
    uint64_t created;
    char *texts[RESUMABLE_TEXTS]; /* each its own */
    bool has_length;
    bool is_whole;
};

void resumable_description_print(struct resumable *resumable, FILE *stream);

/* Changes text. False: it is not valid; the texts are the caller's in any case. */
bool resumable_description_parse(char *text, struct resumable_description *out_description);

#endif
