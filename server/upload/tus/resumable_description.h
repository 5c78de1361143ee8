/* The file "resumable" of an upload: the client's values from the creation, as lines of a key and
 * its value. The first line identifies the format, and the last is "end"; without it the file is
 * not valid. */
#ifndef UPLOAD_TUS_RESUMABLE_DESCRIPTION_H
#define UPLOAD_TUS_RESUMABLE_DESCRIPTION_H

#include <stdio.h>

#include "upload/tus/resumable.h"

struct resumable_description {
    char model[MODEL_NAME_MAX + 1]; /* empty for a part */
    uint64_t length;                /* RESUMABLE_UNKNOWN: to be stated later */
    uint64_t created;
    char *texts[RESUMABLE_TEXTS]; /* each allocated separately */
    bool has_length;
    bool is_whole;
};

void resumable_description_print(struct resumable *resumable, FILE *stream);

/* Changes text. Returns false if it is not valid; the caller frees the texts in any case. */
bool resumable_description_parse(char *text, struct resumable_description *out_description);

#endif
