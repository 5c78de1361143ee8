/* What validation finds out about a stored file before it is published. */
#ifndef UPLOAD_SHARED_PUBLICATION_CHECK_H
#define UPLOAD_SHARED_PUBLICATION_CHECK_H

#include "upload/shared/publication.h"

struct findings {
    const char *extension; /* that its format has: ".zt" and so on */
    /* So that the server need not find them out again: which file it was, and a verdict for each
     * component (NULL for a data shard). */
    bool has_identity;
    struct file_identity identity;
    unsigned char *verdicts; /* the caller's to free, after a failure too */
    uint32_t verdict_count;
};

/* Opens the file with the reader that serves it, checks the digests that it states and then the
 * rules of its content. False: failure is set. */
bool publication_check(const struct publication *publication, struct findings *out_findings,
                       struct failure *failure);

#endif
