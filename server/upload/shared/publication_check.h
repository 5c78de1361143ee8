/* What validation finds out about a stored file before it is published. */
#ifndef UPLOAD_SHARED_PUBLICATION_CHECK_H
#define UPLOAD_SHARED_PUBLICATION_CHECK_H

#include "upload/shared/publication.h"

struct findings {
    const char *extension; /* that its format has: ".zt" and so on */
    /* For the server not to find it out again: whose bytes, and a verdict a component (NULL for a
     * data shard). */
    bool has_identity;
    struct file_identity identity;
    unsigned char *verdicts; /* the caller's to free, after a failure too */
    uint32_t verdict_count;
};

/* Opens the file with the reader that serves it, checks the digests that it states and then the
 * rules of its content. False: the publication's problem and error are set. */
bool publication_check(struct publication *publication, struct findings *out_findings);

/* Fails a publication; always false, so that a step can end with it. */
bool publication_fail(struct publication *publication, enum problem problem,
                      const struct zt_error *error);
/* Failures of storing: no room, or anything else. */
bool publication_fail_store(struct publication *publication, const struct zt_error *error);

#endif
